"""Shifting: should a job with a deadline run now, or in hours that are cleaner or cheaper?

What hours are expected to be stands in the state, with its age. A job weighs this hour against those it could
still use before its deadline. Without a deadline, a longest duration or an outlook that is fresh it runs as
soon as it fits. A job that checkpoints may use hours that are apart; another needs them in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.shifting.hours_ahead import RankedHours
from wattline.policy.shifting.urgency import Waitable, choose_urgent
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    Ending,
    Job,
    JobState,
    Outcome,
    Outlooked,
    OutlookHour,
    Snapshot,
    Verdict,
    seconds_left,
)
from wattline.units import SECONDS_PER_HOUR


class Shifted(msgspec.Struct):
    """What becomes of running jobs, and what those that wait are judged by."""

    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    shift: Shift | None = None


_SiteHour = tuple[str, OutlookHour]


def shift_hours(draft: Snapshot, policy: Policy) -> Shifted:
    """Suspend what would do better later. It waits in line again, and comes back when its hour has come."""
    shift = Shift(draft, policy)
    shifted = Shifted(shift=shift)
    if not policy.shifting.suspend or not draft.holding:
        return shifted
    shifted.looks.append(shift.next_hour_at)
    if not shift.has_news:
        return shifted
    for job_id in sorted(draft.holding):
        job = draft.job(job_id)
        if job.state is not JobState.RUNNING or not job.request.checkpoints or job.asked:
            continue
        if sum(past.ending is Ending.PAUSED for past in job.past) >= policy.shifting.most_suspends:
            continue
        verdict = shift.judge(job)
        if verdict is not None:
            action = next_action(job, ActionKind.PAUSE, because=verdict.sentence(), yields=True)
            draft.issue(action)
            shifted.actions.append(action)
            shifted.verdicts.append(msgspec.structs.replace(verdict, outcome=Outcome.PRESS))
    return shifted


def count_hour(hour: OutlookHour, policy: Policy) -> float | None:
    """What a kWh of an hour counts for; None where that is not known."""
    grams, usd, weights = hour.grams_co2_per_kwh, hour.usd_per_kwh, policy.weights
    if policy.shifting.by == "carbon":
        price = grams
    elif policy.shifting.by == "price":
        price = usd
    else:
        both = grams is not None and usd is not None
        price = weights.cost * (usd or 0.0) + weights.carbon * (grams or 0.0) / 1000.0 if both else None
    return price if price is not None and math.isfinite(price) else None


def is_held_back(job: Job) -> bool:
    """Whether the last that was said of a job is that it waits for better hours."""
    return bool(job.verdicts) and all(
        verdict.outcome is Outcome.WAIT and verdict.rule.startswith("shift.") for verdict in job.verdicts
    )


class Shift:
    """The hours ahead of one decision, and who can wait for them no longer."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, self._policy, self._rule = draft, policy, policy.shifting
        self._hour_at = draft.at // SECONDS_PER_HOUR * SECONDS_PER_HOUR
        self._urgent: set[str] | None = None
        self._known: dict[tuple[str, ...], _Hours | None] = {}  # by the sites that a job may use

    @property
    def next_hour_at(self) -> float:
        return self._hour_at + SECONDS_PER_HOUR

    @property
    def has_news(self) -> bool:
        """Whether running jobs may be worth another look: another hour, or another outlook of it."""
        decided_at = self._draft.decided_at
        newest_at = max((outlook.at for outlook in self._draft.outlooks.values()), default=-math.inf)
        return decided_at < self._hour_at or decided_at < newest_at

    def judge(self, job: Job) -> Verdict | None:
        """Why a job had better not run now; None where it may."""
        work_seconds = self._work_seconds(job)
        if work_seconds is None or not self._draft.outlooks:
            return None
        sites = self._sites(job)
        hours = self._hours_at(sites)
        if hours is None or job.id in self._urgent_jobs():
            return None
        here = self._best(sites, 0)
        if job.state is JobState.RUNNING and job.place is not None:  # where it runs, not where it could
            if job.place.site not in sites:
                return None
            here = self._best((job.place.site,), 0)
            now = self._price(here[1], crowded=False)
            assert now is not None  # all its sites are known in this hour
            hours = replace(hours, now=now)
        assert job.request.deadline_at is not None
        work_hours = work_seconds / SECONDS_PER_HOUR
        margin = self._margin_seconds(work_seconds)
        until_hour = (job.request.deadline_at - margin - self._hour_at) / SECONDS_PER_HOUR
        if job.request.checkpoints:
            better_at, saved = hours.in_pieces(work_hours, until_hour)
        else:
            better_at, saved = hours.in_one_piece(work_hours, until_hour)
        if better_at is None or saved <= self._rule.worth * abs(hours.now):
            return None
        return self._wait(job, here, self._best(sites, better_at), better_at, work_hours * saved)

    def best_pools(self, job: Job) -> list[int] | None:
        """Pools of the sites that are as good as any in this hour; None where all are, or nobody knows."""
        sites = self._sites(job)
        hours = self._hours_at(sites) if len(sites) > 1 else None
        if hours is None:
            return None
        most = hours.now + self._rule.worth * abs(hours.now)
        prices = {site: self._price(self._hours(site)[0], crowded=False) for site in sites}
        good = [site for site, price in prices.items() if price is not None and price <= most]
        plant = self._draft.plant
        pools = [pool for site in good for pool in plant.pools_of_site[plant.site_numbers[site]]]
        return pools if len(good) < len(sites) else None

    def _wait(self, job: Job, here: _SiteHour, there: _SiteHour, better_at: int, saved: float) -> Verdict:
        """`saved`: over all its work, for each kW that it draws."""
        kilowatts = (job.request.peak_watts or 0.0) / 1000.0
        numbers: dict[str, float] = {"until_better_seconds": self._at(better_at) - self._draft.at}
        if self._rule.by == "carbon":
            told = f"{_told(here[1].grams_co2_per_kwh)} g/kWh"
            later = f"{_told(there[1].grams_co2_per_kwh)} g/kWh"
            if kilowatts:
                numbers["saves_kg"] = saved * kilowatts / 1000.0
        else:
            told = f"{_told(here[1].usd_per_kwh, 3)} USD/kWh"
            later = f"{_told(there[1].usd_per_kwh, 3)} USD/kWh"
            if kilowatts:
                numbers["saves_usd"] = saved * kilowatts
        clock = datetime.fromtimestamp(self._at(better_at), UTC)
        where = "" if there[0] == here[0] else f" in {there[0]}"
        return Verdict(
            rule=f"shift.{self._rule.by}",
            subject=here[0],
            outcome=Outcome.WAIT,
            job=job.id,
            numbers=numbers,
            say=f"{told} now, {later} expected at {clock:%H:%M} UTC{where}",
            change="its hour comes, or its deadline is near",
        )

    def _at(self, hour: int) -> float:
        return self._hour_at + hour * SECONDS_PER_HOUR

    def _work_seconds(self, job: Job) -> float | None:
        """The longest that it still takes; None where nobody may hold it back."""
        if job.request.deadline_at is None:
            return None
        left = seconds_left(job)
        if left is None:
            return None
        if job.started_at is not None and job.state is JobState.RUNNING:
            left = max(1.0, left - (self._draft.at - job.started_at))
        return left + self._rule.switch

    def _margin_seconds(self, work_seconds: float) -> float:
        return self._rule.margin + self._rule.margin_share * work_seconds

    def _sites(self, job: Job) -> tuple[str, ...]:
        residency = job.request.residency
        sites, clouds = self._draft.plant.sites, self._draft.plant.clouds
        return tuple(
            [
                name
                for name, site in sites.items()
                if (not residency or site.region in residency) and name not in clouds
            ]
        )

    def _hours_at(self, sites: tuple[str, ...]) -> _Hours | None:
        if sites not in self._known:
            prices = self._prices(sites)
            now = prices[0] if prices else None
            self._known[sites] = None if now is None else _Hours(now, prices, RankedHours.of(prices))
        return self._known[sites]

    def _hours(self, site: str) -> tuple[OutlookHour, ...]:
        """From this hour on; none where what is known is too old."""
        outlook = self._draft.outlooks.get(site)
        if outlook is None or self._draft.at - outlook.at > self._rule.outlook_max_age:
            return ()
        return _from(outlook, round((self._hour_at - outlook.begins_at) / SECONDS_PER_HOUR))

    def _prices(self, sites: tuple[str, ...]) -> list[float | None]:
        """The best of each hour; none at all where one of the sites is not known: it might be better."""
        known = [self._hours(site) for site in sites]
        if not known or not all(known):
            return []
        best: list[float | None] = []
        for hour in range(min(len(hours) for hours in known)):
            counted = [self._price(hours[hour], crowded=hour > 0) for hours in known]
            there = [price for price in counted if price is not None]
            best.append(min(there) if len(there) == len(counted) else None)
        return best

    def _price(self, hour: OutlookHour, *, crowded: bool) -> float | None:
        """That others want an hour too matters to those that could choose it later."""
        price = count_hour(hour, self._policy)
        return price + hour.crowding if crowded and price is not None else price

    def _best(self, sites: Sequence[str], hour: int) -> _SiteHour:
        def price(site: str) -> float:
            counted = self._price(self._hours(site)[hour], crowded=False)
            return math.inf if counted is None else counted

        site = min(sites, key=price)
        return site, self._hours(site)[hour]

    def _urgent_jobs(self) -> set[str]:
        if self._urgent is None:
            draft = self._draft
            waitable, others = [], 0
            waiting = [key[2] for _, queue in draft.queues for key in queue]
            for job_id in (*waiting, *draft.holding):
                job = draft.job(job_id)
                work = self._work_seconds(job)
                if work is None:
                    others += job.request.gpus if job.state is not JobState.WAITING else 0
                    continue
                assert job.request.deadline_at is not None
                slack = job.request.deadline_at - draft.at - work - self._margin_seconds(work)
                waitable.append(Waitable(job_id, work, slack, float(job.request.gpus)))
            gpus = sum(spot.node.gpus for spot in draft.plant.spots if spot.site.cloud is None)
            self._urgent = choose_urgent(waitable, max(0.0, float(gpus - others)), SECONDS_PER_HOUR)
        return self._urgent


