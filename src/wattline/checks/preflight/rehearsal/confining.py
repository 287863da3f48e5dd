"""How is somebody's code run once, under limits, without a network, and with nothing left behind?

Where the kernel allows it, in a network and a process namespace of its own (`unshare` of util-linux). Where
it does not, as in many containers, processes are still counted and ended by the warden, and Python's
connections still fail; only a program that is not Python could then reach the network.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wattline.errors import UnavailableError

GUARD = Path(__file__).parent / "guard"
_MOST_PROCESSES = 256
_MOST_FILE_BYTES = 1 << 30
_SPARE_TASKS = 1024
_ANSWER_SECONDS = 30.0
_SPACES: tuple[tuple[str, ...], ...] = (
    ("--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("--user", "--map-root-user", "--net"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """What came of it. `why` it ended: by itself, out of time, or for starting too many processes."""

    why: str  # ended, time, processes
    exit_code: int  # below zero: the signal; of use where it ended by itself
    seconds: float
    idle_seconds: float  # at its end, since anything in it used a processor
    output: str  # its beginning and its end


def run_confined(
    command: str, *, folder: Path, environment: Mapping[str, str], within_seconds: float
) -> Confined:
    """Run a shell command in a folder, with this environment and nothing inherited."""
    spaces = _allowed_spaces()
    order = {
        "command": command,
        "folder": str(folder),
        "environment": dict(environment),
        "within_seconds": within_seconds,
        "most_processes": _MOST_PROCESSES,
        "own_network": "--net" in spaces,
        "limits": _limits(within_seconds),
    }
    warden = [sys.executable, "-I", "-S", str(GUARD / "warden.py")]
    process = subprocess.Popen(
        [*(("unshare", *spaces, "--") if spaces else ()), *warden],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        answered, _, _ = select.select([process.stdout], [], [], within_seconds + _ANSWER_SECONDS)
        raw = process.stdout.readline() if answered else b""
    finally:
        _end(process)
    return _read_answer(raw)


def _read_answer(raw: bytes) -> Confined:
    try:
        answer: dict[str, Any] = json.loads(raw)
    except ValueError as error:
        raise UnavailableError(
            "the rehearsal was ended from outside, without an answer", hint="is there memory left?"
        ) from error
    return Confined(
        why=answer["why"],
        exit_code=answer["exit"],
        seconds=answer["seconds"],
        idle_seconds=answer["idle_seconds"],
        output=answer["output"],
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """The warden ends what it watches when nobody waits for it any more."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(timeout=_ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@cache
def _allowed_spaces() -> tuple[str, ...]:
    """Arguments of `unshare` that work here, the most first; none where none do."""
    for spaces in _SPACES:
        if os.geteuid() != 0 and "--user" not in spaces:
            continue
        try:
            tried = subprocess.run(
                ["unshare", *spaces, "--", "true"], capture_output=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if tried.returncode == 0:
            return spaces
    return ()


def _limits(within_seconds: float) -> dict[str, int]:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = {
        "RLIMIT_CPU": int(within_seconds * (os.cpu_count() or 1)) + 10,
        "RLIMIT_AS": max(memory_bytes, 16 << 30),  # torch maps far more than it touches
        "RLIMIT_FSIZE": _MOST_FILE_BYTES,
        "RLIMIT_CORE": 0,
    }
    if os.geteuid() != 0:  # root is never refused a process; the warden counts them
        limits["RLIMIT_NPROC"] = _own_tasks() + _SPARE_TASKS
    return limits


def _own_tasks() -> int:
    """The limit counts all threads of a user, not only those of the rehearsal."""
    tasks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == os.geteuid():
                    tasks += sum(1 for _ in (entry / "task").iterdir())
            except OSError:
                continue  # it has just ended
    return tasks
