"""Sharing power: who runs under which cap, so that what a site may draw does the most work?

Where claims at nameplate would leave GPUs idle, jobs that bear a cap give some of their watts to jobs that
wait. Where a hold asks for less, caps are lowered, and where that would cost more than pausing some, some are
paused; they wait in line again. With room, caps are raised. Lowering comes at once, raising only into room
that is there: what is promised or read stays within every bound at every moment.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from wattline.policy.appetite import LATE_SECONDS, is_rigid
from wattline.policy.dividing import OFF, Division, Sharer, divide
from wattline.policy.judging import changed
from wattline.policy.naming import next_action
from wattline.policy.power_bounds import Bound, find_bounds, lay_used, read_watts
from wattline.policy.power_parts import Part, find_parts
from wattline.policy.price import leaving_gpu_seconds
from wattline.policy.staggering import Stagger
from wattline.policy.waiting_heads import Head, find_heads
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Job, Outcome, Snapshot, Verdict
from wattline.state.ledger import METERED_SOURCES

# What a change must bring, in speed of each GPU that it is made for: caps would wander otherwise.
_WORTH_MOVING = 0.001
_WORTH_REBALANCING = 0.005
_WORTH_STARTING = 0.03
_WORTH_PAUSING = 0.03
_SILENT_SECONDS = 60.0  # a meter that cannot be read is asked again after this
# Of the guard: what sums of many readings wander by, and what a single meter does not.
_WANDERS, _GROSS = 0.25, 2.0
# What a cap that is raised adds is known only roughly before it is read.
_RAISED = 1.3


class Shared(msgspec.Struct):
    """What sharing power asks for now."""

    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    opened: list[int] = msgspec.field(default_factory=list)  # pools where room was made for those who wait


NOTHING_SHARED = Shared()


def share_power(
    draft: Snapshot, policy: Policy, asked: Collection[str] = (), stagger: Stagger | None = None
) -> Shared:
    """Move caps at every site, and leave to those who wait what the bounds then leave.

    Who was `asked` for something in this decision already is not asked for more.
    """
    shared = Shared()
    by_site: dict[str, list[Job]] = {site: [] for site in draft.plant.sites}
    for job_id in sorted(draft.holding):
        job = draft.job(job_id)
        if job.place is not None and job.request.gpus:
            by_site[job.place.site].append(job)
    for site, jobs in by_site.items():
        bounds = find_bounds(draft, policy, site)
        if policy.power_sharing.by == "caps":  # claims are whole watts on every node, rounded up
            rounding = sum(len(job.place.nodes) for job in jobs if job.place is not None)
            bounds = [bound._replace(limit_watts=bound.limit_watts - rounding) for bound in bounds]
        if bounds or any(job.power_fraction < 1.0 for job in jobs):
            _Hall(draft, policy, site, bounds, jobs, asked, stagger).share(shared)
    changes = [hold.next_change_at(draft.at) for hold in policy.power_sharing.holds]
    shared.looks += [change for change in changes if change is not None]
    return shared


@dataclass(slots=True)
class _Hall:
    """One site, once."""

    draft: Snapshot
    policy: Policy
    site: str
    bounds: list[Bound]
    jobs: list[Job]
    asked: Collection[str]
    stagger: Stagger | None  # says which caps may be raised at once; None: all

    def share(self, shared: Shared) -> None:
        parts = find_parts(self.draft, self.policy, self.site, self.bounds, self.jobs, self.asked)
        movable = [part for part in parts if part.menu is not None]
        used = [bound.resting_watts for bound in self.bounds]
        fixed, leaving = list(used), [0.0] * len(used)
        for part in parts:
            for number, share in part.bounds:
                watts = share * part.above_idle_watts
                used[number] += watts
                if part.leaves_watts is not None:
                    leaving[number] += watts - share * part.leaves_watts
                if part.menu is None:
                    fixed[number] += watts
        quiet_until = max((job.capped_at for job in self.jobs), default=0.0) + LATE_SECONDS
        if self.policy.power_sharing.by == "meters" and self.draft.at < quiet_until:
            shared.looks.append(quiet_until)
            self._offer_nothing(used)
        else:
            if not all(part.appetite.is_read for part in parts):
                shared.looks.append(self.draft.at + LATE_SECONDS)
            if any(part.appetite.is_silent for part in parts):
                shared.looks.append(self.draft.at + _SILENT_SECONDS)
            self._move(movable, used, fixed, leaving, shared)
        lay_used(self.draft, self.policy, self.site, self.bounds, used)

    def _move(
        self,
        movable: list[Part],
        used: list[float],
        fixed: list[float],
        leaving: list[float],
        shared: Shared,
    ) -> None:
        """Divide, and go there as far as it is worth it; `used` is left as it then is."""
        over = [self._over(bound, watts) for bound, watts in zip(self.bounds, used, strict=True)]
        # What leaves is as good as gone for those who stay, and still there for those who would come.
        budgets = [
            bound.limit_watts - watts - unseen + gone
            for bound, watts, unseen, gone in zip(self.bounds, fixed, over, leaving, strict=True)
        ]
        is_short = any(
            watts + unseen - gone > bound.limit_watts * (1.0 + self._wandering)
            for bound, watts, unseen, gone in zip(self.bounds, used, over, leaving, strict=True)
        )
        heads = find_heads(self.draft, self.policy, self.site, self.bounds) if self._is_watched else []
        division, started = self._divide(movable, heads, budgets, is_short=is_short)
        now_speed = sum(part.gpus * part.whole.speed(part.level) for part in movable)
        gpus = sum(part.gpus for part in movable)
        if is_short or started or division.speed - now_speed >= _WORTH_MOVING * gpus:
            self._go(movable, division, used, shared)
        if is_short and not division.fits:
            self._tell_unreachable(division, shared)
        if started:
            shared.opened += dict.fromkeys(head.pool for head in started)
            self._offer(started, used)
        elif heads:  # what is left is worth more to those who run
            self._offer_nothing(used)

    def _offer(self, started: list[Head], used: list[float]) -> None:
        """Keep what it takes to wake the nodes of those who start: it is in no claim."""
        for head in started:
            for number, share in head.sharer.bounds:
                used[number] += share * head.sharer.gpus * head.woken_watts

    def _offer_nothing(self, used: list[float]) -> None:
        used[:] = [max(watts, bound.limit_watts) for bound, watts in zip(self.bounds, used, strict=True)]

    def _divide(
        self, movable: list[Part], heads: list[Head], budgets: list[float], *, is_short: bool
    ) -> tuple[Division, list[Head]]:
        """The best division, and who of those that wait starts by it. Nobody is moved for a trifle."""
        running = [Sharer(part.gpus, part.whole, part.bounds) for part in movable]
        division = divide(running, budgets)
        if division.fits and heads:
            more = divide([*running, *[head.sharer for head in heads]], budgets)
            levels = more.levels[len(running) :]
            chosen = [head for head, level in zip(heads, levels, strict=True) if level != OFF]
            gpus = sum(head.sharer.gpus for head in chosen)
            if chosen and more.speed - division.speed >= _WORTH_STARTING * gpus:
                return more, chosen
        if is_short:
            pausing = divide(
                [Sharer(part.gpus, part.menu, part.bounds) for part in movable if part.menu], budgets
            )
            off = [part.gpus for part, level in zip(movable, pausing.levels, strict=True) if level == OFF]
            if not division.fits or (off and pausing.speed - division.speed >= _WORTH_PAUSING * sum(off)):
                return pausing, []
        near = self._divide_near(movable, budgets, is_short=is_short)
        gpus = sum(part.gpus for part in movable)
        is_better = not near.fits or division.speed - near.speed >= _WORTH_REBALANCING * gpus
        return (division if is_better else near), []

    def _divide_near(self, movable: list[Part], budgets: list[float], *, is_short: bool) -> Division:
        """The best that lowering alone does where watts are short, and raising alone where they are not."""
        firsts = [0 if is_short else part.level for part in movable]
        lasts = [part.level if is_short else len(part.whole.levels) - 1 for part in movable]
        sharers = [
            Sharer(part.gpus, part.whole.part(first, last), part.bounds)
            for part, first, last in zip(movable, firsts, lasts, strict=True)
        ]
        division = divide(sharers, budgets)
        levels = [first + level for first, level in zip(firsts, division.levels, strict=True)]
        return Division(levels, division.speed, division.left_watts)

    def _go(self, movable: list[Part], division: Division, used: list[float], shared: Shared) -> None:
        """Lower and pause at once; raise into what is free already."""
        because = f"watts of {self._tightest(used)} are shared" if self.bounds else "there are watts for all"
        room = [bound.limit_watts - watts for bound, watts in zip(self.bounds, used, strict=True)]
        for part, level in zip(movable, division.levels, strict=False):  # those who wait come after
            job, menu = part.job, part.menu
            if menu is None or level == part.level:
                continue
            if level == OFF:
                lost = leaving_gpu_seconds(job)
                action = next_action(
                    job, ActionKind.PAUSE, lost_gpu_seconds=lost, because=because, yields=True
                )
            else:
                if level > part.level:
                    level = self._raise(part, level, room, used)
                if level == part.level:
                    continue
                fraction = menu.levels[level].fraction
                action = next_action(job, ActionKind.CAP_POWER, fraction=fraction, because=because)
                if fraction > job.power_fraction and self.stagger is not None:
                    raised = self.stagger.lift(job, action)
                    if raised is None:
                        continue
                    action = raised
            self.draft.issue(action)
            shared.actions.append(action)

    def _raise(self, part: Part, level: int, room: list[float], used: list[float]) -> int:
        """As far up to a level as there is room for already, which is then taken."""
        menu = part.whole
        doubt = _RAISED if self.policy.power_sharing.by == "meters" else 1.0
        free = min([room[number] / share for number, share in part.bounds if share > 0.0], default=math.inf)
        most_watts = menu.watts(part.level) + max(0.0, free) / (doubt * part.gpus)
        reached = menu.highest_within(most_watts)
        level = part.level if reached is None else max(part.level, min(level, reached))
        more = doubt * part.gpus * (menu.watts(level) - menu.watts(part.level))
        for number, share in part.bounds:
            room[number] -= share * more
            used[number] += share * more
        return level

    def _over(self, bound: Bound, used_watts: float) -> float:
        """What a bound's own meter reads beyond what its jobs are known to draw, where that is too much."""
        if self.policy.power_sharing.by != "meters":
            return 0.0
        read = read_watts(self.draft, self.policy, self.site, bound)
        is_too_much = read > bound.limit_watts * (1.0 + _GROSS * self.policy.power_sharing.guard)
        return max(0.0, read - used_watts) if is_too_much else 0.0

    @property
    def _is_watched(self) -> bool:
        """Whether anybody can be let in: nobody is, under a bound that nobody reads."""
        max_age = self.policy.thresholds.reading_max_age
        resources = [bound.resource for bound in self.bounds if bound.resource is not None]
        is_metered = self.draft.plant.sites[self.site].telemetry in METERED_SOURCES
        are_read = not is_metered or all(self.draft.is_read(one, max_age) for one in resources)
        return bool(self.bounds) and are_read

    @property
    def _wandering(self) -> float:
        sharing = self.policy.power_sharing
        return _WANDERS * sharing.guard if sharing.by == "meters" else 0.0

    def _tightest(self, used: Sequence[float]) -> str:
        left = [bound.limit_watts - watts for bound, watts in zip(self.bounds, used, strict=True)]
        return self.bounds[left.index(min(left))].name

    def _tell_unreachable(self, division: Division, shared: Shared) -> None:
        """Say what cannot be reached, and the lowest that can, to the job that stands most in the way."""
        number = min(range(len(self.bounds)), key=lambda each: division.left_watts[each])
        bound, short = self.bounds[number], -division.left_watts[number]
        stubborn = [job for job in self.jobs if is_rigid(job, self.policy)] or self.jobs
        job = max(stubborn, key=lambda each: (each.request.gpus, each.id))
        verdict = Verdict(
            rule=bound.rule,
            subject=bound.name,
            outcome=Outcome.PRESS,
            job=job.id,
            numbers={
                "limit_watts": bound.limit_watts,
                "reachable_watts": bound.limit_watts + short,
                "short_by_watts": short,
            },
            say="it cannot be reached without jobs that bear no cap and cannot be paused",
            change="such a job ends, or is stopped",
        )
        if changed(job, (verdict,)):
            shared.verdicts.append(verdict)
