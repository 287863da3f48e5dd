from __future__ import annotations

import pytest

from wattline.cli.pinning import pin, scalar
from wattline.errors import RefusedError
from wattline.spec import Pipeline, parse_document
from wattline.spec.source import parse_source

_OLD, _NEW = "a" * 64, "0123456789abcdef" * 4
_ENTRY = f"{{name: x, path: data/x.txt, sha256: {_NEW}}}"
_HEAD = "pipeline: small # ours\nmodel: small\nowner: ada\nproject: nlp\n"
_TAIL = "# What it does.\nphases:\n  train: {run: python train.py}  # all of it\n"


def pinned(data: str, path: str = "data/x.txt", schema: str | None = None) -> str:
    """A pipeline with this data part after pinning, without what stands around that part."""
    before = _HEAD + data + _TAIL
    after = pin(before.encode(), path, "x", _NEW, file="wattline.yaml", schema=schema).decode()
    assert after.startswith(_HEAD)
    assert after.endswith(_TAIL)
    found = parse_document(after.encode(), Pipeline, file="wattline.yaml").data
    assert [entry.sha256 for entry in found if entry.path == path] == [_NEW]
    return after.removeprefix(_HEAD).removesuffix(_TAIL)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"data:\n  - {{name: x, path: data/x.txt, sha256: {_OLD}}}  # mine\n",
            f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW}}}  # mine\n",
        ),
        (
            f"data:\n- sha256: '{_OLD}'\n  name: x  # first\n  path: data/x.txt\n",
            f"data:\n- sha256: {_NEW}\n  name: x  # first\n  path: data/x.txt\n",
        ),
        (
            f"data: [{{name: x, path: ./data/x.txt, sha256: sha256:{_OLD}}}]\n",
            f"data: [{{name: x, path: ./data/x.txt, sha256: {_NEW}}}]\n",
        ),
    ],
)
def test_a_hash_that_is_there_is_replaced(before: str, after: str) -> None:
    path = "./data/x.txt" if "./data" in before else "data/x.txt"
    assert pinned(before, path) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "data:\n  - {name: x, path: data/x.txt, schema: s.yaml}\n",
            f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW}, schema: s.yaml}}\n",
        ),
        (
            "data:\n  - name: x\n    path: data/x.txt  # where\n    schema: s.yaml\n",
            f"data:\n  - name: x\n    path: data/x.txt  # where\n    sha256: {_NEW}\n    schema: s.yaml\n",
        ),
        (
            "data:\n  - {name: x, path: data/x.txt, sha256: }\n",
            f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW} }}\n",
        ),
        (
            "data:\n  - name: x\n    sha256:\n    path: data/x.txt\n",
            f"data:\n  - name: x\n    sha256: {_NEW}\n    path: data/x.txt\n",
        ),
    ],
)
def test_a_hash_that_is_missing_is_written_beside_its_path(before: str, after: str) -> None:
    assert pinned(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW}}}\n"),
        ("data: []\n", f"data: [{{name: x, path: data/x.txt, sha256: {_NEW}}}]\n"),
        (
            "data:\n  - {name: y, path: y}  # another\n\n# no more\n",
            f"data:\n  - {{name: y, path: y}}  # another\n  - {_ENTRY}\n\n# no more\n",
        ),
        (
            "data:\n- name: y\n  path: y.txt\n",
            f"data:\n- name: y\n  path: y.txt\n- {{name: x, path: data/x.txt, sha256: {_NEW}}}\n",
        ),
        (
            "data: [{name: y, path: y.txt}]\n",
            f"data: [{{name: y, path: y.txt}}, {{name: x, path: data/x.txt, sha256: {_NEW}}}]\n",
        ),
    ],
)
def test_an_entry_that_is_missing_is_added(before: str, after: str) -> None:
    assert pinned(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "data:\n  - {name: x, path: data/x.txt}  # mine\n",
            f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW}, schema: s.yaml}}  # mine\n",
        ),
        (
            f"data:\n  - name: x\n    sha256: {_OLD}  # old\n    path: data/x.txt\n",
            f"data:\n  - name: x\n    sha256: {_NEW}  # old\n    schema: s.yaml\n    path: data/x.txt\n",
        ),
        (
            "data:\n  - name: x\n    path: data/x.txt\n    schema: old.yaml  # seen\n",
            f"data:\n  - name: x\n    path: data/x.txt\n    sha256: {_NEW}\n    schema: s.yaml  # seen\n",
        ),
        ("", f"data:\n  - {{name: x, path: data/x.txt, sha256: {_NEW}, schema: s.yaml}}\n"),
    ],
)
def test_where_the_profile_lies_is_written_behind_the_hash(before: str, after: str) -> None:
    assert pinned(before, schema="s.yaml") == after


def test_line_ends_and_a_byte_order_mark_stay() -> None:
    before = (
        b"\xef\xbb\xbf" + (_HEAD + "data:\n  - name: x\n    path: x\n" + _TAIL).replace("\n", "\r\n").encode()
    )
    after = pin(before, "x", "x", _NEW, file="wattline.yaml")
    added = f"    sha256: {_NEW}\r\n".encode()
    assert added in after
    assert after.replace(added, b"") == before


def test_a_document_on_one_line_is_edited_too() -> None:
    before = b"{pipeline: a, model: a, owner: b, project: c, phases: {train: {run: x}}}"
    after = pin(before, "x", "x", _NEW, file="wattline.yaml")
    assert parse_document(after, Pipeline, file="wattline.yaml").data[0].sha256 == _NEW


def test_what_cannot_be_edited_safely_is_refused_with_what_to_write() -> None:
    folded = _HEAD + f"data:\n  - name: x\n    sha256: >-\n      {_OLD}\n    path: x\n" + _TAIL
    with pytest.raises(RefusedError, match=_NEW):
        pin(folded.encode(), "x", "x", _NEW, file="wattline.yaml")


@pytest.mark.parametrize(
    "text", ["x", "a b", "1", "null", "1e5", "a: b", "#x", "- x", "{", "ü", '"', "'", "x#"]
)
def test_a_scalar_reads_back_as_the_same_text(text: str) -> None:
    document = parse_source(f"flow: {{key: {scalar(text)}}}\n".encode(), "file")
    assert document.value == {"flow": {"key": text}}
