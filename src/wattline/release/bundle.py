"""What code does a run consist of? Its source bundle: any site can start it from the digest alone."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import RefusedError
from wattline.release.index import Tree, TreeFile
from wattline.release.tree import (
    Limits,
    materialise_tree,
    read_tree,
    store_survey,
    survey_folder,
    walk_folder,
)
from wattline.release.worktree import Worktree, read_worktree
from wattline.store import ObjectStore

LIMITS = Limits(
    files=10_000,
    file_bytes=64 * 2**20,
    total_bytes=512 * 2**20,
    hint="a source bundle holds code; declare what is data under data: in the pipeline, or let Git ignore it",
)

_NEVER_SOURCE = frozenset({".git", ".venv", "__pycache__", ".wattline", "node_modules"})
_RESULTS = frozenset({"checkpoints", "out"})  # only at the top: deeper, such a name may well be a package
_LOCK_FILES = ("*.lock", "*-lock.json", "*-lock.yaml", "*-lock.yml", "requirements*.txt", "environment.y*ml")

read_bundle = read_tree
materialise_bundle = materialise_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(Tree):
    """A stored source folder and where it came from; outside Git, `commit` and `dirty` are not known."""

    commit: str | None
    dirty: bool | None  # some file is not as in the commit
    lock_files: tuple[TreeFile, ...]  # what pins the dependencies


def bundle_source(folder: Path, objects: ObjectStore, exclude: Collection[str] = ()) -> Bundle:
    """Store a folder's source; `exclude` names data, which travels by hash instead.

    In a Git work tree: what is tracked, and what is not but is not ignored either. Elsewhere: everything but
    caches, environments and results.
    """
    left_out = frozenset(posixpath.normpath(path) for path in exclude)
    worktree = read_worktree(folder)
    paths = [path for path in _source_paths(folder, worktree) if not _lies_in(path, left_out)]
    survey = survey_folder(folder, paths, LIMITS)
    for why in survey.unfit:
        raise RefusedError(f"{folder} cannot be bundled: {why}", hint="remove it, or let Git ignore it")
    tree = store_survey(folder, survey, objects)
    return Bundle(
        digest=tree.digest,
        files=tree.files,
        links=tree.links,
        commit=worktree.commit if worktree else None,
        dirty=_is_dirty(worktree, left_out) if worktree else None,
        lock_files=tuple(file for file in tree.files if _is_lock_file(file.path)),
    )


def list_source(folder: Path) -> set[str]:
    """The files that would travel with a run, data among them."""
    return set(_source_paths(folder, read_worktree(folder)))


def _source_paths(folder: Path, worktree: Worktree | None) -> Iterator[str]:
    if worktree is None:
        yield from walk_folder(folder, _is_clutter)
        return
    untracked = (path for path in worktree.untracked if not _is_clutter(path))
    for path in (*worktree.tracked, *untracked):
        place = folder / path
        if place.is_dir() and not place.is_symlink():  # a submodule, or a repository inside this one
            inner = read_worktree(place) if (place / ".git").exists() else None
            yield from (f"{path}/{below}" for below in _source_paths(place, inner))
        elif place.is_symlink() or place.exists():
            yield path


def _is_dirty(worktree: Worktree, left_out: frozenset[str]) -> bool:
    untracked = (path for path in worktree.untracked if not _is_clutter(path))
    return worktree.commit is None or any(
        not _lies_in(path, left_out) for path in (*worktree.changed, *untracked)
    )


def _is_clutter(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in _RESULTS or not _NEVER_SOURCE.isdisjoint(parts)


def _lies_in(path: str, folders: frozenset[str]) -> bool:
    while path and path not in folders:
        path = posixpath.dirname(path)
    return bool(path)


def _is_lock_file(path: str) -> bool:
    name = posixpath.basename(path)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _LOCK_FILES)
