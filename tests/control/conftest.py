"""A world that answers as badly as worlds do: late, twice, wrongly or not at all; the same for one seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence

import pytest

from building import MONDAY, a_job, a_ladder, adopted
from wattline.state import (
    BEGINNINGS,
    Acknowledged,
    Action,
    ActionFailed,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    Measured,
    RunSubmitted,
    Usage,
)


class ScriptedWorld:
    """Jobs run for minutes, meters swing over their caps, and one answer in five goes astray.

    Losing is losing an order or an answer, never the end of an attempt that has begun: a world keeps
    telling how an attempt ended whenever it is asked about it again.
    """

    def __init__(self, seed: int, *, runs: int = 12) -> None:
        self._chance = random.Random(seed)
        self._at = MONDAY
        self._coming: list[tuple[float, int, Event]] = []
        self._count = 0
        self._answers: dict[str, Event] = {}
        self._ended: dict[tuple[str, int], AttemptEnded] = {}
        self._running: set[tuple[str, int]] = set()
        self._tell(adopted(MONDAY))
        for number in range(runs):
            self._submit(number)
        self._measures_at = MONDAY

    def now(self) -> float:
        return self._at

    def events(self) -> Sequence[Event]:
        found: list[Event] = []
        if self._measures_at <= self._at:
            self._measures_at = self._at + 15.0
            found.append(self._measured())
        while self._coming and self._coming[0][0] <= self._at:
            found.append(heapq.heappop(self._coming)[2])
        return found

    def sleep_until(self, at: float | None) -> None:
        coming = [self._coming[0][0]] if self._coming else []
        asked = [] if at is None else [at]
        self._at = max(self._at + 0.5, min([self._measures_at, *coming, *asked]))

    @property
    def silent(self) -> bool:
        return not self._coming

    def apply(self, action: Action) -> None:
        fate = self._chance.random()
        if fate < 0.1:
            return  # the order is lost
        if action.id not in self._answers:
            self._do(action)
        if fate > 0.2:
            self._tell(self._answers[action.id], delay=self._chance.choice((0.0, 1.0, 5.0, 70.0)))
        if fate > 0.9:
            self._tell(self._answers[action.id], delay=90.0)

    def _do(self, action: Action) -> None:
        attempt, at = (action.job, action.attempt), self._at
        gone = attempt not in self._running
        if action.kind in BEGINNINGS:
            if attempt in self._ended:  # a stop came first: it must not begin any more
                answer: Event = self._ended[attempt]
            elif self._chance.random() < 0.1:
                answer = ActionFailed(at=at, action=action.id, say="the node said no")
            else:
                answer = AttemptStarted(at=at, job=action.job, attempt=action.attempt)
                self._running.add(attempt)
                self._live(action)
        elif action.kind in (ActionKind.PAUSE, ActionKind.STOP):
            paused = action.kind is ActionKind.PAUSE and not gone
            answer = self._end(attempt, Ending.PAUSED if paused else Ending.STOPPED, at)
        elif gone:
            answer = ActionFailed(at=at, action=action.id, say="not running")
        else:
            answer = Acknowledged(at=at, action=action.id)
        self._answers[action.id] = answer

    def _live(self, action: Action) -> None:
        """How the attempt would go on if nobody touched it."""
        attempt, lasts = (action.job, action.attempt), self._chance.uniform(30.0, 900.0)
        assert action.place is not None
        saved = CheckpointSaved(
            at=self._at + lasts / 2, job=action.job, attempt=action.attempt, step=1, site=action.place.site
        )
        self._tell(saved, delay=lasts / 2)
        ending = self._chance.choice((Ending.SUCCEEDED,) * 6 + (Ending.FAILED, Ending.LOST))
        ended = AttemptEnded(
            at=self._at + lasts,
            job=attempt[0],
            attempt=attempt[1],
            ending=ending,
            usage=Usage(gpu_hours=lasts / 3600),
        )
        self._tell(ended, delay=lasts)

    def _end(self, attempt: tuple[str, int], ending: Ending, at: float) -> AttemptEnded:
        self._running.discard(attempt)
        ended = AttemptEnded(at=at, job=attempt[0], attempt=attempt[1], ending=ending)
        return self._ended.setdefault(attempt, ended)

    def _tell(self, event: Event, delay: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._coming, (self._at + delay, self._count, event))

    def _submit(self, number: int) -> None:
        run, delay = f"r{number:02}", self._chance.uniform(0.0, 1200.0)
        ladder = a_ladder({"cap_power": "60%"}, {"pause": "2min"}, {"migrate": "any"}, {"stop": True})
        train = a_job(
            f"{run}/train",
            gpus=self._chance.choice((1, 2, 4, 8, 12)),
            checkpoints=number % 3 != 0,
            ladder=ladder,
            max_duration_seconds=3600.0,
        )
        jobs = (train, a_job(f"{run}/eval", gpus=0, after=(train.job,), max_duration_seconds=600.0))
        self._tell(RunSubmitted(at=MONDAY + delay, run=run, pipeline="p", jobs=jobs), delay)

    def _measured(self) -> Measured:
        """Racks swing between nearly nothing and a little more than their cap."""
        share = self._chance.choice((0.02, 0.3, 0.5, 0.7, 0.9, 1.05))
        meters = (("r1", "rack_watts", 5000), ("r2", "rack_watts", 5000), ("loop", "loop_heat_watts", 10_000),
                  ("feed-a", "supply_watts", 10_000))  # fmt: skip
        readings = tuple((f"zurich/{name}", quantity, cap * share) for name, quantity, cap in meters)
        return Measured(at=self._at, readings=readings)


@pytest.fixture
def a_scripted_world() -> Callable[..., ScriptedWorld]:
    return ScriptedWorld
