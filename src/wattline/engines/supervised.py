"""A supervised attempt, seen from the control process: start or find its supervisor, command and hear it."""

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
from wattline.engines.channel import Channel, knock
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
from wattline.engines.files import LOCK, REPORTS, RESULT, SUPERVISOR_LOG
from wattline.engines.ordering import orders_of, record_launch
from wattline.engines.recovery import (
    is_held,
    kill_leftovers,
    kill_supervisor,
    lost,
    read_launch,
    read_result,
    remove_cgroup,
)
from wattline.engines.reports import ReportTail

_SAID_LIMIT_BYTES = 1 << 16
_SUPERVISOR = Path(supervisor.__file__).parent


class Supervised:
    """One attempt. Where its lease is this pipe, it is killed when that closes, in whatever way."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.directory = launch.directory.resolve()
        self.desired = Desired()
        self.result: Result | None = None
        self._process: subprocess.Popen[bytes] | None = None  # None: another process started it
        self._channel: Channel | None = None
        self._unsent = b""
        self._said = b""
        self._has_started = False
        self._reports = ReportTail(self.directory / REPORTS)

    @staticmethod
    def start(launch: Launch, quota_parent: Path | None) -> Supervised:
        supervised = Supervised(launch)
        supervised.directory.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(launch.attempt, supervised.directory)
        try:
            if not (supervised.directory / RESULT).exists():
                supervised._start(lock, quota_parent)
        finally:
            os.close(lock)
        return supervised

    @staticmethod
    def adopt(directory: Path) -> Supervised | None:
        """The attempt of an earlier control process, commanded from here on; None: no supervisor is there."""
        launch = None if (directory / RESULT).exists() else read_launch(directory)
        channel = None if launch is None or launch.lease_until is None else knock(directory.resolve())
        if launch is None or channel is None:
            return None
        supervised = Supervised(launch)
        supervised.desired = Desired.read(directory)
        supervised._channel = channel
        return supervised

    @property
    def handle(self) -> int | None:
        """Readable when the supervisor has said something, or has ended."""
        return None if self._channel is None else self._channel.reader

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
        if self.launch.lease_until is not None:
            self.send(do="end")
        elif self._channel is not None:
            self._channel.close_writer()

    def leave(self) -> None:
        """Say no more, and let it run on if it has a lease."""
        self._hang_up()
        if self._process is not None:
            self._process.returncode = (
                0  # it is nobody's child any more, and nobody is to complain about that
            )

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def kill(self) -> None:
        """For a supervisor that did not end itself."""
        if self._process is not None:
            self._process.kill()
        elif self.result is None:
            kill_supervisor(self.directory)

    def _start(self, lock: int, quota_parent: Path | None) -> None:
        cgroup = cgroups.cgroup_of(quota_parent, self.directory) if quota_parent else None
        orders = orders_of(self.launch, self.directory)
        orders |= {"cgroup": str(cgroup) if cgroup else None, "control_pid": os.getpid()}
        record_launch(self.launch, self.directory, orders)
        self.want(self.desired)
        if cgroup and not cgroups.make_cgroup(cgroup):
            orders["cgroup"] = None
        self._process = _start_supervisor(self.directory, lock)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout, self._process.stdin)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{self._process.pid}\n".encode(), 0)
        self.send(**orders, environment=dict(self.launch.environment))

    def _flush(self) -> None:
        writer = None if self._channel is None else self._channel.writer
        if writer is None or not self._unsent:
            return
        try:
            self._unsent = self._unsent[os.write(writer, self._unsent) :]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):  # it has ended; its last words are read in poll()
            self._unsent = b""

    def _supervisor_events(self) -> Iterator[EngineEvent]:
        handle = self.handle
        if handle is None:
            return
        try:
            data = os.read(handle, _SAID_LIMIT_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._hang_up()
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
        if self._process is None and is_held(self.directory):  # it is about to write its result
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
        return subprocess.Popen(
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
