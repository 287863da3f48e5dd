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

from wattline.policy.naming import next_action
from wattline.policy.placing.judging import changed
from wattline.policy.placing.price import leaving_gpu_seconds
from wattline.policy.watts.appetite import LATE_SECONDS, is_rigid
from wattline.policy.watts.dividing import OFF, Division, Sharer, divide
from wattline.policy.watts.power_bounds import Bound, find_bounds, find_excess, find_over, lay_used
from wattline.policy.watts.power_parts import Part, Parts, PowerParts, Settled
from wattline.policy.watts.staggering import Stagger
from wattline.policy.watts.waiting_heads import Head, find_heads
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Outcome, Snapshot, Verdict

# What a change must bring, in speed of each GPU that it is made for: caps would wander otherwise.
_WORTH_MOVING = 0.001
_WORTH_REBALANCING = 0.005
_WORTH_STARTING = 0.03
_WORTH_PAUSING = 0.03
_SILENT_SECONDS = 60.0  # a meter that cannot be read is asked again after this
_WANDERS = 0.25  # of the guard: what sums of many readings wander by
# What a cap that is raised adds is known only roughly before it is read.
_RAISED = 1.3
# With more than a few, who comes or goes changes little for each: where nobody waits and nothing is short,
# their caps are moved in rounds. With many, also where somebody waits; what is short is lowered at once.
_FEW, _MANY = 8, 64
_ROUND_SECONDS = 30.0


def next_round(at: float) -> float:
    """When caps are raised after a time: by the clock, so that a replay of the journal does the same."""
    return (math.floor(at / _ROUND_SECONDS) + 1.0) * _ROUND_SECONDS


class Shared(msgspec.Struct):
    """What sharing power asks for now."""

    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    opened: list[int] = msgspec.field(default_factory=list)  # pools where room was made for those who wait


def share_power(
    draft: Snapshot, policy: Policy, asked: Collection[str] = (), stagger: Stagger | None = None
) -> Shared:
    """Move caps at every site, and leave to those who wait what the bounds then leave.

    Who was `asked` for something in this decision already is not asked for more.
    """
    shared = Shared()
    ours = [site for site in draft.plant.sites if site not in draft.sites]  # elsewhere an agent shares
    bounds = {site: find_bounds(draft, policy, site) for site in ours}
    for site, parts in PowerParts.of(draft, policy).look(draft, bounds, asked).items():
        if site not in bounds:
            continue
        limits = bounds[site]
        if policy.power_sharing.by == "caps":  # claims are whole watts on every node, rounded up
            limits = [bound._replace(limit_watts=bound.limit_watts - parts.nodes) for bound in limits]
        if limits or parts.are_capped:
            _Hall(draft, policy, site, limits, parts, stagger).share(shared)
    for hold in policy.power_sharing.holds:
        change = hold.next_change_at(draft.at)
        if change is not None:
            shared.looks.append(change)
        if hold.site in bounds and hold.is_on(draft.decided_at) and not hold.is_on(draft.at):
            # Nobody came or went, so that who fitted nowhere would not be asked again.
            shared.opened += draft.plant.pools_of_site[draft.plant.site_numbers[hold.site]]
    return shared


