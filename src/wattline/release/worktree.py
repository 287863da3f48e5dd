"""Which files of a folder are somebody's source, by Git where there is Git?

Git is asked, never trusted to act: no hook, file system monitor, prompt or lock, nothing from the caller's
`GIT_*` environment, and an end to waiting.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import UnavailableError

_TIMEOUT_SECONDS = 60.0
_KEPT = frozenset({"PATH", "HOME", "XDG_CONFIG_HOME"})  # where Git and its owner's settings are
_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """What Git says of a folder; paths are relative to the folder."""

    commit: str | None  # None before the first commit
    tracked: tuple[str, ...]
    untracked: tuple[str, ...]  # and not ignored
    changed: tuple[str, ...]  # tracked, but not as in the commit; deleted ones too


def read_worktree(folder: Path) -> Worktree | None:
    """None where there is no Git, no work tree, or one that ignores this folder."""
    prefix = _git(folder, "rev-parse", "--show-prefix")
    if prefix is None:
        return None
    head = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD", none_is=1)
    tracked = _names(_git(folder, "ls-files", "-z", "--cached"))
    status = _git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", ".")
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


def _git(folder: Path, *arguments: str, none_is: int | None = None) -> bytes | None:
    """What Git prints; None without Git, outside a work tree, or when it ends with `none_is`."""
    environment = {
        name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if name in os.environ
    }
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *_QUIET, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"git {arguments[0]} in {folder} gave no answer within {_TIMEOUT_SECONDS:g} s",
            hint="check the file system the folder lies on",
        ) from error
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == none_is or "not a git repository" in said or "must be run in a work tree" in said:
        return None
    raise UnavailableError(
        f"git {arguments[0]} in {folder} failed: {said[:500]}",
        hint="mend the repository; without its answer, files that Git ignores would be taken along",
    )


def _names(output: bytes | None) -> list[str]:
    return [os.fsdecode(name) for name in (output or b"").split(b"\0") if name]
