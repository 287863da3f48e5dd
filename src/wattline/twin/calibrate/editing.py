"""Editing: how does a facility's text get new values at some of its paths, and stay as it is elsewhere?

Edited where its YAML nodes stand; comments, order and layout stay. Whoever calls reads the result again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import yaml

Path = tuple[str, ...]


def edit(text: str, changes: Mapping[Path, str]) -> str:
    """Write each value at its path; mappings on the way exist, but for GPU models under `devices`."""
    # From the end, so that places found in the text stay right.
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    by_mapping: dict[Path, dict[str, str]] = defaultdict(dict)
    for path, written in changes.items():
        by_mapping[path[:-1]][path[-1]] = written
    edits: list[tuple[int, int, str]] = []
    new: dict[str, dict[str, str]] = {}
    for path, values in by_mapping.items():
        mapping = _find(root, path)
        if mapping is None:
            new[path[-1]] = values
        else:
            edits += _edits_of(text, mapping, values)
    if new:
        edits.append(_new_devices(text, root, new))
    for begin, end, written in sorted(edits, reverse=True):
        text = text[:begin] + written + text[end:]
    return text


def _find(root: yaml.MappingNode, path: Sequence[str]) -> yaml.MappingNode | None:
    node: yaml.Node | None = root
    for step in path:
        assert isinstance(node, yaml.MappingNode)
        node = next((value for key, value in node.value if key.value == step), None)
        if node is None:
            return None
    return node if isinstance(node, yaml.MappingNode) else None


def _edits_of(text: str, mapping: yaml.MappingNode, values: Mapping[str, str]) -> list[tuple[int, int, str]]:
    there = {key.value: value for key, value in mapping.value}
    edits = []
    for key, written in values.items():
        if key in there:
            begin, end = there[key].start_mark.index, there[key].end_mark.index
            gap = " " if text[begin - 1 : begin] == ":" else ""
            edits.append((begin, end, gap + written))
    added = {key: written for key, written in values.items() if key not in there}
    if added:
        edits.append(_addition(text, mapping, [f"{key}: {written}" for key, written in added.items()]))
    return edits


def _addition(text: str, mapping: yaml.MappingNode, lines: Sequence[str]) -> tuple[int, int, str]:
    """Entries after the last of a mapping, in the way it is laid out."""
    if mapping.flow_style:
        if not mapping.value:
            return mapping.start_mark.index, mapping.end_mark.index, "{" + ", ".join(lines) + "}"
        after = _end(mapping.value[-1][1])
        return after, after, "".join(f", {line}" for line in lines)
    indent = " " * mapping.value[0][0].start_mark.column
    newline = "\r\n" if "\r\n" in text else "\n"
    at = text.find("\n", _end(mapping.value[-1][1])) + 1
    block = "".join(f"{indent}{line}{newline}" for line in lines)
    return (at, at, block) if at else (len(text), len(text), newline + block)


def _new_devices(
    text: str, root: yaml.MappingNode, new: Mapping[str, Mapping[str, str]]
) -> tuple[int, int, str]:
    entries = [
        f"{name}: {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}"
        for name, values in new.items()
    ]
    devices = _find(root, ("devices",))
    if devices is not None:
        return _addition(text, devices, entries)
    sites = next(key for key, _ in root.value if key.value == "sites").start_mark.index
    if root.flow_style:
        return sites, sites, f"devices: {{{', '.join(entries)}}}, "
    newline = "\r\n" if "\r\n" in text else "\n"
    block = "".join(f"  {entry}{newline}" for entry in entries)
    return sites, sites, f"devices:{newline}{block}{newline}"


def _end(node: yaml.Node) -> int:
    """Where its text ends; a block ends with its last value, not where the next one begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)