@dataclass(frozen=True, slots=True)
class _Hours:
    """What hours count for, from this one on."""

    now: float
    prices: Sequence[float | None]
    ranked: RankedHours

    def in_pieces(self, work_hours: float, until_hour: float) -> tuple[int | None, float]:
        """The next hour that is better than this one, and what an hour of work now would save at least."""
        dearest = self.ranked.price_of_later(work_hours, until_hour)
        if not dearest < self.now:
            return None, 0.0
        return self.ranked.next_hour_below(self.now, until_hour), self.now - dearest

    def in_one_piece(self, work_hours: float, until_hour: float) -> tuple[int | None, float]:
        """The best hour to start at, if all hours from there on are taken, and what an hour of work saves."""
        whole = math.ceil(work_hours)
        means: dict[int, float] = {}
        for start in range(min(len(self.prices), math.floor(until_hour)) - whole + 1):
            hours = [price for price in self.prices[start : start + whole] if price is not None]
            if len(hours) == whole:
                means[start] = sum(hours) / whole
        if 0 not in means:
            return None, 0.0
        best = min(means, key=means.__getitem__)
        return (best, means[0] - means[best]) if best > 0 else (None, 0.0)


@lru_cache(maxsize=64)
def _from(outlook: Outlooked, hour: int) -> tuple[OutlookHour, ...]:
    return outlook.hours[hour:] if hour >= 0 else ()


def _told(value: float | None, digits: int = 0) -> str:
    return "?" if value is None else f"{value:.{digits}f}"
