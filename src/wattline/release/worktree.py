"""Which files of a folder are somebody's source, by Git where there is Git?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wattline.release.git import ask_git


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """What Git says of a folder; paths are relative to the folder."""

    commit: str | None  # None before the first commit
    tracked: tuple[str, ...]
    untracked: tuple[str, ...]  # and not ignored
    changed: tuple[str, ...]  # tracked, but not as in the commit; deleted ones too


def read_worktree(folder: Path) -> Worktree | None:
    """None where there is no Git, no work tree, or one that ignores this folder."""
    prefix = ask_git(folder, "rev-parse", "--show-prefix")
    if prefix is None:
        return None
    head = ask_git(folder, "rev-parse", "--verify", "--quiet", "HEAD", none_is=1)
    tracked = _names(ask_git(folder, "ls-files", "-z", "--cached"))
    status = ask_git(
        folder, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", "."
    )
    here = os.fsdecode(prefix.rstrip(b"\n"))
    states = [(entry[:2], entry[3:].removeprefix(here)) for entry in _names(status)]
    untracked = [path for state, path in states if state == "??"]
    if not tracked and not untracked:
        return None
    return Worktree(
        commit=head.decode("ascii").strip() if head else None,
        tracked=tuple(dict.fromkeys(tracked)),  # a path in conflict is listed once for each side
        untracked=tuple(path.rstrip("/") for path in untracked),  # a repository inside ends with a slash
        changed=tuple(path for state, path in states if state != "??"),
    )


def _names(output: bytes | None) -> list[str]:
    return [os.fsdecode(name) for name in (output or b"").split(b"\0") if name]
