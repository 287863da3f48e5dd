"""Outlooking: what does the twin tell the policy of the hours ahead, once an hour?

Only from what is over: each site's price and carbon are forecast from their own past, and what an hour's
capacity is worth to others from the jobs that are there and from how many came lately.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wattline.policy.shifting.shifting import count_hour
from wattline.spec.policy import Policy
from wattline.state import (
    Event,
    Job,
    JobRequest,
    JobState,
    Outlooked,
    OutlookHour,
    RunSubmitted,
    State,
    seconds_left,
)
from wattline.twin.crowding import Floats, Load, coming_loads, price_crowding
from wattline.twin.surroundings.ahead import expect_hours
from wattline.twin.truth import Surroundings
from wattline.twin.world import TwinWorld
from wattline.units import SECONDS_PER_HOUR

AHEAD_HOURS = 60
_PAST_HOURS = 8 * 24
_LATELY_HOURS = 7 * 24.0
_MOST_LATELY = 10_000


class Outlooker:
    """Looks at the past of every site's series, and at who waits."""

    def __init__(self, surroundings: Mapping[str, Surroundings] | None = None) -> None:
        self._surroundings = surroundings or {}
        self._lately: deque[tuple[float, JobRequest]] = deque(maxlen=_MOST_LATELY)
        self._began_at: float | None = None
        self._crowding: tuple[float, Floats] | None = None

    def hear(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, RunSubmitted):
                self._lately += [(event.at, job) for job in event.jobs if _may_wait(job)]

    def look(self, state: State, policy: Policy, at: float) -> list[Outlooked]:
        """One outlook for each site, from the hour on in which this is."""
        begins_at = at // SECONDS_PER_HOUR * SECONDS_PER_HOUR
        self._began_at = begins_at if self._began_at is None else self._began_at
        expected = self.expected(begins_at)
        crowding = self._price_crowding(state, policy, begins_at, expected)
        return [
            Outlooked(
                at=at,
                source="twin",
                site=site,
                begins_at=begins_at,
                hours=tuple(
                    OutlookHour(hour.grams_co2_per_kwh, hour.usd_per_kwh, round(float(extra), 6))
                    for hour, extra in zip(hours, row, strict=True)
                ),
            )
            for (site, hours), row in zip(expected.items(), crowding, strict=True)
        ]

    def expected(self, begins_at: float) -> Mapping[str, Sequence[OutlookHour]]:
        """What each site's grid is expected to do, as many hours of all."""
        return {site: self._expect(around, begins_at) for site, around in self._surroundings.items()}

    def _expect(self, around: Surroundings, begins_at: float) -> list[OutlookHour]:
        times = [begins_at - hour * SECONDS_PER_HOUR for hour in range(_PAST_HOURS, 0, -1)]
        grams = expect_hours([around.grams_co2_per_kwh(at) for at in times], AHEAD_HOURS)
        usd = expect_hours([around.usd_per_kwh(at) for at in times], AHEAD_HOURS)
        least = 0.0  # no grid takes carbon in; that a forecast falls below is its own doing
        return [
            OutlookHour(None if gram is None else max(least, gram), price)
            for gram, price in zip(grams, usd, strict=True)
        ]

    def _price_crowding(
        self, state: State, policy: Policy, begins_at: float, expected: Mapping[str, Sequence[OutlookHour]]
    ) -> Floats:
        counted = [[count_hour(hour, policy) for hour in hours] for hours in expected.values()]
        ahead = len(counted[0]) if counted else AHEAD_HOURS
        if not counted or not ahead or any(price is None for row in counted for price in row):
            return np.zeros((len(expected), ahead))
        prices = np.array(counted, dtype=float)
        gpus = dict.fromkeys(expected, 0)
        for spot in state.plant.spots:
            gpus[spot.site.name] = gpus.get(spot.site.name, 0) + spot.node.gpus
        capacity = np.repeat([[float(gpus[site])] for site in expected], ahead, axis=1)
        loads = [*_present(state, begins_at), *self._coming(begins_at, ahead)]
        crowding = price_crowding(prices, capacity, loads, begin=self._moved_on(begins_at, prices.shape))
        self._crowding = (begins_at, crowding)
        return crowding

    def _moved_on(self, begins_at: float, shape: tuple[int, ...]) -> Floats | None:
        """The last answer, where it was an hour ago; what comes into view is as a day before."""
        if self._crowding is None or begins_at - self._crowding[0] != SECONDS_PER_HOUR:
            return None
        before = self._crowding[1]
        moved = np.concatenate([before[:, 1:], before[:, -24:-23]], axis=1)
        return moved if moved.shape == shape else None

    def _coming(self, begins_at: float, ahead: int) -> list[Load]:
        assert self._began_at is not None
        over = min(_LATELY_HOURS, (begins_at - self._began_at) / SECONDS_PER_HOUR)
        since = begins_at - over * SECONDS_PER_HOUR
        lately: list[tuple[float, float]] = []
        for came_at, request in self._lately:
            if came_at >= since and request.deadline_at is not None and request.max_duration_seconds:
                work = request.max_duration_seconds / SECONDS_PER_HOUR
                slack = max(0.0, (request.deadline_at - came_at) / SECONDS_PER_HOUR - work)
                lately += [(work, slack)] * max(1, request.gpus)
        return coming_loads(lately, over, ahead)


def _may_wait(request: JobRequest) -> bool:
    return request.deadline_at is not None and request.max_duration_seconds is not None


def _present(state: State, begins_at: float) -> list[Load]:
    """All that waits or runs and could do so at another time."""
    waiting = [key[2] for queue in state.waiting.values() for key in queue]
    loads = []
    for job in [state.jobs[job_id] for job_id in (*waiting, *state.holding)]:
        left, deadline_at = _left(job, begins_at), job.request.deadline_at
        if left is not None and deadline_at is not None:
            until = max(1.0, (deadline_at - begins_at) / SECONDS_PER_HOUR)
            loads.append(Load(0.0, until, left / SECONDS_PER_HOUR, float(job.request.gpus)))
    return loads


def _left(job: Job, at: float) -> float | None:
    left = seconds_left(job)
    if left is not None and job.state is JobState.RUNNING and job.started_at is not None:
        return max(0.0, left - (at - job.started_at))
    return left


class OutlookingWorld(TwinWorld):
    """A twin that tells, in the first look of each hour, what the hours ahead are expected to be."""

    def __init__(self, *args: Any, outlooker: Outlooker, state: State, policy: Policy, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outlooker, self._state, self._policy = outlooker, state, policy
        self._due_at = self.now()

    def events(self) -> Sequence[Event]:
        told = list(super().events())
        self._outlooker.hear(told)
        now = self.now()
        if now >= self._due_at:
            self._due_at = (now // SECONDS_PER_HOUR + 1) * SECONDS_PER_HOUR
            told += self._outlooker.look(self._state, self._policy, now)
        return told
