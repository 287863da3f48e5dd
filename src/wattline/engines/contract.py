"""The contract: what may be asked of an engine, and what does it tell?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Literal, Protocol

from wattline.errors import UnavailableError, UsageError

Reason = Literal["exited", "signaled", "timeout", "stopped", "lease-lost", "not-started", "lost", "node-lost"]
"""Why an attempt ended. `lost`: whoever would have written down its result was killed too. `node-lost`: the
same, and the engine vouches that the machine went away, or was given to somebody else."""


class UnknownAttemptError(UnavailableError):
    """A command names an attempt that this engine never started."""


class AttemptHeldError(UnavailableError):
    """The attempt still runs under a supervisor of another control process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One execution of one phase's command.

    The command runs as `/bin/sh -c` runs it, with `environment` and nothing inherited; the engine adds
    WATTLINE_ATTEMPT, and what a scheduler tells of the allocation (SLURM_…, the visible GPUs).
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
    lease_until: float | None = None
    """On the clock of `leases.now`: it ends then unless that is renewed, and outlives who started it.
    None: it lives as long as who started it."""
    site: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Where it was placed: GPUs by node, the first one leading. An engine that cannot choose leaves it."""
    peak_watts: float = 0.0
    """What it may draw there at most."""
    comment: str = ""
    """Why it runs there, in a line, for whoever looks at the engine's own listing."""
    user: str = ""
    """Whoever submitted the run; empty: nobody in particular."""
    folders: tuple[Path, ...] = ()
    """What it writes to beside its own directory."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """What an engine knows of a node that nobody else can tell."""

    node: str
    is_up: bool
    others_gpus: int
    """Held by what was not started through Wattline."""


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
        """After a restart: say how each of these attempts ended.

        One that is not in the answer still runs, under this engine from now on: `poll` tells of it, beginning
        with `Started`. Only an engine whose attempts outlive the control process leaves any out; others make
        sure that none runs.
        """

    def sweep(self, root: Path, known: Collection[Path], before: float = math.inf) -> list[str]:
        """End what runs in folders below `root` for attempts that are not among these; say what was ended.

        It may be called from another thread than the rest. What this engine holds itself is left alone, and
        so is what was begun since `before`, by the calendar: who looked then could not know it.
        """

    def nodes(self) -> list[NodeSeen]:
        """Its nodes as it sees them now; none where it has none of its own."""

    def close(self) -> None:
        """Let go. What cannot live without the control process is killed; who wants it polite stops first."""


class LeasedEngine(Engine, Protocol):
    """An engine whose attempts may outlive who commands them, for as long as their leases are renewed.

    After a restart, `recover` commands those again that live on one.
    """

    def renew(self, attempt: str, until: float) -> None:
        """Let an attempt with a lease go on until then; one that ends later already is left as it is."""

    def end(self, attempt: str) -> None:
        """Kill it at once, without asking it."""

    def living(self) -> Collection[str]:
        """Attempts that have not been told to have ended."""

    def leave(self) -> None:
        """Go, and let what has a lease run on."""


def check_share(attempt: str, name: str, value: float) -> None:
    """Refuse what is not a share of something."""
    if not 0.0 < value <= 1.0:
        raise UsageError(f"attempt {attempt}: {name} is a share above 0 and up to 1, got {value}")
