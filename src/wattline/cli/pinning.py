"""How are a hash and the path of a profile written into a pipeline without disturbing what people wrote?

The text is edited where its YAML nodes stand; comments, order and layout of all the rest stay. Then it is
read again: it must say what it said before, but for the one entry.
"""

from __future__ import annotations

import copy
import json
import posixpath
import re

import yaml

from wattline.errors import DocumentError, RefusedError
from wattline.spec.scalars import resolve
from wattline.spec.source import parse_source

_PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./ -]*[A-Za-z0-9_./-])?")
_BOM = "\ufeff"


def pin(raw: bytes, path: str, name: str, sha256: str, *, file: str, schema: str | None = None) -> bytes:
    """The document with this hash at the data entry of this path; the entry is added where it is missing.

    `schema` is where its profile lies; without it, what the entry says of that stays. `raw` must be a
    pipeline that reads without faults.
    """
    before = parse_source(raw, file).value
    expected, index = copy.deepcopy(before), _entry_index(before, path)
    written = {"sha256": sha256} | ({} if schema is None else {"schema": schema})
    if index is None:
        expected.setdefault("data", []).append({"name": name, "path": path} | written)
    else:
        expected["data"][index] |= written
    text = raw.decode("utf-8")
    bom, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    try:
        if index is None:
            text = _add_entry(text, {"name": name, "path": path} | written)
        else:
            text = _set_fields(text, index, written)
        result = (bom + text).encode()
        same = parse_source(result, file).value == expected
    except (yaml.YAMLError, DocumentError):
        same = False
    if not same:
        raise RefusedError(
            f"{file}: the data entry of {path} is laid out in a way that cannot be edited safely",
            hint="write it by hand: " + ", ".join(f"{key}: {value}" for key, value in written.items()),
        )
    return result


def _add_entry(text: str, entry: dict[str, str]) -> str:
    root = _compose(text)
    data = _child(root, "data")
    return _add_data(text, root, entry) if data is None else _append(text, data, entry)


def _set_fields(text: str, index: int, fields: dict[str, str]) -> str:
    """One after the other, each behind the last; places move with every edit, so each looks again."""
    behind = "path"
    for key, value in fields.items():
        data = _child(_compose(text), "data")
        assert isinstance(data, yaml.SequenceNode)
        text = _set_field(text, data.value[index], key, value, behind)
        behind = key
    return text


def _compose(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return root


def _entry_index(document: dict[str, list[dict[str, str]]], path: str) -> int | None:
    wanted = posixpath.normpath(path)
    entries = document.get("data", [])
    return next((at for at, entry in enumerate(entries) if posixpath.normpath(entry["path"]) == wanted), None)


def _set_field(text: str, entry: yaml.MappingNode, key: str, value: str, behind: str) -> str:
    old = _child(entry, key)
    if old is not None:
        start = _start(old)
        gap = " " if text[start - 1 : start] == ":" else ""  # `sha256:` with nothing after it
        return text[:start] + gap + scalar(value) + text[_end(old) :]
    before = _child(entry, behind)
    assert before is not None
    if entry.flow_style:
        return _insert(text, _end(before), f", {key}: {scalar(value)}")
    indent = " " * entry.value[0][0].start_mark.column
    return _insert_line(text, _end(before), f"{indent}{key}: {scalar(value)}")


def _append(text: str, data: yaml.Node, entry: dict[str, str]) -> str:
    assert isinstance(data, yaml.SequenceNode)
    if data.flow_style:
        if not data.value:
            return text[: _start(data)] + f"[{_flow(entry)}]" + text[_end(data) :]
        return _insert(text, _end(data.value[-1]), f", {_flow(entry)}")
    indent = " " * data.start_mark.column
    return _insert_line(text, _end(data.value[-1]), f"{indent}- {_flow(entry)}")


def _add_data(text: str, root: yaml.MappingNode, entry: dict[str, str]) -> str:
    """Before the phases, above the comment that belongs to them."""
    phases = next(key for key, _ in root.value if key.value == "phases")
    if root.flow_style:
        return _insert(text, _start(phases), f"data: [{_flow(entry)}], ")
    at = _start(phases)
    while (above := text.rfind("\n", 0, at - 1) + 1) < at and text[above:at].lstrip().startswith("#"):
        at = above
    newline = "\r\n" if "\r\n" in text else "\n"
    return _insert(text, at, f"data:{newline}  - {_flow(entry)}{newline}")


def _flow(entry: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {scalar(value)}" for key, value in entry.items()) + "}"


def scalar(value: str) -> str:
    """Plain where that reads back as the same text; JSON's quotes, which YAML reads alike, where not."""
    return (
        value
        if _PLAIN.fullmatch(value) and resolve(value) == value
        else json.dumps(value, ensure_ascii=False)
    )


def _child(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def _start(node: yaml.Node) -> int:
    return int(node.start_mark.index)


def _end(node: yaml.Node) -> int:
    """Where its text ends; a block ends with its last value, not where the next one begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _insert(text: str, at: int, added: str) -> str:
    return text[:at] + added + text[at:]


def _insert_line(text: str, after: int, line: str) -> str:
    """A new line below the one that `after` is in, behind whatever comment that one ends with."""
    end = text.find("\n", after)
    newline = "\r\n" if text[max(0, end - 1) : end] == "\r" else "\n"
    if end < 0:
        return f"{text}{newline}{line}{newline}"
    return _insert(text, end + 1, f"{line}{newline}")
