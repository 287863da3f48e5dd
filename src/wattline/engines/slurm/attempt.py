"""An attempt on Slurm, seen through its folder on the shared file system and its line in the queue."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from wattline.engines.contract import Ended, EngineEvent, Noted, Reason, Reported, Result, Started, Usage
from wattline.engines.desired import Desired
from wattline.engines.documents import read_document
from wattline.engines.files import (
    LAUNCH,
    NOTES,
    ORDERS,
    REPORTS,
    RESULT,
    STARTED,
    SUPERVISOR_LOG,
    USAGE,
    read_bounded,
    write_document,
)
from wattline.engines.recovery import lost, read_result
from wattline.engines.reports import ReportTail
from wattline.engines.slurm.listing import DOUBTED, OVER, TAKEN_AWAY, QueuedJob
from wattline.engines.slurm.submission import Submission
from wattline.engines.slurm.wanted import Wanted

SUBMITTED = "slurm.json"
_FILES_SECONDS = 0.1  # between looks at a folder that may be on another machine
_SETTLE_SECONDS = 3.0  # a result may be written and not be seen here yet
_MOST_WORDS = 200
_PATIENT_SECONDS = 10.0  # for Slurm to start a job, before somebody is told why it does not
_STRANDED = ("ReqNodeNotAvail", "NodeDown")
_INSIST_SECONDS = 10.0  # after the grace, before Slurm is asked to end what was asked to stop


class _Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What `launch.json` says that matters later on."""

    attempt: str
    grace_seconds: float = 5.0
    checkpoint_signal: int | None = None
    hosts: tuple[str, ...] = ()
    submission: Submission | None = None


class _Submitted(msgspec.Struct, frozen=True):
    job: str


class _Started(msgspec.Struct, frozen=True):
    pid: int
    at: float


class _Used(msgspec.Struct, frozen=True):
    cpu_seconds: float
    wall_seconds: float
    at: float


@dataclass(slots=True)
class Sight:
    """What was last seen of a job in the queue, by a look that began at `at`."""

    at: float
    line: QueuedJob | None


