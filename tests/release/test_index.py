"""May the files of an index be put back?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import UnavailableError
from wattline.release.index import TreeFile, TreeLink, check_link, check_path, decode_index, encode_index

SHA = "0" * 64


def index_of(*paths: str, links: tuple[tuple[str, str], ...] = ()) -> bytes:
    """An index as an intruder would write it: in canonical form, with any path."""
    files = [{"mode": "0644", "path": path, "sha256": SHA, "size_bytes": 1} for path in paths]
    document = {
        "files": files,
        "format": "wattline.tree.v1",
        "links": [{"path": path, "target": target} for path, target in links],
    }
    return dump(document)


def dump(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def test_an_index_reads_as_it_was_written_whatever_the_order() -> None:
    files = [TreeFile(path=path, sha256=SHA, size_bytes=3, mode="0755") for path in ("b/é.py", "a.py")]
    links = [TreeLink(path="b/link", target="../a.py")]
    tree = decode_index(encode_index(files, links), "sha256:" + SHA)
    assert tree.files == tuple(sorted(files, key=lambda file: file.path))
    assert tree.links == tuple(links)
    assert encode_index(reversed(files), links) == encode_index(files, links)


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../up", "a/../../up", "a//b", "a/./b", ".", "..", "", "a/", "a\nb", "a\x1b[2J",
     "\u202ea", "x" * 1025],
)  # fmt: skip
def test_a_path_that_does_not_stay_inside_or_hides_something_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"inside|control|characters"):
        check_path(path)
    with pytest.raises(UnavailableError, match="refused"):
        decode_index(index_of(path), "sha256:" + SHA)


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("link", "file", True),
        ("link", "a/b", True),
        ("a/link", "../b", True),
        ("a/b/link", "../../c/d", True),
        ("link", "../b", False),
        ("a/link", "../../b", False),
        ("a/link", "/etc/passwd", False),
        ("a/b/c/link", "d/../../x", False),  # `d` may be a link, and then `..` climbs from elsewhere
        ("link", "", False),
        ("link", "a\nb", False),
    ],
)
def test_a_link_stays_inside_whatever_other_links_there_are(path: str, target: str, inside: bool) -> None:
    if inside:
        assert check_link(path, target) == target
        assert decode_index(index_of(links=((path, target),)), "sha256:" + SHA).links[0].target == target
    else:
        with pytest.raises(ValueError, match=r"leads out|control"):
            check_link(path, target)
        with pytest.raises(UnavailableError, match="refused"):
            decode_index(index_of(links=((path, target),)), "sha256:" + SHA)


@pytest.mark.parametrize(
    "data",
    [
        index_of("a", "a"),
        index_of("b", "a"),
        index_of("a", "a/b"),
        index_of("a", links=(("a", "b"),)),
        index_of("a/b", links=(("a", "c"),)),
        index_of("a").replace(b'"mode":"0644"', b'"mode":"4755"'),
        index_of("a").replace(b'"size_bytes":1', b'"size_bytes":-1'),
        index_of("a").replace(b'"size_bytes":1', b'"size_bytes":1,"size_bytes":1'),
        index_of("a").replace(SHA.encode(), b"../../etc/passwd"),
        index_of("a").replace(b"v1", b"v2"),
        index_of("a").rstrip(),
        b" " + index_of("a"),
        b'{"files":[],"links":[]}\n',
        b"[" * 100_000,
        b"",
    ],
)
def test_an_index_that_is_not_exactly_one_is_refused(data: bytes) -> None:
    with pytest.raises(UnavailableError):
        decode_index(data, "sha256:" + SHA)


@given(st.binary(max_size=200))
def test_garbage_gives_an_error_that_can_be_read(data: bytes) -> None:
    with pytest.raises(UnavailableError):
        decode_index(data, "sha256:" + SHA)
