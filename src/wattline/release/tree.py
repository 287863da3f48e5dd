"""How does a folder become objects, and objects a folder again?"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wattline.errors import RefusedError, UnavailableError
from wattline.release.index import (
    MOST_INDEX_BYTES,
    Tree,
    TreeFile,
    TreeLink,
    check_link,
    check_path,
    decode_index,
    encode_index,
)
from wattline.release.reading import hash_file, read_object
from wattline.store import ObjectStore
from wattline.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a folder may hold; `hint` says where more belongs."""

    files: int
    file_bytes: int
    total_bytes: int
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A regular file before it is stored."""

    path: str
    mode: Literal["0644", "0755"]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What lies in a folder, before any of it is stored. `unfit` says why each of the rest cannot be."""

    files: tuple[Found, ...]
    links: tuple[TreeLink, ...]
    unfit: tuple[str, ...]


def walk_folder(folder: Path, skip: Callable[[str], bool]) -> Iterator[str]:
    """The path of everything below that is not a folder; no link is followed."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}" if inside else entry.name
                    if skip(path):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    else:
                        yield path
        except OSError as error:
            raise UnavailableError(f"{folder / inside} cannot be listed: {error.strerror}") from error


def survey_folder(folder: Path, paths: Iterable[str], limits: Limits) -> Survey:
    """Look at each path and hold it against the limits; stops at the first one beyond them."""
    files: list[Found] = []
    links: list[TreeLink] = []
    unfit: list[str] = []
    total_bytes = 0
    for path in paths:
        try:
            found = _look(folder, check_path(path))
        except ValueError as error:
            unfit.append(str(error))
            continue
        if isinstance(found, TreeLink):
            links.append(found)
        else:
            files.append(found)
            total_bytes += found.size_bytes
            _check_limits(folder, found, total_bytes, limits)
        if len(files) + len(links) + len(unfit) > limits.files:
            raise RefusedError(f"{folder} holds more than {limits.files:,} files", hint=limits.hint)
    return Survey(files=tuple(files), links=tuple(links), unfit=tuple(unfit))


def _look(folder: Path, path: str) -> Found | TreeLink:
    try:
        status = os.lstat(folder / path)
        if stat.S_ISLNK(status.st_mode):
            return TreeLink(path=path, target=check_link(path, str((folder / path).readlink())))
    except OSError as error:
        raise UnavailableError(f"{folder / path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path!r} is a {_kind(status.st_mode)}, neither a file nor a link")
    mode: Literal["0644", "0755"] = "0755" if status.st_mode & stat.S_IXUSR else "0644"
    return Found(path=path, mode=mode, size_bytes=status.st_size)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFDIR: "folder"}
    return kinds.get(stat.S_IFMT(mode), "device")


def _check_limits(folder: Path, found: Found, total_bytes: int, limits: Limits) -> None:
    if found.size_bytes > limits.file_bytes:
        raise RefusedError(
            f"{folder / found.path} has {format_bytes(found.size_bytes)}; "
            f"one file here has at most {format_bytes(limits.file_bytes)}",
            hint=limits.hint,
        )
    if total_bytes > limits.total_bytes:
        raise RefusedError(
            f"{folder} holds more than {format_bytes(limits.total_bytes)} in all", hint=limits.hint
        )


def store_survey(folder: Path, survey: Survey, objects: ObjectStore) -> Tree:
    """Put every file and then the index among the objects. Sizes are those of the bytes that were kept."""
    files = []
    for found in survey.files:
        digest = objects.put_file(folder / found.path)
        size_bytes = objects.path(digest).stat().st_size
        files.append(TreeFile(path=found.path, sha256=digest.hex, size_bytes=size_bytes, mode=found.mode))
    data = encode_index(files, survey.links)
    if len(data) > MOST_INDEX_BYTES:
        raise RefusedError(f"{folder} has an index of {format_bytes(len(data))}", hint="use shorter paths")
    return decode_index(data, objects.put_bytes(data))


def read_tree(digest: str, objects: ObjectStore) -> Tree:
    """What a stored folder holds; raises UnavailableError when its index is missing, altered or unsafe."""
    return decode_index(read_object(digest, objects, most_bytes=MOST_INDEX_BYTES), digest)


def materialise_tree(digest: str, objects: ObjectStore, target: Path) -> Tree:
    """Make `target` hold every file of the tree, byte for byte; what else lies there stays.

    A repeat changes nothing, and mends what was altered or left half done.
    """
    tree = read_tree(digest, objects)
    for file in tree.files:
        place_file(file, objects, target)
    for link in tree.links:
        _place_link(link, target)
    return tree


def place_file(file: TreeFile, objects: ObjectStore, target: Path) -> None:
    """Put one file in its place unless it is there already, with these bytes and this mode."""
    place, mode = target / file.path, int(file.mode, 8)
    with _writing(place):
        _make_parents(target, file.path)
        if not _is_placed(place, file, mode):
            objects.materialise(file.digest, place, mode)


def _is_placed(place: Path, file: TreeFile, mode: int) -> bool:
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) != mode:
        return False
    return status.st_size == file.size_bytes and hash_file(place) == file.sha256


def _place_link(link: TreeLink, target: Path) -> None:
    place = target / link.path
    with _writing(place):
        _make_parents(target, link.path)
        if place.is_symlink() and str(place.readlink()) == link.target:
            return
        place.unlink(missing_ok=True)
        place.symlink_to(link.target)


def _make_parents(target: Path, path: str) -> None:
    """Make the folders above a path one by one: none of them may be a link that leads elsewhere."""
    target.mkdir(parents=True, exist_ok=True)
    folder = target
    for part in path.split("/")[:-1]:
        folder /= part
        try:
            folder.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise RefusedError(
                    f"{folder} is not a folder of its own, so nothing is written below it",
                    hint="name an empty folder",
                ) from None


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{place} cannot be written: {error.strerror or error}",
            hint="check that this user may write there, and that the disk has room",
        ) from error
