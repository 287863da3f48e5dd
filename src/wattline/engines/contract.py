"""The contract: what may be asked of an engine, and what does it tell?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Literal, Protocol

from wattline.errors import UnavailableError

Reason = Literal["exited", "signaled", "timeout", "stopped", "lease-lost", "not-started", "lost"]
"""Why an attempt ended. `lost`: whoever would have written down its result was killed too."""


class UnknownAttemptError(UnavailableError):
    """A command names an attempt that this engine never started."""


class AttemptHeldError(UnavailableError):
    """The attempt still runs under a supervisor of another control process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One execution of one phase's command.

    The command runs as `/bin/sh -c` runs it, with `environment` and nothing inherited; the engine adds
    WATTLINE_ATTEMPT alone.
    """

    attempt: str
    """Unique, such as "run-id/train/3"; a second start of the same attempt is the same start."""
    epoch: int
    directory: Path
    """The attempt's own, for its log, reports and result."""
    working_directory: Path
    command: str
    environment: Mapping[str, str]
    max_duration_seconds: float | None = None
    grace_seconds: float = 5.0
    """Between a polite request and the next, less polite one."""
    checkpoint_signal: int | None = None
    """For scripts that may not be changed: makes them save. Sent only to processes that catch it."""
    finish_signal: int = SIGTERM
    output_limit_bytes: int = 64 << 20
    cpus: float = 1.0
    """How many it could keep busy: a throttled attempt gets its duty of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How an attempt ended. An exit code and a signal are never mixed: one of them is None."""

    epoch: int
    reason: Reason
    code: int | None
    signal: int | None
    cpu_seconds: float
    wall_seconds: float
    started_at: float
    ended_at: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The command runs, as this process."""

    attempt: str
    pid: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the attempt's whole process tree has used since it started."""

    attempt: str
    cpu_seconds: float
    wall_seconds: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What the training itself said; the engine vouches only for `kind` being text."""

    attempt: str
    report: dict[str, object]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something a person should know that ends nothing: an unreadable report, a signal nobody catches."""

    attempt: str
    message: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last event of an attempt: nothing of it runs any more."""

    attempt: str
    result: Result
    at: float


EngineEvent = Started | Usage | Reported | Noted | Ended


class Engine(Protocol):
    """Where work runs. Commands return at once; what came of them is an event.

    A command to an attempt that has ended does nothing; one to an attempt that was never started raises
    UnknownAttemptError.
    """

    @property
    def name(self) -> str: ...

    def start(self, launch: Launch) -> None: ...

    def throttle(self, attempt: str, duty: float) -> None:
        """Let it run this share of the time, above 0 and up to 1."""

    def shrink(self, attempt: str, in_flight: float) -> None:
        """Let the training hold this share of its batch in flight, above 0 and up to 1."""

    def request_checkpoint(self, attempt: str) -> None: ...

    def request_pause(self, attempt: str) -> None:
        """Save a checkpoint and exit. It is only ever a request: `stop` is the one that insists.

        With a checkpoint signal, that signal is sent at once and the finish signal after the grace.
        """

    def freeze(self, attempt: str) -> None: ...

    def thaw(self, attempt: str) -> None: ...

    def stop(self, attempt: str) -> None:
        """Ask it to finish; kill whatever is left after the grace."""

    def poll(self) -> list[EngineEvent]:
        """What happened since the last call; never blocks."""

    def wait(self, timeout_seconds: float) -> None:
        """Return when something may have happened, or after the timeout."""

    def recover(self, directories: Iterable[Path], timeout_seconds: float = 10.0) -> dict[Path, Result]:
        """After a restart: make sure that none of these attempts runs, and say how each ended."""

    def close(self) -> None:
        """Kill everything it started; who wants it polite stops first."""
