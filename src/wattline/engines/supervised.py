"""A supervised attempt, seen from the control process: start its supervisor, talk to it, hear of its end."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from wattline.engines import cgroups, supervisor
from wattline.engines.contract import (
    AttemptHeldError,
    Ended,
    EngineEvent,
    Launch,
    Noted,
    Reported,
    Result,
    Started,
    Usage,
)
from wattline.engines.desired import Desired
from wattline.engines.files import LAUNCH, LOCK, REPORTS, RESULT, SUPERVISOR_LOG, write_document
from wattline.engines.recovery import kill_leftovers, lost, read_result, remove_cgroup
from wattline.engines.reports import ReportTail

_SAID_LIMIT_BYTES = 1 << 16
_SUPERVISOR = Path(supervisor.__file__).parent


class Supervised:
    """Holds the supervisor's lease: when this pipe closes, in whatever way, the attempt is killed."""

    def __init__(self, launch: Launch, quota_parent: Path | None) -> None:
        self.launch = launch
        self.directory = launch.directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.desired = Desired()
        self.result: Result | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent = b""
        self._said = b""
        self._has_started = False
        self._reports = ReportTail(self.directory / REPORTS)
        lock = _take_lock(launch.attempt, self.directory)
        try:
            if not (self.directory / RESULT).exists():
                self._start(lock, quota_parent)
        finally:
            os.close(lock)

    @property
    def handle(self) -> int | None:
        """Readable when the supervisor has said something, or has ended."""
        if self._process is None or self._process.stdout is None or self._process.stdout.closed:
            return None
        return self._process.stdout.fileno()

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do that no pipe will tell of."""
        return bool(self._unsent) or self.handle is None

    def send(self, **command: object) -> None:
        """Queue one command; what a full pipe does not take now goes with the next poll."""
        self._unsent += json.dumps(command).encode() + b"\n"
        self._flush()

    def want(self, desired: Desired) -> None:
        self.desired = desired
        desired.write(self.directory)

    def poll(self) -> Iterator[EngineEvent]:
        """What happened since the last call; `Ended` comes last, when nothing is left running or unread."""
        self._flush()
        yield from self._supervisor_events()
        if not self._has_started and self.handle is not None:
            return  # a quick command reports before its supervisor has come to say that it runs
        reports, more = self._reports.read()
        now = time.time()
        for report in reports:
            yield Reported(attempt=self.launch.attempt, report=report, at=now)
        note = self._reports.take_note()
        if note is not None:
            yield Noted(attempt=self.launch.attempt, message=note, at=now)
        if self.handle is None and not more and self._has_ended():
            assert self.result is not None
            yield Ended(attempt=self.launch.attempt, result=self.result, at=self.result.ended_at)

    def release(self) -> None:
        """End the lease."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """For a supervisor that did not end itself."""
        if self._process is not None:
            self._process.kill()

    def _start(self, lock: int, quota_parent: Path | None) -> None:
        cgroup = cgroups.cgroup_of(quota_parent, self.directory) if quota_parent else None
        orders: dict[str, object] = {
            "epoch": self.launch.epoch,
            "directory": str(self.directory),
            "working_directory": str(self.launch.working_directory.absolute()),
            "command": self.launch.command,
            "max_duration_seconds": self.launch.max_duration_seconds,
            "grace_seconds": self.launch.grace_seconds,
            "checkpoint_signal": self.launch.checkpoint_signal,
            "finish_signal": int(self.launch.finish_signal),
            "output_limit_bytes": self.launch.output_limit_bytes,
            "cpus": self.launch.cpus,
            "cgroup": str(cgroup) if cgroup else None,
            "control_pid": os.getpid(),
        }
        record = {"attempt": self.launch.attempt, "at": time.time()} | orders
        write_document(
            self.directory, LAUNCH, record | {"environment_names": sorted(self.launch.environment)}
        )
        self.want(self.desired)
        if cgroup and not cgroups.make_cgroup(cgroup):
            orders["cgroup"] = None
        self._process = _start_supervisor(self.directory, lock)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{self._process.pid}\n".encode(), 0)
        self.send(**orders, environment=dict(self.launch.environment))

    def _flush(self) -> None:
        stdin = self._process.stdin if self._process is not None else None
        if stdin is None or stdin.closed or not self._unsent:
            return
        try:
            self._unsent = self._unsent[os.write(stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended, and its last words are read in poll()
            self._unsent = b""

    def _supervisor_events(self) -> Iterator[EngineEvent]:
        handle = self.handle
        if handle is None:
            return
        try:
            data = os.read(handle, _SAID_LIMIT_BYTES)
        except BlockingIOError:
            return
        if not data:
            assert self._process is not None
            assert self._process.stdout is not None
            self._process.stdout.close()
            self.release()
            self._unsent = b""
        *whole, self._said = (self._said + data).split(b"\n")
        for line in whole:
            yield self._heard(json.loads(line))

    def _heard(self, said: dict[str, object]) -> EngineEvent:
        attempt = self.launch.attempt
        match said:
            case {"event": "started", "pid": int(pid), "at": float(at)}:
                self._has_started = True
                return Started(attempt=attempt, pid=pid, at=at)
            case {"event": "usage", "cpu_seconds": float(cpu), "wall_seconds": float(wall), "at": float(at)}:
                return Usage(attempt=attempt, cpu_seconds=cpu, wall_seconds=wall, at=at)
            case {"event": "noted", "message": str(message), "at": float(at)}:
                return Noted(attempt=attempt, message=message, at=at)
        return Noted(attempt=attempt, message=f"the supervisor said {said!r}", at=time.time())

    def _has_ended(self) -> bool:
        """The supervisor is gone; so is everything below it unless it was killed, which is made good here."""
        if self._process is not None and self._process.poll() is None:
            return False
        self.result = read_result(self.directory)
        if self.result is None:
            if kill_leftovers(self.directory):
                return False
            remove_cgroup(self.directory)
            self.result = lost(self.directory, f"its supervisor ended without a result: see {SUPERVISOR_LOG}")
        return True


def _take_lock(attempt: str, directory: Path) -> int:
    """Taken here and inherited by the supervisor, so that there is no moment at which nobody holds it."""
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AttemptHeldError(
            f"attempt {attempt}: {directory} is held by another supervisor",
            hint="recover it first, or start a new attempt in a directory of its own",
        ) from None
    return lock


def _start_supervisor(directory: Path, lock: int) -> subprocess.Popen[bytes]:
    with (directory / SUPERVISOR_LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_SUPERVISOR), str(lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            cwd="/",
            # Nothing is inherited: the control plane's secrets are not for the eyes of what it starts.
            env={"WATTLINE_SUPERVISES": str(directory)},
            pass_fds=(lock,),
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    os.set_blocking(process.stdout.fileno(), False)
    return process
