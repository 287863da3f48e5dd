"""A run of the twin: a workload, a facility and a policy go in, figures come out.

The loop is the live one: `step` folds what the world tells, decides, writes it down, and acts.
"""

from __future__ import annotations

import gc
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from wattline.control import Decide, StepRecord, encode_step, step
from wattline.facility import Facility
from wattline.policy import decide as decide_by_policy
from wattline.policy.placing.cloud import may_burst
from wattline.spec.faults import Fault
from wattline.spec.policy import Policy
from wattline.spec.slo import Slo
from wattline.state import Decision, Event, JobRequest, NodeMode, State
from wattline.twin.layout import layout_of
from wattline.twin.meters import Meters
from wattline.twin.outlooking import Outlooker, OutlookingWorld
from wattline.twin.promises import Promises
from wattline.twin.renting import Renting
from wattline.twin.report import Report
from wattline.twin.reporting import report_of
from wattline.twin.sleeping import OutlookingSleepingWorld, SleepingWorld
from wattline.twin.spot_prices import Prices
from wattline.twin.spreading import Rates
from wattline.twin.timeline import Mark, Timeline
from wattline.twin.truth import Surroundings, Truth
from wattline.twin.waiting_for import WaitingFor
from wattline.twin.workload import Arrival
from wattline.twin.world import USUAL_OVERHEADS, Overheads, TwinWorld

