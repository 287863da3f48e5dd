"""How right is a job told when it will start?

    python -m bench.eta [--short]

Philly without its first 20 days is replayed on three-sites by the default policy, at three arrival scales.
How long jobs take is hidden. Every job that does not start when it comes is told at once, by `Foresight` as
the live loop uses it; what it is told is held against when it starts. The first 500 that wait are left out.
The peer tells the quantiles of the last 100 waits that ended.

Declared: the same, where each job says how long it takes and keeps to it; what a job is pledged when it
comes is held against when it starts.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from bench.twin import PHILLY, SKIP_DAYS
from wattline.spec import read_facility, read_policy
from wattline.state import AttemptStarted, Decision, Event, JobState, RunSubmitted, State
from wattline.twin.forecast import TwinForecaster
from wattline.twin.foresight import Foresight
from wattline.twin.meters import Meters
from wattline.twin.run import BEGINS_AT, RunJournal, Setting, drive, metered
from wattline.twin.traces import read_trace
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival, arrivals_of
from wattline.twin.world import TwinWorld

SCALES = (4.5, 5.0, 6.0)
LEFT_OUT = 500
SHORT_JOBS = 14_000  # two and a half days: the queue has been long for half a day
LIVE_SECONDS = 0.25  # what the live loop allows a forecast
GRACE_SECONDS = 60.0
PART = 3_000  # of jobs that came one after the other
_LAST = 100


@dataclass(slots=True)
class Told:
    """What one job was told when it came, by each, in seconds from then; and how long it waited."""

    at: float
    eta: tuple[float, float]
    peer: tuple[float, float]
    pledged: float | None = None
    gpus: int = 1
    waited: float = math.inf


class Watch:
    """Hears what the loop hears, and tells every job that waits when it has come."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.foresight = Foresight(TwinForecaster(budget_seconds=LIVE_SECONDS))
        self._policy = read_policy("default")
        self.told: dict[str, Told] = {}
        self._waits: deque[float] = deque(maxlen=_LAST)
        self._came: list[str] = []

    def hear(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, RunSubmitted):
                self._came += [request.job for request in event.jobs]
            elif isinstance(event, AttemptStarted) and event.job in self.told:
                self._start(self.told[event.job], event.at)
        self.foresight.hear(events)

    def _start(self, told: Told, at: float) -> None:
        if told.waited == math.inf:  # it has not started before
            told.waited = at - told.at
            self._waits.append(told.waited)

    def rest(self, at: float) -> None:
        """The step is over: who came with it and still waits is told."""
        waits = sorted(self._waits) or [0.0] if self._came else []
        for job_id in self._came:
            job = self.state.jobs.get(job_id)
            if job is None or job.state is not JobState.WAITING:
                continue
            expected = self.foresight.expect(self.state, self._policy, job, at)
            assert expected.p50_at is not None
            assert expected.p90_at is not None
            self.foresight.hear([self.foresight.told((expected,), at)])
            eta = (expected.p50_at - at, expected.p90_at - at)
            peer = (quantile(waits, 0.5), quantile(waits, 0.9))
            pledged = None if expected.by_at is None else expected.by_at - at
            self.told[job_id] = Told(at, eta, peer, pledged, job.request.gpus)
        self._came.clear()


class WatchedWorld(TwinWorld):
    """Says when a step is over."""

    watch: Watch

    def sleep_until(self, at: float | None) -> None:
        self.watch.rest(self.now())
        super().sleep_until(at)


