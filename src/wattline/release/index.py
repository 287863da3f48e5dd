"""What is in a stored folder: which files, with which bytes, and may they be put back?

An index is itself an object, so its digest stands for the whole folder. It holds content alone: the same
files have the same digest whichever commit or machine they came from.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta

from wattline.errors import UnavailableError
from wattline.release.canonical import decode_canonical, encode_canonical

LONGEST_PATH = 1024
MOST_INDEX_BYTES = 64 * 2**20

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Size = Annotated[int, Meta(ge=0, le=2**53)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """One file: where it lies in the folder and what it holds."""

    path: str
    sha256: Sha256
    size_bytes: Size
    mode: Literal["0644", "0755"] = "0644"

    @property
    def digest(self) -> str:
        return f"sha256:{self.sha256}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLink:
    """A symbolic link that stays inside the folder."""

    path: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A stored folder; `digest` is that of its index."""

    digest: str
    files: tuple[TreeFile, ...]
    links: tuple[TreeLink, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    files: tuple[TreeFile, ...]
    links: tuple[TreeLink, ...]
    format: Literal["wattline.tree.v1"] = "wattline.tree.v1"


def encode_index(files: Iterable[TreeFile], links: Iterable[TreeLink]) -> bytes:
    ordered = _Index(
        files=tuple(sorted(files, key=lambda file: file.path)),
        links=tuple(sorted(links, key=lambda link: link.path)),
    )
    return encode_canonical(ordered)


def decode_index(data: bytes, digest: str) -> Tree:
    """Read an index that anybody may have written: nothing in it leads out of the folder it is put in."""
    what = f"index {digest}"
    index = decode_canonical(data, _Index, what=what, most_bytes=MOST_INDEX_BYTES)
    try:
        _check_paths([file.path for file in index.files], [link.path for link in index.links])
        for link in index.links:
            check_link(link.path, link.target)
    except ValueError as error:
        raise UnavailableError(f"{what} is refused: {error}") from error
    return Tree(digest=digest, files=index.files, links=index.links)


def check_path(path: str) -> str:
    """A path inside a folder, spelled in the one way that has no surprises; raises ValueError."""
    _check_characters(path)
    if not 0 < len(path) <= LONGEST_PATH:
        raise ValueError(f"{path[:80]!r} has {len(path)} characters; a path has 1 to {LONGEST_PATH}")
    if path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"{path!r} does not stay inside the folder")
    return path


def check_link(path: str, target: str) -> str:
    """A link may climb first and descend after, no further up than the folder; raises ValueError.

    `..` behind a name is refused: behind a name that is itself a link it would climb from somewhere else.
    """
    _check_characters(target)
    parts = target.split("/")
    climbs = sum(part == ".." for part in parts)
    leads_out = (
        not 0 < len(target) <= LONGEST_PATH
        or target.startswith("/")
        or climbs > path.count("/")
        or any(part != ".." for part in parts[:climbs])
    )
    if leads_out:
        raise ValueError(f"the link {path!r} leads out of the folder, to {target[:80]!r}")
    return target


def _check_characters(path: str) -> None:
    """Nothing that would rewrite a terminal or a log when the path is shown."""
    for character in path:
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            raise ValueError(
                f"{path[:80]!r} holds a control character or is not UTF-8 (U+{ord(character):04X})"
            )


def _check_paths(files: list[str], links: list[str]) -> None:
    for paths in (files, links):
        for path in paths:
            check_path(path)
        if any(one >= other for one, other in pairwise(paths)):
            raise ValueError("its paths are repeated or not in order")
    leaves = set(files)
    if not leaves.isdisjoint(links):
        raise ValueError("a path is both a file and a link")
    leaves.update(links)
    for path in leaves:
        parent = posixpath.dirname(path)
        while parent:
            if parent in leaves:
                raise ValueError(f"{path!r} lies below {parent!r}, which is not a folder")
            parent = posixpath.dirname(parent)
