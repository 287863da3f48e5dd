"""Staggering: of all who could begin now, who does, who waits for how long, and who begins under a cap?

As many begin as feeds and sites bear at once, the most urgent first; the rest wait, each until the first
moment at which it passes. A job that would load a feed too quickly all by itself begins under a cap, and is
raised as the ramp lets it. Nothing is asked where no feed has a ramp or minds swings and starts are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import msgspec

from wattline.policy.giving_way.capping import may_cap
from wattline.policy.giving_way.ladder import stays_clear
from wattline.policy.naming import next_action
from wattline.policy.placing.judging import empty_facility
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.watts.appetite import STEP, is_rigid
from wattline.policy.watts.pacing import Wait, add_all, find_start
from wattline.policy.watts.ramping import RAMP_RULE, Ramps
from wattline.policy.watts.recent import Recent
from wattline.policy.watts.swinging import Swings, swing_limits
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Claim, Job, Outcome, Place, Plant, Snapshot, Verdict, claim_of
from wattline.state.job import RAMP_SECONDS
from wattline.units import format_seconds, format_watts

replace = msgspec.structs.replace

# On each feed so many are booked; whoever comes after them looks elsewhere, or waits behind them.
_MOST_BOOKED = 8
# The lowest cap that a job begins under.
_LEAST_CAP = 0.2


class Paced(msgspec.Struct, frozen=True):
    """A place to begin at now and the cap to begin under; or none, and why."""

    choice: Choice
    fraction: float
    verdicts: tuple[Verdict, ...]
    waits: bool = False


@lru_cache(maxsize=8)
def _is_limited(plant: Plant) -> bool:
    is_counted = any(site.starts.is_on for site in plant.facility.sites)
    return bool(plant.ramped) or bool(swing_limits(plant)) or is_counted


def stagger_of(draft: Snapshot, policy: Policy) -> Stagger | None:
    """None where nothing limits how quickly or how many begin."""
    return Stagger(draft, policy) if policy.starts.is_on or _is_limited(draft.plant) else None


class Stagger:
    """Good for one decision; whatever it lets begin is counted at once, whoever it makes wait is booked."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, self._policy = draft, policy
        self._ramps, self._swings = Ramps(draft, policy), Swings(draft, policy)
        self._booked: dict[int, int] = {}  # by supply, how many wait
        self._shut: set[int] = set()  # supplies on which enough wait
        self._waiting: dict[str, None] = {}  # who fits and waits for its time
        self.looks: list[float] = []

    def pace(
        self, job: Job, choice: Choice, fraction: float = 1.0, again: Callable[[], Choice] | None = None
    ) -> Paced:
        """Whether a job that found a place begins there now; `again` finds another where it may not."""
        found, tried, against = choice, dict[int, Claim](), list[Verdict]()
        while found.place is not None:
            level, objection = self._object(job, found.place, fraction, self._swings)
            if objection is None:
                break
            supply, verdict = objection
            against.append(verdict)
            if again is None or supply in tried:
                found = Choice(None, ())
                break
            tried[supply] = self._all_of(supply)
            self._draft.keep(tried[supply])
            found = again()
        for claim in tried.values():
            self._draft.keep(claim, -1)
        if found.place is not None:
            return self._begin(job, found, level)
        if not self._may_ever(job, fraction):
            never = replace(against[-1], outcome=Outcome.REFUSE)
            return Paced(Choice(None, (never,)), fraction, (never,))
        self._waiting[job.id] = None
        return Paced(Choice(None, ()), fraction, (against[-1],), waits=True)

    def lift(self, job: Job, action: Action) -> Action | None:
        """A raise of a cap or a batch as far as it may go now; None: not at all. The last part leaves its
        rung."""
        now, before = self._draft.at, job.power_fraction
        if action.kind is ActionKind.SHRINK_BATCH:
            before = job.in_flight_fraction
        between = [level for level in reversed(_levels(before)) if before < level < action.fraction]
        wait: Wait | None = None
        for level in (action.fraction, *between):
            part = action if level == action.fraction else replace(action, fraction=level, rung=None)
            more = self._ramps.more(job, part)
            wait = find_start(more, now)
            if wait is None:
                add_all(more, now)
                if part is not action:
                    self.looks.append(now + RAMP_SECONDS)
                return part
        if wait is not None and wait.until < math.inf:
            self.looks.append(wait.until)
        return None

    def raise_soft(self) -> list[Action]:
        """Raise the caps of those who began under one, as far as ramps let them by now."""
        draft, actions = self._draft, list[Action]()
        for known in Recent.of(draft).held_below(draft) if draft.plant.ramped else ():
            job = draft.job(known.id)
            if job.started_at is None or job.asked or job.yields or draft.flying(job.id):
                continue
            whole = next_action(job, ActionKind.CAP_POWER, because="its feed takes more by now")
            if not stays_clear(draft, self._policy, job, whole):
                self.looks.append(draft.at + self._policy.thresholds.settle)
                continue
            raised = self.lift(job, whole)
            if raised is not None:
                draft.issue(raised)
                actions.append(raised)
        return actions

    def judge_behind(self, job: Job, reason: Verdict) -> tuple[Verdict, ...]:
        """Why a job fits nowhere, where those before it have booked all that a feed bears for a while."""
        supply = self._draft.plant.resource_number.get(reason.subject, -1)
        if supply not in self._shut:
            return ()
        self._waiting[job.id] = None
        verdict = Verdict(
            rule=RAMP_RULE,
            subject=reason.subject,
            outcome=Outcome.WAIT,
            job=job.id,
            numbers={"limit_watts": float(self._ramps.supplies[supply].limit)},
            say="others are to begin there before it",
            change="they have begun",
        )
        return (verdict,)

    def unstick(self, stuck: list[str]) -> tuple[list[str], list[str]]:
        """Which shapes are known to fit nowhere, and which are not any more.

        Where somebody waits for its time, its place was kept from others in this decision only: nobody would
        look at them again when it is gone.
        """
        draft = self._draft
        if not self._waiting:
            return stuck, []
        unsure = {job_id for job_id in (*stuck, *self._waiting) if draft.is_stuck(job_id)}
        if draft.loosened_pools(self._policy.thresholds.reading_max_age):  # some were passed over for it
            unsure.update([queue[0][2] for is_stuck, queue in draft.queues if is_stuck])
        return [], sorted(unsure)

    def _begin(self, job: Job, choice: Choice, fraction: float) -> Paced:
        assert choice.place is not None
        draft, place = self._draft, choice.place
        asked = self._ramps.asked(job, place, fraction)
        wait = find_start(asked, draft.at)
        add_all(asked, draft.at if wait is None else wait.until)
        self._swings.add(job, place, fraction)
        if wait is None:
            verdicts = tuple([one if one.job else replace(one, job=job.id) for one in choice.verdicts])
            return Paced(choice, fraction, verdicts)
        self.looks.append(wait.until)
        self._waiting[job.id] = None
        if job.id not in draft.reservations:
            # Kept until then: others would find it free, and wait for the same.
            draft.keep(claim_of(job.request, place, draft.plant, fraction))
        for supply in self._ramps.amounts(job, place, fraction):
            self._booked[supply] = self._booked.get(supply, 0) + 1
            if self._booked[supply] == _MOST_BOOKED:
                self._shut.add(supply)
                draft.keep(self._all_of(supply))
        return Paced(Choice(None, ()), fraction, (self._tell(job, wait),), waits=True)

    def _object(
        self, job: Job, place: Place, fraction: float, swings: Swings
    ) -> tuple[float, tuple[int, Verdict] | None]:
        """What waiting for a ramp does not mend: swings, and a job that is too much even under a cap."""
        objection = swings.judge(job, place, fraction)
        if objection is not None:
            return fraction, objection
        levels = [fraction]
        may_be_capped = may_cap(self._draft.plant, place.site) and not is_rigid(job, self._policy)
        if job.request.gpus and may_be_capped:
            levels += [level for level in reversed(_levels(_LEAST_CAP)) if level < fraction]
        over, watts = -1, 0
        for level in levels:
            amounts, limits = self._ramps.amounts(job, place, level), self._ramps.supplies
            over, watts = next(
                ((supply, more) for supply, more in amounts.items() if more > limits[supply].limit), (-1, 0)
            )
            if over < 0:
                return level, None
        gauge = self._ramps.supplies[over]
        numbers = {"short_by_watts": watts - gauge.limit, "asked_watts": watts, "limit_watts": gauge.limit}
        verdict = Verdict(
            rule=RAMP_RULE,
            subject=gauge.subject,
            outcome=Outcome.WAIT,
            job=job.id,
            numbers={name: float(value) for name, value in numbers.items()},
            say="alone and under the lowest cap it bears, it adds more than may be added in a minute",
            change="give it a ladder so that it bears a cap, or ask for less",
        )
        return fraction, (over, verdict)

    def _may_ever(self, job: Job, fraction: float) -> bool:
        """Whether there is a place for it with nothing running."""
        empty = empty_facility(self._draft.plant).snapshot.copy()
        swings, shut = Swings(empty, self._policy), set[int]()
        while (place := choose_place(empty, self._policy, job.remainder, explain=False).place) is not None:
            _, objection = self._object(job, place, fraction, swings)
            if objection is None or objection[0] in shut:
                return objection is None
            shut.add(objection[0])
            empty.keep(self._all_of(objection[0]))
        return False

    def _all_of(self, supply: int) -> Claim:
        """All that a supply carries, so that nobody finds a place under it."""
        plant = self._draft.plant
        node = plant.nodes_of_site[plant.site_of_resource[supply]][0]
        amounts = ((supply, self._draft.cap(supply) + 1),)
        return Claim(nodes=((node, 0),), millicpus=0, amounts=amounts, gpu_watts=0.0)

    def _tell(self, job: Job, wait: Wait) -> Verdict:
        gauge, starts_in = wait.gauge, wait.until - self._draft.at
        begun, asked, limit = gauge.within(self._draft.at), wait.amount, gauge.limit
        counted = {"asked": asked, "begun": begun, "limit": limit}
        if gauge.rule == RAMP_RULE:
            numbers = {f"{name}_watts": float(value) for name, value in counted.items()}
            numbers = {"short_by_watts": float(max(1, begun + asked - limit)), **numbers}
            what = f"{format_watts(limit)}/min"
        else:
            numbers = {f"{name}_jobs": float(value) for name, value in counted.items()}
            what = f"{limit} in {format_seconds(gauge.span_seconds)}"
        return Verdict(
            rule=gauge.rule,
            subject=gauge.subject,
            outcome=Outcome.WAIT,
            job=job.id,
            numbers={**numbers, "span_seconds": gauge.span_seconds, "starts_in_seconds": starts_in},
            change=f"wait {format_seconds(starts_in)}; no more than {what}",
        )


def _levels(least: float) -> list[float]:
    """Caps from the lowest on; the last is none."""
    steps = int((1.0 - least) / STEP + 1e-9)
    return [round(1.0 - STEP * step, 4) for step in range(steps, -1, -1)]
