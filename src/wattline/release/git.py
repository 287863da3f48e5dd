"""Git: asked, never trusted to act.

No hook, monitor, prompt, lock or external command of the repository runs, nothing of the caller's `GIT_*` is
passed on, and waiting ends.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from wattline.errors import UnavailableError

_TIMEOUT_SECONDS = 60.0
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")  # where Git and its owner's settings are
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-pager")


def ask_git(
    folder: Path, *arguments: str, none_is: int | None = None, given: bytes | None = None
) -> bytes | None:
    """What Git prints; None without Git, outside a work tree, or when it ends with `none_is`."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SETTINGS
    try:
        done = subprocess.run(
            ["git", *_QUIET, *arguments],
            cwd=folder,
            env=environment,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
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