# 2024-01-01T00:00Z: series of that year line up with a trace's own days.
BEGINS_AT = 1_704_067_200.0
_PROGRESS_STEPS = 500
_DIGEST_STEPS = 10_000
# With nothing running and nobody coming, who has waited for a quota's whole week waits for ever.
_MOST_IDLE_SECONDS = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is made of; the same setting gives the same digest, wherever it runs."""

    name: str  # of the trace or scenario
    facility: Facility
    policy: Policy
    arrivals: Callable[[], Iterator[Arrival]]
    seed: int = 0
    exact: bool = False
    decide: Decide = decide_by_policy
    decided_by: str = ""  # the policy's name, unless said
    arrival_scale: float = 1.0
    faults: Sequence[Fault] = ()
    marks: Sequence[Mark] = ()  # what pictures tell of faults and of what changes around sites
    surroundings: Mapping[str, Surroundings] = field(default_factory=dict)
    spot_prices: Mapping[str, Prices] = field(default_factory=dict)  # of clouds; by lots where none is given
    rates: Rates | None = None
    overheads: Overheads = USUAL_OVERHEADS
    lines_refused: int = 0
    begins_at: float = BEGINS_AT
    asleep: float = 1.0  # of its idle draw, what a node that nobody uses still takes
    until_seconds: float | None = None  # after the beginning; None: until all have ended
    slos: Sequence[Slo] = ()  # counted on its steps where there are any


@dataclass(frozen=True, slots=True)
class Outcome:
    report: Report
    timeline: Timeline | None


class RunJournal:
    """Chains every step to the one before, as a journal on disk does, and keeps only the last link.

    The state's own digest is in it now and then. `keep` gets each record's bytes: whoever wants them all;
    `watch` gets each record.
    """

    def __init__(
        self,
        keep: Callable[[bytes], None] | None = None,
        watch: Callable[[StepRecord], None] | None = None,
    ) -> None:
        self._hash, self._keep, self._show = hashlib.blake2b(digest_size=16), keep, watch
        self.steps = 0

    def append(
        self,
        events: Sequence[Event],
        digest: Callable[[], str],
        decision: Decision,
        *,
        decided: bool = True,
    ) -> None:
        told = digest() if self.steps % _DIGEST_STEPS == 0 or not decided else ""
        record = StepRecord(events=tuple(events), digest=told, decision=decision, decided=decided)
        data = encode_step(record)
        self._hash.update(data)
        self.steps += 1
        if self._keep is not None:
            self._keep(data)
        if self._show is not None:
            self._show(record)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Glimpse:
    """How far a run has come."""

    passed_seconds: float  # since it began
    submitted: int
    ended: int
    waiting: int


def metered(facility: Facility) -> Facility:
    """The same facility with every meter there is: the twin has all of them, but for what is rented."""
    sites = [replace(site, telemetry="emulated") if site.cloud is None else site for site in facility.sites]
    return replace(facility, sites=tuple(sites))


def run(
    setting: Setting,
    *,
    recorded: bool = False,
    tell: Callable[[Glimpse], None] | None = None,
    keep: Callable[[bytes], None] | None = None,
) -> Outcome:
    """Run to the end, or for as long as the setting says."""
    wall, cpu = time.monotonic(), time.process_time()
    state = State(metered(setting.facility))
    plant, begins_at = state.plant, setting.begins_at
    truth = Truth(
        plant,
        seed=setting.seed,
        exact=setting.exact,
        at=begins_at,
        surroundings=setting.surroundings,
        faults=setting.faults,
        asleep=setting.asleep,
    )
    timeline = Timeline(begins_at, layout_of(plant), marks=setting.marks) if recorded else None
    world = _kind_of_world(setting, state)(
        plant,
        setting.arrivals(),
        truth,
        Meters(truth, plant, setting.seed, setting.exact),
        begins_at=begins_at,
        timeline=timeline,
        rates=setting.rates,
        overheads=setting.overheads,
        would_wait=_would_wait(setting, state),
        rents=Renting(plant, setting.seed, begins_at, setting.spot_prices) if plant.clouds else None,
    )
    promises = Promises(state.plant.facility, setting.slos) if setting.slos else None
    journal = RunJournal(keep, None if promises is None else promises.note)
    waiting_for = WaitingFor(state, begins_at)
    with _uncollected():
        drive(world, state, setting, journal, tell, waiting_for.hear)
    world.finish()
    waiting_for.finish(world.now())
    report = report_of(
        setting,
        world,
        state.resting.starts,
        waiting_for,
        digest=journal.digest,
        wall_seconds=time.monotonic() - wall,
        cpu_seconds=time.process_time() - cpu,
        slos=() if promises is None else promises.standings(world.now()),
    )
    return Outcome(report, timeline)


def _would_wait(setting: Setting, state: State) -> Callable[[JobRequest], bool]:
    """Whether a newcomer is sure to wait: its shape is known to fit nowhere, no cloud could take it, no node
    might be woken for it, and nobody asked to make way or to become narrower."""
    if setting.policy.preempts or setting.policy.resizing is not None:
        return lambda _: False
    asleep = state.resting.modes[NodeMode.ASLEEP]
    if not state.plant.clouds:
        return lambda request: request.shape in state.stuck and not asleep
    return lambda request: request.shape in state.stuck and not (asleep or may_burst(request, setting.policy))


def _kind_of_world(setting: Setting, state: State) -> Callable[..., TwinWorld]:
    """A world whose nodes can sleep, or that tells what the hours ahead are expected to be, where asked."""
    scales, shifts = setting.policy.scaling is not None, setting.policy.shifting.is_on
    if not shifts:
        return SleepingWorld if scales else TwinWorld
    clouds = state.plant.clouds  # nobody waits for better hours of what is rented
    halls = {site: around for site, around in setting.surroundings.items() if site not in clouds}
    kind = OutlookingSleepingWorld if scales else OutlookingWorld
    return partial(kind, outlooker=Outlooker(halls), state=state, policy=setting.policy)


@contextmanager
def _uncollected() -> Iterator[None]:
    """A turn leaves no cycles behind; looking for some among a million jobs takes an eighth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def drive(
    world: TwinWorld,
    state: State,
    setting: Setting,
    journal: RunJournal,
    tell: Callable[[Glimpse], None] | None = None,
    hear: Callable[[Decision], None] | None = None,
) -> None:
    """Turn after turn, until nothing is left to happen; what was not told by then is taken note of.

    `hear` gets each decision once it is settled.
    """
    _drive(world, state, setting, journal, tell, hear)
    if world.has_news:
        events = world.events()
        state.fold(events)
        journal.append(events, state.digest, Decision(at=world.now()), decided=False)


def _drive(
    world: TwinWorld,
    state: State,
    setting: Setting,
    journal: RunJournal,
    tell: Callable[[Glimpse], None] | None,
    hear: Callable[[Decision], None] | None,
) -> None:
    ends_at = math.inf if setting.until_seconds is None else setting.begins_at + setting.until_seconds
    policy, decide, tally = setting.policy, setting.decide, world.tally
    busy_at = setting.begins_at
    while True:
        decision = step(world, state, policy, journal, decide)
        if hear is not None:
            hear(decision)
        tally.check()
        if tell is not None and journal.steps % _PROGRESS_STEPS == 0:
            tell(Glimpse(world.now() - setting.begins_at, tally.submitted, tally.ended, tally.waiting))
        last_at = ends_at
        if not world.is_over:
            busy_at = world.now()
        elif not tally.waiting or (decision.revisit_at is None and not world.will_recover):
            return
        else:
            last_at = min(ends_at, busy_at + _MOST_IDLE_SECONDS)
        world.sleep_until(last_at if decision.revisit_at is None else min(last_at, decision.revisit_at))
        if not world.woken or world.now() >= last_at:
            return
