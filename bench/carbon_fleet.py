"""A fleet by the hour: jobs with deadlines, sites with a capacity and a carbon intensity, and who runs when.

Work is counted in hours at width 1. Whoever goes on after standing still, at another width or at another site
loses the time it takes to save and to restart, and draws power meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from wattline.policy.shifting.hours_ahead import RankedHours
from wattline.policy.shifting.urgency import Waitable, choose_urgent
from wattline.twin.crowding import Load, coming_loads, price_crowding
from wattline.twin.surroundings.ahead import expect_hours

SLACK_HOURS = 24
LONGEST_HOURS = 24
SPEED = (0.0, 1.0, 2.0**0.9)  # by width
WORK_BY_WIDTH = (1.0, SPEED[2] - 1.0)
_HORIZON_HOURS = LONGEST_HOURS + SLACK_HOURS + 12
_LATELY_HOURS = 7 * 24
_PAST_HOURS = 9 * 24
_MARGIN_HOURS = 0.5  # kept before a deadline, beside what saving and restarting take

Past = Sequence[Sequence[float]]  # by site, all hours that are over
Held = tuple[int, int]  # site, width


@dataclass(slots=True)
class FleetJob:
    name: str
    arrives: int  # hours
    work: float
    deadline: int
    left: float = 0.0
    width: int = 0
    site: int = -1
    begun: bool = False
    ended: int | None = None


@dataclass(slots=True)
class Outcome:
    grams: float = 0.0  # at 1 kW for each unit of width
    missed: int = 0
    switches: int = 0
    jobs: int = 0

    def add(self, other: Outcome) -> None:
        self.grams += other.grams
        self.missed += other.missed
        self.switches += other.switches
        self.jobs += other.jobs


Planner = Callable[[int, list[FleetJob], Past], dict[str, Held]]


def draw_jobs(seed: int, utilisation: float, capacity: int, start: int, hours: int) -> list[FleetJob]:
    """Poisson arrivals of 1 to 24 h, so many that they fill this share of the capacity at width 1."""
    chance = random.Random(f"{seed}/{utilisation}/{start}")
    rate = utilisation * capacity / ((1 + LONGEST_HOURS) / 2)
    jobs: list[FleetJob] = []
    at = chance.expovariate(rate)
    while at < hours:
        work, arrives = chance.randint(1, LONGEST_HOURS), start + int(at) + 1
        deadline = arrives + work + SLACK_HOURS
        jobs.append(FleetJob(f"j{len(jobs):05}", arrives, float(work), deadline))
        at += chance.expovariate(rate)
    return jobs


def run_fleet(
    jobs: Sequence[FleetJob],
    series: Sequence[Sequence[float]],
    capacity: int,
    switch_hours: float,
    planner: Planner,
) -> Outcome:
    """Play the jobs through; the planner sees the hours that are over and nothing else."""
    waiting = [FleetJob(job.name, job.arrives, job.work, job.deadline, left=job.work) for job in jobs]
    outcome, active, hour = Outcome(jobs=len(jobs)), list[FleetJob](), jobs[0].arrives
    while waiting or active:
        while waiting and waiting[0].arrives <= hour:
            active.append(waiting.pop(0))
        chosen = planner(hour, active, [list(site[max(0, hour - _PAST_HOURS) : hour]) for site in series])
        for site in range(len(series)):
            here = [job for job in active if chosen.get(job.name, (-1, 0))[0] == site]
            used = sum(unit_hours(job, chosen[job.name], switch_hours) for job in here)
            assert used <= capacity + 1e-6
        for job in active:
            _run_an_hour(job, chosen.get(job.name, (job.site, 0)), series, hour, switch_hours, outcome)
        outcome.missed += sum(job.left <= 0.0 and hour + 1 > job.deadline for job in active)
        active = [job for job in active if job.left > 0.0]
        hour += 1
    return outcome


def unit_hours(job: FleetJob, held: Held, switch_hours: float) -> float:
    """What a job takes of this hour's capacity: one that ends within it leaves the rest to the next."""
    width = held[1]
    lost = switch_hours if job.begun and held != (job.site, job.width) else 0.0
    return width * min(1.0, lost + job.left / SPEED[width]) if width else 0.0


def _run_an_hour(
    job: FleetJob,
    held: Held,
    series: Sequence[Sequence[float]],
    hour: int,
    switch_hours: float,
    outcome: Outcome,
) -> None:
    site, width = held
    if width:
        switches = job.begun and (site, width) != (job.site, job.width)
        lost = switch_hours if switches else 0.0
        outcome.switches += switches
        taken = min(1.0, lost + job.left / SPEED[width])
        job.left -= (taken - lost) * SPEED[width]
        if job.left < 1e-9:
            job.left = 0.0
        outcome.grams += width * taken * series[site][hour]
        job.begun, job.site = True, site
    job.width = width


