"""One site's machines in virtual time: what supervisors and training do while agents come and go.

What would lie on disks or run as processes is here and outlives an agent: attempts under supervisors with a
time to live, checkpoints in a store that real fences guard, results. `SimulatedWorld` is what an agent has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from wattline.checkpoint.errors import StaleEpochError
from wattline.checkpoint.repository import Entry, fence, list_checkpoints, publish
from wattline.checkpoint.stores import MissingError, Stored
from wattline.control.sites.messages import Held
from wattline.state import (
    BEGINNINGS,
    Acknowledged,
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointCopied,
    CheckpointSaved,
    Ending,
    Event,
    Progressed,
    State,
)

SAVE_EVERY_STEPS = 10  # one step takes a second
PREPARE_SECONDS = 2.0


class DictStore:
    """A checkpoint store without a disk: what `fence` and `publish` need of one."""

    streams = 1

    def __init__(self, address: str) -> None:
        self.address = address
        self._objects: dict[str, bytes] = {}

    def list(self, prefix: str = "") -> Sequence[Stored]:
        return [
            Stored(name, len(data), 0.0)
            for name, data in sorted(self._objects.items())
            if name.startswith(prefix)
        ]

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        if name not in self._objects:
            raise MissingError(f"{self.address}/{name}: there is none")
        return self._objects[name][start : None if length is None else start + length]

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        if name in self._objects and not replace:
            return False
        self._objects[name] = data
        return True

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        yield


@dataclass
class Attempt:
    """A supervisor and what runs below it."""

    job: str
    number: int
    gpus: int
    total: int
    begins_at: float  # true time: until then it is being prepared
    until: float  # on the machine's clock: its lease
    saves: bool
    copies_to: tuple[str, ...]
    from_site: str  # where its newest checkpoint is
    step: int = 0
    began_at_step: int = 0
    cap: float = 1.0
    started: bool = False
    saved_step: int = 0
    pausing: bool = False
    stopping: bool = False
    ending: Ending | None = None
    supervised: bool = True  # False: its supervisor was killed, and the command with it
    unsent: dict[str, int] = field(default_factory=dict)  # step to copy, by site

    @property
    def alive(self) -> bool:
        return self.started and self.ending is None and self.supervised

    @property
    def held_key(self) -> tuple[str, int]:
        return (self.job, self.number)


class Network(Protocol):
    """How checkpoints travel."""

    def send_copy(self, origin: str, attempt: Attempt, target: str, step_number: int) -> None: ...

    def fetch(self, origin: str, target: str, job: str) -> Entry | None:
        """The newest checkpoint of another site; None: it cannot be reached."""


class Machine:
    """A site without its agent."""

    def __init__(self, site: str, rate: float, offset: float, network: Network) -> None:
        self.site, self._rate, self._offset, self._network = site, rate, offset, network
        self.true_at = 0.0
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.stores: dict[str, DictStore] = {}
        self.destroyed = False
        self.rejected = 0  # what the fence kept out

    def clock(self) -> float:
        return self._offset + self._rate * self.true_at

    def store(self, job: str) -> DictStore:
        return self.stores.setdefault(job, DictStore(f"{self.site}/{job}"))

    def newest(self, job: str) -> Entry:
        """The one to go on from: the last that the last attempt published."""
        found = list_checkpoints(self.store(job))  # type: ignore[arg-type]
        return found[0] if found else Entry(name="", step=0, epoch=0, modified_at=0.0)

    def advance(self, true_at: float) -> None:
        """One second goes by."""
        self.true_at = true_at
        for attempt in self.attempts.values():
            if attempt.ending is not None or not attempt.supervised:
                continue
            if self.clock() >= attempt.until:
                attempt.ending = Ending.LOST  # the supervisor fences itself
            elif not attempt.started:
                if true_at >= attempt.begins_at:
                    self._begin(attempt)
            else:
                self._work(attempt)

    def draw_watts(self, gpu_watts: float) -> float:
        return sum(
            gpu_watts * attempt.gpus * attempt.cap for attempt in self.attempts.values() if attempt.alive
        )

    def arrive(self, job: str, number: int, step: int) -> bool:
        """A copy of a checkpoint from another site; False where a newer attempt owns the store."""
        try:
            publish(self.store(job), b"copy", step=step, epoch=number)  # type: ignore[arg-type]
        except StaleEpochError:
            self.rejected += 1
            return False
        return True

    def destroy(self) -> None:
        self.destroyed = True
        for attempt in self.attempts.values():
            attempt.supervised = False

    def _begin(self, attempt: Attempt) -> None:
        if attempt.saves and attempt.from_site not in ("", self.site):
            entry = self._network.fetch(attempt.from_site, self.site, attempt.job)
            if entry is None:
                attempt.ending = Ending.NOT_STARTED
                return
            if entry.step:
                self.arrive(attempt.job, entry.epoch, entry.step)
        attempt.started = True
        if attempt.saves:
            fence(self.store(attempt.job), attempt.number)  # type: ignore[arg-type]
            attempt.step = attempt.saved_step = self.newest(attempt.job).step
        attempt.began_at_step = attempt.step

    def _work(self, attempt: Attempt) -> None:
        if attempt.stopping:
            attempt.ending = Ending.STOPPED
            return
        attempt.step = min(attempt.step + 1, attempt.total)
        over = attempt.step >= attempt.total
        if attempt.saves and (
            over or attempt.pausing or attempt.step - attempt.saved_step >= SAVE_EVERY_STEPS
        ):
            try:
                publish(self.store(attempt.job), b"own", step=attempt.step, epoch=attempt.number)  # type: ignore[arg-type]
            except StaleEpochError:
                self.rejected += 1
                attempt.ending = Ending.FAILED
                return
            attempt.saved_step = attempt.step
            attempt.unsent |= dict.fromkeys(attempt.copies_to, attempt.step)
        for site, step in attempt.unsent.items():
            self._network.send_copy(self.site, attempt, site, step)
        if over:
            attempt.ending = Ending.SUCCEEDED
        elif attempt.pausing:
            attempt.ending = Ending.PAUSED


class SimulatedWorld:
    """What one agent process sees of its machine: it tells everything again that its state does not know."""

    def __init__(
        self, machine: Machine, state: State, base_at: float, copies: dict[tuple[str, int], dict[str, int]]
    ) -> None:
        self._machine, self._state, self._base_at, self._copies = machine, state, base_at, copies
        self._queue: list[Event] = []
        self._told_copies: set[tuple[str, int, str, int]] = set()
        for job_id in list(
            state.holding
        ):  # decided before a crash and perhaps never done: it was not started
            job = state.jobs[job_id]
            if (job_id, job.attempt) not in machine.attempts:
                say = "its agent was killed before it could start"
                self._queue.append(
                    AttemptEnded(at=self.now(), job=job_id, attempt=job.attempt, ending=Ending.LOST, say=say)
                )

    def now(self) -> float:
        return self._base_at + self._machine.clock()

    def monotonic(self) -> float:
        return self._machine.clock()

    def events(self) -> Sequence[Event]:
        found, self._queue = self._queue, []
        for job_id in list(self._state.holding):
            job = self._state.jobs[job_id]
            attempt = self._machine.attempts.get((job_id, job.attempt))
            if attempt is not None:
                found += self._look(attempt)
        return found

    def has_news(self) -> bool:
        holding = [
            self._machine.attempts.get((name, self._state.jobs[name].attempt)) for name in self._state.holding
        ]
        return bool(self._queue) or any(attempt is not None and self._differs(attempt) for attempt in holding)

    def _differs(self, attempt: Attempt) -> bool:
        job = self._state.jobs[attempt.job]
        saved = -1 if job.saved is None else job.saved.step
        copied = self._copies.get((attempt.job, attempt.number), {})
        untold = any(
            (*attempt.held_key, site, step) not in self._told_copies for site, step in copied.items()
        )
        return (
            attempt.ending is not None
            or not attempt.supervised
            or (attempt.started and job.started_at is None)
            or (attempt.saved_step > attempt.began_at_step and attempt.saved_step != saved)
            or untold
        )

    def _look(self, attempt: Attempt) -> Iterator[Event]:
        at, known = self.now(), self._state.jobs[attempt.job]
        job, number = attempt.job, attempt.number
        if attempt.started and known.started_at is None:
            yield AttemptStarted(at=at, job=job, attempt=number)
        step, site = attempt.saved_step, self._machine.site
        if step > attempt.began_at_step and (known.saved is None or known.saved.step != step):
            yield CheckpointSaved(at=at, job=job, attempt=number, step=step, site=site, size_bytes=1)
        for target, copied in self._copies.get((job, number), {}).items():
            if (job, number, target, copied) not in self._told_copies:
                self._told_copies.add((job, number, target, copied))
                yield CheckpointCopied(at=at, job=job, attempt=number, step=copied, site=target)
        if attempt.ending is not None or not attempt.supervised:
            yield Progressed(at=at, job=job, attempt=number, step=attempt.step, total=attempt.total)
            ending = attempt.ending or Ending.LOST
            outputs = f"{job}/{number}" if ending is Ending.SUCCEEDED else ""
            yield AttemptEnded(at=at, job=job, attempt=number, ending=ending, outputs=outputs)

    def apply(self, action: Action) -> None:
        if action.kind in BEGINNINGS:
            self._start(action)
            return
        attempt = self._machine.attempts.get((action.job, action.attempt))
        if attempt is None:
            return
        if action.kind is ActionKind.CAP_POWER:
            attempt.cap = action.fraction
            self._queue.append(Acknowledged(at=self.now(), action=action.id))
        elif action.kind is ActionKind.SHRINK_BATCH:
            self._queue.append(Acknowledged(at=self.now(), action=action.id))
        elif action.kind is ActionKind.PAUSE:
            attempt.pausing = True
        elif action.kind is ActionKind.STOP:
            attempt.stopping = True

    def _start(self, action: Action) -> None:
        if (action.job, action.attempt) in self._machine.attempts:
            return
        request = self._state.jobs[action.job].request
        self._machine.attempts[action.job, action.attempt] = Attempt(
            job=action.job,
            number=action.attempt,
            gpus=request.gpus,
            total=int(request.max_duration_seconds or 0) // 100,
            begins_at=self._machine.true_at + PREPARE_SECONDS,
            until=-1e18,  # it may not run before it was allowed to
            saves=request.checkpoints,
            copies_to=tuple(site for site in request.replicate_to if site != self._machine.site),
            from_site=action.from_site,
            cap=action.fraction,
        )

    def keep(self, until: Mapping[Held, float]) -> None:
        for held, deadline in until.items():
            attempt = self._machine.attempts.get((held.job, held.attempt))
            if attempt is not None and (attempt.ending is None):
                attempt.until = max(attempt.until, deadline)

    def is_over(self, held: Held) -> bool:
        attempt = self._machine.attempts.get((held.job, held.attempt))
        return attempt is not None and (attempt.ending is not None or not attempt.supervised)

    def end(self, held: Held) -> None:
        attempt = self._machine.attempts.get((held.job, held.attempt))
        if attempt is not None and attempt.ending is None:
            attempt.ending = Ending.LOST

    def sleep_until(self, _at: float | None) -> None:
        raise AssertionError("time is the simulation's")