class WatchedJournal(RunJournal):
    """Lets a watch hear what is written down."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def append(
        self,
        events: Sequence[Event],
        digest: Callable[[], str],
        decision: Decision,
        *,
        decided: bool = True,
    ) -> None:
        super().append(events, digest, decision, decided=decided)
        self._watch.hear(events)


def quantile(values: Sequence[float], share: float) -> float:
    return values[math.ceil(share * len(values)) - 1]


def replay(
    scale: float, most_jobs: int | None, watch_of: Callable[[State], Watch] = Watch, *, declared: bool
) -> Watch:
    """The loop of `twin.run`, watched."""
    trace = read_trace(PHILLY, arrival_scale=scale, skip_days=SKIP_DAYS, most_jobs=most_jobs)
    setting = Setting(
        name="philly",
        facility=metered(read_facility("three-sites")),
        policy=read_policy("default"),
        arrivals=lambda: declare(arrivals_of(trace.jobs, BEGINS_AT, 0), declared=declared),
        arrival_scale=scale,
    )
    state = State(setting.facility)
    truth = Truth(state.plant, seed=0, exact=False, at=BEGINS_AT)
    world = WatchedWorld(
        state.plant,
        setting.arrivals(),
        truth,
        Meters(truth, state.plant, 0, exact=False),
        begins_at=BEGINS_AT,
        would_wait=lambda request: request.shape in state.stuck,
    )
    watch = world.watch = watch_of(state)
    drive(world, state, setting, WatchedJournal(watch))
    return watch


def declare(arrivals: Iterator[Arrival], *, declared: bool) -> Iterator[Arrival]:
    """Jobs that say how long they take, or nothing."""
    for arrival in arrivals:
        limit = arrival.work_seconds if declared else None
        request = msgspec.structs.replace(arrival.request, max_duration_seconds=limit)
        yield msgspec.structs.replace(arrival, request=request)


@dataclass(frozen=True, slots=True)
class Score:
    """Of one way of telling, over many jobs."""

    jobs: int
    by_p50: float
    by_p90: float
    loss_seconds: float  # pinball, at p90
    over: float  # p90 by how long it was, the median

    @staticmethod
    def of(waits: Sequence[tuple[float, tuple[float, float]]]) -> Score:
        jobs = len(waits)
        losses = [
            0.9 * (waited - p90) if waited > p90 else 0.1 * (p90 - waited) for waited, (_, p90) in waits
        ]
        return Score(
            jobs,
            sum(waited <= p50 for waited, (p50, _) in waits) / jobs,
            sum(waited <= p90 for waited, (_, p90) in waits) / jobs,
            sum(losses) / jobs,
            statistics.median(p90 / max(1.0, waited) for waited, (_, p90) in waits),
        )


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    bar: str
    figure: str
    met: bool


def judge(scale: float, told: Sequence[Told]) -> list[Row]:
    """Every bar, at one arrival scale."""
    score = Score.of([(each.waited, each.eta) for each in told])
    peer = Score.of([(each.waited, each.peer) for each in told])
    at = f"scale {scale:g}, {score.jobs:,} jobs"
    most = 0.9 if scale == SCALES[0] else 1.0
    loss, other = score.loss_seconds, peer.loss_seconds
    compared = f"{loss / 60:.0f} of {other / 60:.0f} min: {loss / other:.2f}"
    by = f"{100 * peer.by_p50:.0f} % by p50, {100 * peer.by_p90:.0f} % by p90"
    return [
        _within(f"{at}: started by p90", score.by_p90, 0.80, 0.97),
        _within(f"{at}: started by p50", score.by_p50, 0.40, 0.60),
        Row(f"{at}: loss at p90 by the peer's", f"<= {most:.2f}", compared, loss <= most * other),
        Row(f"{at}: p90 by how long it was, median", "<= 3", f"{score.over:.2f}", score.over <= 3.0),
        Row(f"{at}: the peer, the last 100 waits", "", by, met=True),
    ]


def judge_all(told: Iterable[Told]) -> list[Row]:
    """Over all arrival scales."""
    score = Score.of([(each.waited, each.eta) for each in told])
    return [
        _within("all scales: started by p90", score.by_p90, 0.85, 0.95),
        _within("all scales: started by p50", score.by_p50, 0.40, 0.60),
    ]


def _within(what: str, share: float, least: float, most: float) -> Row:
    bar = f"{100 * least:.0f}-{100 * most:.0f} %"
    return Row(what, bar, f"{100 * share:.1f} %", least <= share <= most)


def tell_all(scale: float, most_jobs: int | None, *, declared: bool = False) -> list[Told]:
    watch = replay(scale, most_jobs, declared=declared)
    return [each for each in list(watch.told.values())[LEFT_OUT:] if each.waited < math.inf]


def hold_to_pledges(scale: float, told: Sequence[Told]) -> list[Row]:
    """Jobs that were pledged nothing count as pledges that were not kept."""
    at = f"scale {scale:g}, durations declared, {len(told):,} jobs"
    kept = [each.pledged is not None and each.waited <= each.pledged + GRACE_SECONDS for each in told]
    large = [is_kept for each, is_kept in zip(told, kept, strict=True) if each.gpus > 1]
    parts = [kept[first : first + PART] for first in range(0, len(kept) - PART + 1, PART)] or [kept]
    worst = min(sum(part) / len(part) for part in parts)
    over = [each.pledged / max(1.0, each.waited) for each in told if each.pledged is not None]
    early = [each.pledged - each.waited for each in told if each.pledged is not None]
    by = [sum(each.waited <= each.eta[which] for each in told) / len(told) for which in (0, 1)]
    slack = f"{statistics.median(over):.2f}, {statistics.median(early) / 60:.0f} min"
    return [
        _within(f"{at}: started as pledged + 60 s", sum(kept) / len(kept), 0.95, 1.0),
        Row(f"{at}: pledged by how long it was; earlier by", "", slack, met=True),
        Row(f"{at}: kept to jobs of 2 GPUs and more", "", f"{100 * sum(large) / len(large):.1f} %", met=True),
        Row(f"{at}: kept, the worst {PART:,} in a row", "", f"{100 * worst:.1f} %", met=True),
        Row(f"{at}: by p50, p90", "", f"{100 * by[0]:.0f}, {100 * by[1]:.0f} %", met=True),
    ]


def show(row: Row) -> None:
    verdict = ("met" if row.met else "missed") if row.bar else ""
    print(f"{row.what:<68}{row.bar:>12}{row.figure:>32}  {verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT_JOBS:,} jobs at scale {SCALES[0]:g}")
    parser.add_argument("--only", choices=("hidden", "declared"))
    parser.add_argument("--scale", type=float, action="append", help="other arrival scales")
    arguments = parser.parse_args()
    began = time.process_time()
    scales, jobs = (SCALES[:1], SHORT_JOBS) if arguments.short else (SCALES, None)
    scales = tuple(arguments.scale or scales)
    if arguments.only != "declared":
        told: list[Told] = []
        for scale in scales:
            some = tell_all(scale, jobs)
            for row in judge(scale, some):
                show(row)
            told += some
        if not arguments.short:
            for row in judge_all(told):
                show(row)
    if arguments.only == "declared" or (arguments.only is None and not arguments.short):
        for scale in scales:
            for row in hold_to_pledges(scale, tell_all(scale, jobs, declared=True)):
                show(row)
    print(f"{time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
