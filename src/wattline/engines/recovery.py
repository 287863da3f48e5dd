"""Recovery: an attempt's control process is gone. Does anything of it still run, and how did it end?"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wattline.engines import cgroups
from wattline.engines.contract import AttemptHeldError, Launch, Result
from wattline.engines.documents import read_document
from wattline.engines.files import DIRECTORY_VARIABLE, LAUNCH, LOCK, RESULT, write_document
from wattline.engines.supervisor.tree import Tree, send_signal

_LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """The part of `launch.json` that matters when nobody else is left to ask."""

    epoch: int = 0
    at: float = 0.0
    cgroup: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordedLaunch:
    """All of it that a command to a running attempt needs."""

    attempt: str
    epoch: int
    working_directory: str
    command: str
    max_duration_seconds: float | None = None
    grace_seconds: float = 5.0
    checkpoint_signal: int | None = None
    finish_signal: int = signal.SIGTERM
    cpus: float = 1.0
    lease_until: float | None = None


def recover_attempt(directory: Path, timeout_seconds: float) -> Result:
    """Wait for the attempt's own supervisor to clean up; do it by force after the timeout."""
    directory = directory.resolve()
    if not directory.is_dir():
        return lost(directory, "its directory is missing")
    with _lock(directory, timeout_seconds):
        deadline = time.monotonic() + timeout_seconds
        while kill_leftovers(directory):
            if time.monotonic() > deadline:
                raise AttemptHeldError(
                    f"attempt in {directory}: processes are left that SIGKILL does not end",
                    hint="look for processes in uninterruptible sleep, or of another user",
                )
            time.sleep(_LOOK_AGAIN_SECONDS)
        remove_cgroup(directory)
        result = read_result(directory)
        if result is None:
            result = lost(directory, "its supervisor was killed before it could record a result")
            # Written down, so that an attempt once declared lost can never be started again.
            write_document(directory, RESULT, msgspec.to_builtins(result), durable=True)
        return result


def read_launch(directory: Path) -> Launch | None:
    """The launch as it was recorded, without what its environment held; None where there is none."""
    recorded = read_document(directory, LAUNCH, _RecordedLaunch)
    if recorded is None:
        return None
    return Launch(
        attempt=recorded.attempt,
        epoch=recorded.epoch,
        directory=directory,
        working_directory=Path(recorded.working_directory),
        command=recorded.command,
        environment={},
        max_duration_seconds=recorded.max_duration_seconds,
        grace_seconds=recorded.grace_seconds,
        checkpoint_signal=recorded.checkpoint_signal,
        finish_signal=recorded.finish_signal,
        cpus=recorded.cpus,
        lease_until=recorded.lease_until,
    )


def is_held(directory: Path) -> bool:
    """Whether a supervisor holds the attempt's lock."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        return not _try_lock(handle, 0.0)
    finally:
        os.close(handle)


def kill_supervisor(directory: Path) -> None:
    """By force, where it holds its lock and does not end."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        if not _try_lock(handle, 0.0):
            _kill_supervisor(directory, handle)
    finally:
        os.close(handle)


def read_result(directory: Path) -> Result | None:
    """The recorded result; None where there is none that can be read."""
    return read_document(directory, RESULT, Result)


def lost(directory: Path, message: str) -> Result:
    """What is known of an attempt whose supervisor was killed."""
    launch = read_document(directory, LAUNCH, _Recorded) or _Recorded()
    now = time.time()
    return Result(
        epoch=launch.epoch,
        reason="lost",
        code=None,
        signal=None,
        cpu_seconds=0.0,
        wall_seconds=max(0.0, now - launch.at) if launch.at else 0.0,
        started_at=launch.at,
        ended_at=now,
        message=message,
    )


def kill_leftovers(directory: Path) -> int:
    """Kill what bears the attempt's mark and has no supervisor any more; return how many there were.

    The mark is the attempt's directory in the environment, which every descendant inherits unless it took
    pains not to; a cgroup, where there is one, holds those as well.
    """
    mark = f"\0{DIRECTORY_VARIABLE}=".encode() + os.fsencode(directory) + b"\0"
    cgroup = _recorded_cgroup(directory)
    found = set(cgroups.processes_in(cgroup)) if cgroup else set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and mark in b"\0" + _environment_of(entry):
            found.add(int(entry.name))
    found.discard(os.getpid())
    for pid in found:
        send_signal(pid, signal.SIGKILL)
    return len(found)


def remove_cgroup(directory: Path) -> None:
    """Remove what a killed supervisor could not."""
    cgroup = _recorded_cgroup(directory)
    if cgroup is not None and cgroup.is_dir():
        cgroup.rmdir()


@contextmanager
def _lock(directory: Path, timeout_seconds: float) -> Iterator[None]:
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        if not _try_lock(handle, timeout_seconds):
            _kill_supervisor(directory, handle)
            if not _try_lock(handle, timeout_seconds):
                raise AttemptHeldError(
                    f"attempt in {directory}: its supervisor does not end",
                    hint=f"see which process holds {directory / LOCK}: fuser -v",
                )
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_AGAIN_SECONDS)
        else:
            return True


def _kill_supervisor(directory: Path, handle: int) -> None:
    """The lock is held, so the process that wrote its pid there lives, and the pid is still its own."""
    text = os.pread(handle, 32, 0).strip()
    if text.isdigit() and int(text) > 1:
        tree = Tree(int(text))
        below = tree.scan()
        send_signal(tree.root, signal.SIGKILL)
        for process in below:
            send_signal(process.pid, signal.SIGKILL)
    kill_leftovers(directory)


def _recorded_cgroup(directory: Path) -> Path | None:
    """The cgroup named in `launch.json`, if it is what this room would have named it."""
    launch = read_document(directory, LAUNCH, _Recorded)
    if launch is None or launch.cgroup is None:
        return None
    cgroup = Path(launch.cgroup)
    expected = cgroups.cgroup_of(cgroup.parent, directory)
    return cgroup if cgroup == expected and cgroup.is_relative_to("/sys/fs/cgroup") else None


def _environment_of(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:  # another user's, or gone
        return b""