@dataclass(slots=True)
class _Hall:
    """One site, once."""

    draft: Snapshot
    policy: Policy
    site: str
    bounds: list[Bound]
    parts: Parts
    stagger: Stagger | None  # says which caps may be raised at once; None: all

    def share(self, shared: Shared) -> None:
        used = self._with_resting(self.parts.used_watts)
        unsettled = self.parts.unsettled
        if not all(part.appetite.is_read for part in unsettled):
            shared.looks.append(self.draft.at + LATE_SECONDS)
        if any(part.appetite.is_silent for part in unsettled):
            shared.looks.append(self.draft.at + _SILENT_SECONDS)
        quiet_until = max([part.job.capped_at for part in unsettled], default=0.0) + LATE_SECONDS
        by_meters = self.policy.power_sharing.by == "meters"
        quiet: set[int] = set()
        if by_meters and self.draft.at < quiet_until:
            shared.looks.append(quiet_until)
            quiet = self._quiet(unsettled)
        excess = find_excess(self.draft, self.policy, self.site, self.bounds, used, self._watts_of(unsettled))
        used = [watts - less for watts, less in zip(used, excess, strict=True)]
        self._move(used, excess, shared, quiet)
        lay_used(self.draft, self.policy, self.site, self.bounds, used)

    def _watts_of(self, some: Sequence[Part]) -> list[float]:
        watts = [0.0] * len(self.bounds)
        for part in some:
            for number, share in part.bounds:
                watts[number] += share * part.above_idle_watts
        return watts

    def _quiet(self, unsettled: Sequence[Part]) -> set[int]:
        """Bounds under which a cap was moved so lately that nobody knows yet what that came to."""
        since = self.draft.at - LATE_SECONDS
        return {number for part in unsettled if part.job.capped_at > since for number, _ in part.bounds}

    def _with_resting(self, watts: list[float]) -> list[float]:
        return [bound.resting_watts + more for bound, more in zip(self.bounds, watts, strict=True)]

    def _move(self, used: list[float], excess: Sequence[float], shared: Shared, quiet: set[int]) -> None:
        """Divide, and go there as far as it is worth it; `used` is left as it then is."""
        parts, leaving = self.parts, self.parts.leaving_watts
        fixed = self._with_resting(parts.fixed_watts)
        over = find_over(self.draft, self.policy, self.site, self.bounds, used)
        # What leaves is as good as gone for those who stay, and still there for those who would come.
        budgets = [
            bound.limit_watts - watts - unseen + gone + less
            for bound, watts, unseen, gone, less in zip(
                self.bounds, fixed, over, leaving, excess, strict=True
            )
        ]
        short = {
            number
            for number, (bound, watts) in enumerate(zip(self.bounds, used, strict=True))
            if number not in quiet
            and watts + over[number] - leaving[number] > bound.limit_watts * (1.0 + self._wandering)
        }
        is_round = parts.movable <= _MANY or self._is_time
        heads: list[Head] = []
        if is_round and self._is_watched:
            left = [bound.limit_watts - watts for bound, watts in zip(self.bounds, used, strict=True)]
            heads = find_heads(self.draft, self.policy, self.site, self.bounds, left)
        tight = self._tight(heads, budgets)
        started: list[Head] = []
        if not short and not tight and parts.lacking_speed < _WORTH_MOVING * parts.gpus:
            started = heads
        elif not is_round:
            shared.looks.append(next_round(self.draft.at))
            if short:
                self._lower(short, budgets, used, shared)
        elif quiet.isdisjoint(tight):
            started = self._look(heads, short, tight, budgets, used, shared)
        else:
            shared.looks.append(next_round(self.draft.at))
            if short:
                self._lower(short, budgets, used, shared)
        if started:
            shared.opened += dict.fromkeys(head.pool for head in started)
            self._offer(started, used)
        elif self.draft.is_anybody_waiting:  # what is left there is worth more to those who run
            self._offer_nothing(used, tight)

    def _look(
        self,
        heads: list[Head],
        short: set[int],
        tight: set[int],
        budgets: list[float],
        used: list[float],
        shared: Shared,
    ) -> list[Head]:
        """Divide among all whom it concerns, unless that is as it was when nothing was worth moving."""
        # Whoever is under no tight bound runs as fast as it can, whatever the others do.
        parts, movable = self.parts, self.parts.concerned(short | tight)
        known = [(budgets[number], used[number]) for number in sorted(short | tight)]
        look = Settled(movable, (short, tight, known, [(head.job.id, head.pool) for head in heads]))
        if self.stagger is None and parts.settled is not None and parts.settled.is_as(look):
            return []
        if not short and not heads and len(movable) > _FEW and not self._is_time:
            shared.looks.append(next_round(self.draft.at))
            return []
        asked = len(shared.actions) + len(shared.verdicts)
        started = self._redivide(movable, heads, budgets, used, shared, is_short=bool(short))
        is_settled = not started and len(shared.actions) + len(shared.verdicts) == asked
        parts.settled = look if is_settled else None
        return started

    def _lower(self, short: set[int], budgets: list[float], used: list[float], shared: Shared) -> None:
        """Between two rounds: lower those under a bound that is short, or pause where that is not enough."""
        movable = self.parts.under_any(short)
        near = self._divide_near(movable, budgets, is_short=True)
        if near.fits:
            self._go(movable, near, used, shared)
        else:
            self._redivide(movable, [], budgets, used, shared, is_short=True)

    def _tight(self, heads: Sequence[Head], budgets: Sequence[float]) -> set[int]:
        """Bounds that do not let all run as fast as they can, and whoever could start as well."""
        left = [budget - watts for budget, watts in zip(budgets, self.parts.most_watts, strict=True)]
        for head in heads:
            menu = head.sharer.menu
            for number, share in head.sharer.bounds:
                left[number] -= share * head.sharer.gpus * menu.watts(menu.top)
        return {number for number, watts in enumerate(left) if watts < 0.0}

    def _redivide(
        self,
        movable: list[Part],
        heads: list[Head],
        budgets: list[float],
        used: list[float],
        shared: Shared,
        *,
        is_short: bool,
    ) -> list[Head]:
        """Move caps as far as it is worth it, and who of those that wait starts by that."""
        division, started = self._divide(movable, heads, budgets, is_short=is_short)
        now_speed = sum(part.gpus * part.whole.speed(part.level) for part in movable)
        if is_short or started or division.speed - now_speed >= _WORTH_MOVING * self.parts.gpus:
            self._go(movable, division, used, shared)
        if is_short and not division.fits:
            self._tell_unreachable(division, shared)
        return started

    def _offer(self, started: list[Head], used: list[float]) -> None:
        """Keep what it takes to wake the nodes of those who start: it is in no claim."""
        for head in started:
            for number, share in head.sharer.bounds:
                used[number] += share * head.sharer.gpus * head.woken_watts

    def _offer_nothing(self, used: list[float], tight: Collection[int]) -> None:
        for number in tight:
            used[number] = max(used[number], self.bounds[number].limit_watts)

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
        worth = _WORTH_REBALANCING * self.parts.gpus
        is_better = not near.fits or division.speed - near.speed >= worth
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

    @property
    def _is_watched(self) -> bool:
        """Whether anybody can be let in: nobody is, under a bound that nobody reads."""
        max_age = self.policy.thresholds.reading_max_age
        resources = [bound.resource for bound in self.bounds if bound.resource is not None]
        metered = [one for one in resources if self.draft.is_metered(one)]
        are_read = all(self.draft.is_read(one, max_age) for one in metered)
        return bool(self.bounds) and are_read

    @property
    def _is_time(self) -> bool:
        return self.draft.at >= next_round(self.draft.decided_at)

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
        jobs = [part.job for part in self.parts]
        stubborn = [job for job in jobs if is_rigid(job, self.policy)] or jobs
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