def run_blind(capacity: int, sites: int = 1) -> Planner:
    """Whoever comes first runs at once, at one width, at the next site in turn, until it is done."""

    def plan(_hour: int, active: list[FleetJob], _past: Past) -> dict[str, Held]:
        chosen: dict[str, Held] = {}
        free = [capacity] * sites
        for job in sorted(active, key=lambda job: (not job.width, job.arrives, job.name)):
            site = job.site if job.width else int(job.name[1:]) % sites
            if free[site]:
                chosen[job.name] = (site, 1)
                free[site] -= 1
        return chosen

    return plan


def run_threshold(capacity: int, switch_hours: float) -> Planner:
    """What is common: run while the last hour was among the cleanest third of the day before, or must."""

    def plan(hour: int, active: list[FleetJob], past: Past) -> dict[str, Held]:
        day = sorted(past[0][-24:])
        clean = past[0][-1] <= day[len(day) // 3]
        urgent = _urgent(hour, active, capacity, switch_hours)
        first = sorted(active, key=lambda job: (job.name not in urgent, job.deadline - job.left))
        chosen = [job for job in first if clean or job.name in urgent][:capacity]
        return {job.name: (0, 1) for job in chosen}

    return plan


@dataclass(slots=True)
class Shifting:
    """Forecast, price what is crowded, and let each job weigh this hour against its later ones."""

    capacity: int
    switch_hours: float
    ahead: Callable[[int, Past], list[list[float]]] | None = None  # another forecast, to see what it is worth
    _crowding: np.ndarray | None = None
    _seen: dict[str, tuple[int, float, float]] = field(default_factory=dict)  # came when, work, slack
    _began: int = -1

    def __call__(self, hour: int, active: list[FleetJob], past: Past) -> dict[str, Held]:
        expected = np.array(self.ahead(hour, past) if self.ahead else _forecast(past))
        loads = [
            Load(0.0, float(job.deadline - hour), self._needs(job), 1.0) for job in active
        ] + self._coming(hour, active)
        room = np.full(expected.shape, float(self.capacity))
        crowding = price_crowding(expected, room, loads, WORK_BY_WIDTH, self._crowding)
        # An hour on, and what comes into view at the end is as it was a day before.
        self._crowding = np.concatenate([crowding[:, 1:], crowding[:, -24:-23]], axis=1)
        ranked = RankedHours.of((expected + crowding).min(axis=0).tolist(), WORK_BY_WIDTH)
        urgent = _urgent(hour, active, self.capacity * len(past), self.switch_hours)
        bids = self._bids(hour, active, expected[:, 0].tolist(), ranked, urgent)
        return self._clear(bids, {job.name: job for job in active}, len(past))

    def _needs(self, job: FleetJob) -> float:
        return job.left + (self.switch_hours if job.begun else 0.0)

    def _coming(self, hour: int, active: list[FleetJob]) -> list[Load]:
        if self._began < 0:
            self._began = hour
        for job in active:
            self._seen.setdefault(job.name, (job.arrives, job.work, job.deadline - job.arrives - job.work))
        over = min(_LATELY_HOURS, hour - self._began + 1)
        lately = [(work, slack) for came, work, slack in self._seen.values() if came > hour - over]
        return coming_loads(lately, float(over), _HORIZON_HOURS)

    def _bids(
        self, hour: int, active: list[FleetJob], now: list[float], ranked: RankedHours, urgent: set[str]
    ) -> list[tuple[float, str, int, int]]:
        """What it is worth to each job to run now, by site and width."""
        bids = []
        for job in active:
            later = ranked.price_of_later(self._needs(job), job.deadline - hour)
            for site, price in enumerate(now):
                change = self.switch_hours * price / 2.0
                for width, work in enumerate(WORK_BY_WIDTH, start=1):
                    worth = min(later, 1e6) * work - price
                    if width == 1 and job.name in urgent:
                        worth += 1e9
                    if site == job.site and job.width >= width:
                        worth += change
                    elif job.begun:
                        worth -= change
                    bids.append((-worth, job.name, width, site))
        return bids

    def _clear(
        self, bids: list[tuple[float, str, int, int]], jobs: dict[str, FleetJob], sites: int
    ) -> dict[str, Held]:
        """The highest bids first, for as long as there is room where they want to be."""
        chosen: dict[str, Held] = {}
        free = [float(self.capacity)] * sites
        for cost, name, width, site in sorted(bids):
            if cost >= 0.0:
                break
            held = chosen.get(name)
            if held is not None if width == 1 else held != (site, width - 1):
                continue
            before = unit_hours(jobs[name], held, self.switch_hours) if held else 0.0
            more = unit_hours(jobs[name], (site, width), self.switch_hours) - before
            if more <= free[site]:
                chosen[name] = (site, width)
                free[site] -= more
        return chosen


def _forecast(past: Past) -> list[list[float]]:
    rows = []
    for site in past:
        ahead = expect_hours(site, _HORIZON_HOURS)
        rows.append([site[-1] if value is None else max(0.0, value) for value in ahead])
    return rows


def _urgent(hour: int, active: list[FleetJob], capacity: int, switch_hours: float) -> set[str]:
    jobs = []
    for job in active:
        work = job.left + switch_hours + _MARGIN_HOURS
        jobs.append(Waitable(job.name, work, job.deadline - hour - work, 1.0))
    return choose_urgent(jobs, capacity, 1.0)