class SlurmAttempt:
    """All that is known of it lies in its folder: a control process that starts anew misses nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        recorded = read_document(directory, LAUNCH, _Recorded)
        assert recorded is not None
        self.recorded = recorded
        self.attempt = recorded.attempt
        submitted = read_document(directory, SUBMITTED, _Submitted)
        self.job = submitted.job if submitted is not None else ""
        self.wanted, self.desired = Wanted.read(directory), Desired.read(directory)
        self.result: Result | None = None
        self.submitted_at = time.monotonic()  # or taken over
        self.misplaced = ""
        self.lives_until = -math.inf  # as far as this process has renewed it
        self._sight: Sight | None = None
        self._insist_at: float | None = time.monotonic() if self.wanted.stop else None
        self._gone_since: float | None = None
        self._is_gone = False
        self._has_started = False
        self._used_at = 0.0
        self._look_at = 0.0
        self._reports = ReportTail(directory / REPORTS)
        self._notes = ReportTail(directory / NOTES)
        self._words: list[str] = []
        self._told_wait = self._told_gpus = False

    def note(self, message: str) -> None:
        """To be told with the next poll."""
        self._words.append(message)

    def submitted(self, job: str) -> None:
        """Slurm knows it by this number from now on."""
        self.job, self.submitted_at = job, time.monotonic()
        write_document(self.directory, SUBMITTED, {"job": job}, durable=True)

    def want(self, wanted: Wanted) -> None:
        self.wanted = wanted
        wanted.write(self.directory)

    def desire(self, desired: Desired) -> None:
        self.desired = desired
        desired.write(self.directory)

    def take_back(self) -> bool:
        """Take its orders away: if they are still there, nobody runs it, and nobody ever will."""
        try:
            (self.directory / ORDERS).unlink()
        except FileNotFoundError:
            return False
        return True

    def never_began(self) -> bool:
        """End it if nobody has begun it yet."""
        if self.take_back():
            self.conclude("stopped", "taken back before it started")
            return True
        return False

    def stop(self) -> bool:
        """Whether it was over at once, having never begun."""
        if self.never_began():
            return True
        self.want(replace(self.wanted, stop=True))
        self._insist_at = time.monotonic() + self.recorded.grace_seconds + _INSIST_SECONDS
        return False

    def conclude(self, reason: Reason, message: str) -> None:
        """Write down how it ended where nobody else has and nobody will."""
        if read_result(self.directory) is not None:
            return
        found = replace(lost(self.directory, message), reason=reason)
        write_document(self.directory, RESULT, msgspec.to_builtins(found), durable=True)

    @property
    def needs_cancelling(self) -> bool:
        """Whether Slurm itself has to end it now."""
        return bool(self.job) and self._insist_at is not None and time.monotonic() >= self._insist_at

    def cancelled(self) -> None:
        """Slurm was asked; it is asked again if that did not help."""
        self._insist_at = time.monotonic() + _INSIST_SECONDS

    def see(self, sight: Sight) -> None:
        """Take in a look at the queue; one that began before it was submitted says nothing of it."""
        if not self.job or sight.at < self.submitted_at:
            return
        line = sight.line
        if line is not None and line.state == DOUBTED:
            return
        if line is not None and line.name != self.attempt:  # Slurm forgot ours; another has its number
            line = None
        self._sight = Sight(sight.at, line)
        if line is not None and line.state == "RUNNING":
            self._check_place(line)
            self._check_gpus(line)
        if line is not None and line.state == "PENDING" and not self._has_started:
            self._wait_in_line(line)
        requeued = line is not None and line.state == "PENDING" and self._has_started
        if line is None or line.state in OVER or requeued:
            self._gone_since = self._gone_since or time.monotonic()
            self._is_gone = sight.at - self._gone_since >= _SETTLE_SECONDS
            if requeued and self._is_gone:  # it would find no orders; it need not try
                self._insist_at = time.monotonic()
        else:
            self._gone_since, self._is_gone = None, False

    def _wait_in_line(self, line: QueuedJob) -> None:
        """It was placed where there was room: if Slurm sees none, others were first, or the node is away."""
        waits_seconds = time.monotonic() - self.submitted_at
        if line.reason.startswith(_STRANDED) and waits_seconds > _SETTLE_SECONDS:
            if self.take_back():
                self.conclude("node-lost", f"Slurm job {self.job}: {line.reason}")
                self._insist_at = time.monotonic()
        elif waits_seconds > _PATIENT_SECONDS and not self._told_wait:
            self._told_wait = True
            self.note(f"Slurm job {self.job} waits: {line.reason}")

    def poll(self) -> Iterator[EngineEvent]:
        """What happened since the last call; `Ended` comes last."""
        now = time.time()
        for message in self._words:
            yield Noted(attempt=self.attempt, message=message, at=now)
        self._words.clear()
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _FILES_SECONDS
        result = read_result(self.directory)  # before all else: what it said before it ended is there then
        yield from self._beginnings()
        yield from self._usage()
        more = False
        for tail in (self._reports, self._notes):
            reports, is_more = tail.read()
            more |= is_more
            for report in reports:
                yield self._heard(report, now, is_note=tail is self._notes)
            fault = tail.take_note()
            if fault is not None:
                yield Noted(attempt=self.attempt, message=fault, at=now)
        if result is None and self._is_gone and not more and not self.is_forgotten:
            result = self._vanished()
        if result is not None and not more:
            self.result = self._explain(result)
            yield Ended(attempt=self.attempt, result=self.result, at=self.result.ended_at)

    @property
    def is_forgotten(self) -> bool:
        """Slurm does not know its job, which had not begun: it may be submitted again."""
        return (
            self._is_gone
            and self._sight is not None
            and self._sight.line is None
            and (self.directory / ORDERS).exists()
        )

    def forget_job(self) -> None:
        """It has no job any more."""
        self.job, self._sight, self._gone_since, self._is_gone = "", None, None, False

    def _beginnings(self) -> Iterator[EngineEvent]:
        started = None if self._has_started else read_document(self.directory, STARTED, _Started)
        if started is not None:
            self._has_started = True
            yield Started(attempt=self.attempt, pid=started.pid, at=started.at)

    def _usage(self) -> Iterator[EngineEvent]:
        used = read_document(self.directory, USAGE, _Used) if self._has_started else None
        if used is not None and used.at > self._used_at:
            self._used_at = used.at
            yield Usage(
                attempt=self.attempt, cpu_seconds=used.cpu_seconds, wall_seconds=used.wall_seconds, at=used.at
            )

    def _heard(self, report: dict[str, object], now: float, *, is_note: bool) -> EngineEvent:
        if is_note:
            return Noted(attempt=self.attempt, message=str(report.get("message", ""))[:500], at=now)
        return Reported(attempt=self.attempt, report=report, at=now)

    def _check_place(self, line: QueuedJob) -> None:
        """Pinned, and yet somebody moved it: it may run nowhere that nothing was promised to it."""
        if not self.recorded.hosts or set(line.hosts) == set(self.recorded.hosts) or self.misplaced:
            return
        self.misplaced = f"runs on {','.join(line.hosts)}, was placed on {','.join(self.recorded.hosts)}"
        self.note(f"Slurm job {self.job} {self.misplaced}: stopped")
        self.stop()

    def _check_gpus(self, line: QueuedJob) -> None:
        """More than was promised, as by `--exclusive`: nobody else gets those, though they count as free."""
        asked = self.recorded.submission
        promised = 0 if asked is None else asked.gpus or asked.gpus_each * len(asked.hosts)
        if line.gpus > promised and not self._told_gpus:
            self._told_gpus = True
            self.note(f"Slurm job {self.job} holds {line.gpus} GPUs, and {promised} were decided")

    def _vanished(self) -> Result:
        """Slurm says that it is over, and nobody wrote down how it ended."""
        line = self._sight.line if self._sight is not None else None
        state = line.state if line is not None else "not in the queue any more"
        words = f"Slurm job {self.job}: {state}" + (
            f" ({line.reason})" if line and line.reason != "None" else ""
        )
        if self.take_back():
            reason: Reason = "stopped" if self.wanted.stop else "not-started"
            self.conclude(reason, f"{words}, before it started{self._last_words()}")
        else:
            away = line is None or state in TAKEN_AWAY or state == "PENDING"
            self.conclude("node-lost" if away else "lost", f"{words}{self._last_words()}")
        found = read_result(self.directory)
        assert found is not None
        return found

    def _last_words(self) -> str:
        """The end of what Slurm and the supervisor had to say, for a line."""
        try:
            said = (read_bounded(self.directory, SUPERVISOR_LOG) or b"").decode(errors="replace").strip()
        except OSError:
            return ""
        last = said.rpartition("\n")[2][-_MOST_WORDS:]
        return ": " + "".join(letter for letter in last if letter.isprintable()) if last else ""

    def _explain(self, result: Result) -> Result:
        """Who is told to stop does not know by whom."""
        if self.misplaced:
            return replace(result, reason="not-started", message=self.misplaced)
        if result.reason == "stopped" and self._has_started and not self.wanted.stop:
            line = self._sight.line if self._sight is not None else None
            state = f": {line.state}" if line is not None and line.state in OVER else ""
            return replace(result, message=f"stopped by Slurm{state}")
        return result
