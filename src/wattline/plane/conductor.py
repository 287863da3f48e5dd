"""The conductor: wires a live world to the loop and carries runs from submission to their last word."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from wattline.actuators import SiteActuators
from wattline.control import Outlook, step
from wattline.control.sites import Timing
from wattline.engines import engines_of
from wattline.errors import WattlineError
from wattline.live import LiveWorld, Meters
from wattline.live.fleet import FleetWorld
from wattline.live.site_stores import SiteStores, receiver_of
from wattline.plane.grid_outlooks import GridOutlooks
from wattline.plane.policy_arms import Arms
from wattline.plane.policy_in_force import Following
from wattline.plane.policy_shadow import Shadow
from wattline.plane.session import LEASE_SECONDS, Session, user
from wattline.policy import decide
from wattline.release import DecisionRange, is_ready, judge_run, release_run
from wattline.spec import Fault, Policy
from wattline.state import (
    ENDED,
    Adopted,
    Asked,
    Decision,
    Event,
    Run,
    RunConcluded,
    RunSubmitted,
    SiteStood,
    Snapshot,
    Standing,
    State,
)
from wattline.store.steps import StepJournal, read_steps
from wattline.telemetry import EmulatedFacility, readers_of
from wattline.twin.forecast import TwinForecaster
from wattline.twin.foresight import Foresight

_SNAPSHOT_EVERY_SECONDS = 60.0
_STEPS_LEARNT_FROM = 20_000
_FORECAST_SECONDS = 0.25  # the loop stands still meanwhile


class Watcher(Protocol):
    """Whoever wants to see each turn."""

    def turn(self, state: State, events: Sequence[Event], decision: Decision) -> None: ...


class Conductor:
    """One embedded control plane, for as long as this process holds the writer lease."""

    def __init__(
        self,
        session: Session,
        *,
        facility_digest: str,
        policy_digest: str,
        faults: Sequence[Fault],
        watcher: Watcher,
        seed: int = 0,
        following: Following | None = None,
        receives_at: str = "",
    ) -> None:
        self._session = session
        self._following, self._shadow, self._arms = following, Shadow(session), Arms(session)
        self._watcher = watcher
        self._whole = False  # whether the state is the one that the journal leads to
        self._turned: tuple[Sequence[Event], Decision] | None = None
        self._hears_others = True
        foresight = Foresight(TwinForecaster(budget_seconds=_FORECAST_SECONDS))
        journal = session.store.journal  # what was forecast lately, and what came of it
        for _, record in read_steps(journal, max(0, journal.last_seq() - _STEPS_LEARNT_FROM)):
            foresight.hear(record.events)
        self._outlook = Outlook(foresight, learn=foresight.hear)
        adopted = session.state.adopted if session.state is not None else {}
        was_in_force = adopted.get("facility_sha256") == facility_digest
        self._pending: list[Event] = [session.adopt(facility_digest, policy_digest, time.time())]
        assert session.state is not None
        self.state = session.state
        self._policy = session.policy_of(policy_digest)
        facility = self.state.plant.facility
        self._grid = GridOutlooks(facility, session.home.root)
        for site in facility.sites:
            if site.agent and site.name not in self.state.sites:
                self._pending.append(_awaited(site.name))
        agents = {*self.state.sites, *(site.name for site in facility.sites if site.agent)}
        self._engine = engines_of(facility, was_checked=was_in_force, agents=agents)
        began_at = max(time.time(), self.state.at)
        emulated = EmulatedFacility(facility, faults, seed, began_at)
        meters = Meters(emulated, self._engine, readers_of(facility))
        stores = SiteStores(session.home, lambda site: site not in self.state.sites)
        here = LiveWorld(
            home=session.home,
            state=self.state,
            engine=self._engine,
            actuator=SiteActuators(facility, emulated),
            meters=meters,
            goods=session.goods,
            requests=self._requests,
            stores=stores,
        )
        self.world = FleetWorld(
            state=self.state, timing=Timing(), clock=here.now, local=here, is_writer=self._is_writer
        )
        stores.receivers = self.world.desk.receivers
        if receives_at:
            self.world.desk.own_receiver = lambda site: receiver_of(receives_at, site)
        self._journal = StepJournal(session.store.journal, session.answered)
        self._renew_at = time.monotonic() + LEASE_SECONDS / 3
        self._snapshot_at = time.monotonic() + _SNAPSHOT_EVERY_SECONDS
        self._pending += self.world.recover()

    def _is_writer(self) -> bool:
        """Asked of the store: a server that was replaced must not renew a site's lease."""
        token = self._session.store.lease.held
        if token is not None:
            self._session.store.lease.renew(token)
        return token is not None

    def submit(self, *events: Event) -> None:
        """Take in events with the next turn."""
        self._pending += events

    def note(self, events: Sequence[Event]) -> None:
        """Journal events without deciding: whoever conducts next does that."""
        self.state.fold(events)
        nothing = Decision(at=self.world.now())
        self._journal.append(events, self.state.digest, nothing, decided=False)

    def turn(self) -> Decision:
        """One step, then what concerns whole runs."""
        self._whole = False
        self._take_up_policy()
        decision = step(self.world, self.state, self._policy, self, self._decide)
        self._whole = True
        self._show()
        for run_id in list(self.state.ending):
            run = self.state.runs.get(run_id)
            if run is not None and is_ready(self.state, run):
                self._conclude(run)
        self._keep_up()
        return decision

    def _take_up_policy(self) -> None:
        """Go by what was promoted meanwhile, with the very step that writes it down."""
        for event in () if self._following is None else self._following.look(self.state, self.world.now()):
            self._pending.append(event)
            if isinstance(event, Adopted):
                self._policy = self._session.policy_of(event.policy_sha256)
        self._pending += self._arms.look(self.state, self.world.now())

    def _decide(self, snapshot: Snapshot, policy: Policy) -> Decision:
        """What counts; then what a candidate says of the same state, which is noted and dropped."""
        if "canary_sha256" in self.state.adopted:
            return self._arms.decide(self.state, snapshot.at)
        decision = decide(snapshot, policy)
        self._shadow.watch(self.state, decision, policy)
        return decision

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        """The loop's journal; what is written is shown once the turn is over."""
        self._journal.append(events, digest, decision)
        self._turned = (events, decision)
        self._arms.note(self.state, events, decision)
        self._outlook.hear(events)
        self._grid.hear(events)

    def _show(self) -> None:
        if self._turned is not None:
            self._watcher.turn(self.state, *self._turned)
            self._turned = None

    def rest(self, decision: Decision) -> None:
        """Until something happens or is due; a calm moment is used to look ahead where that is due."""
        if not (self._pending or decision.actions or decision.restless or self.state.flights):
            found = self._outlook.look(self.state, self._policy, self.world.now())
            if found is not None:
                self._pending.append(found)
        self.world.sleep_until(self.world.now() if self._pending else decision.due_at)

    def abandon(self) -> None:
        """End all that runs now, without asking it, and write down that it has ended."""
        for job in self.state.jobs.values():
            if job.state not in ENDED:  # so that nothing begins again before somebody wants it to
                asked = Asked(
                    at=self.world.now(), actor=user(), project=job.request.project, job=job.id, want="pause"
                )
                self._pending.append(asked)
        self._hears_others = False
        self.world.stop_all()
        self.world.close()
        self._pending += self.world.recover()
        self.turn()

    def close(self) -> None:
        """End all that runs, and let the next reader start from here."""
        self.world.close()
        self._shadow.close()
        self._arms.close()
        if self._whole:
            self._session.save_snapshot()

    def _requests(self) -> list[Event]:
        pending, self._pending = self._pending, []
        events = [*pending, *self._session.requests()] if self._hears_others else pending
        events += self._grid.look(self.state, self._policy, self.world.now())
        found = self._outlook.look_at_newcomers(self.state, self._policy, events, self.world.now())
        return events if found is None else [*events, found]

    def _conclude(self, run: Run) -> None:
        """One run that cannot be concluded must not keep others from it."""
        try:
            self._pending += self._last_words(run)
        except (WattlineError, OSError, LookupError, TypeError, ValueError) as error:
            say = f"{type(error).__name__}: {error}"
            self._pending.append(
                RunConcluded(
                    at=self.world.now(), project=run.project, run=run.run, status="not concluded", say=say
                )
            )

    def _last_words(self, run: Run) -> list[Event]:
        """Gates and manifest first; once those are journaled, the release and the end."""
        session, now = self._session, self.world.now()
        if not run.judged:
            judged = judge_run(
                self.state,
                run,
                home=session.home,
                objects=session.objects,
                goods=session.goods,
                decisions=self._decisions(run),
                at=now,
            )
            return [judged]
        if self.world.is_replicating(run.jobs):  # a release waits for what is on its way
            return []
        return release_run(
            self.state,
            run,
            home=session.home,
            objects=session.objects,
            goods=session.goods,
            shelf=session.shelf,
            at=now,
        )

    def _decisions(self, run: Run) -> DecisionRange | None:
        """The stretch of the journal that speaks of this run."""
        journal = self._session.store.journal
        jobs, first, last, count = set(run.jobs), 0, 0, 0
        for seq, record in read_steps(journal, int(run.documents.get("after_seq", "0"))):
            submitted = any(
                isinstance(event, RunSubmitted) and event.run == run.run for event in record.events
            )
            told = [action for action in record.decision.actions if action.job in jobs]
            if submitted or told:
                first, last, count = first or seq, seq, count + len(told)
        if not first:
            return None
        head = next(iter(journal.read(last - 1, limit=1)))
        return DecisionRange(first_seq=first, last_seq=last, count=count, head=head.hash.hex())

    def _keep_up(self) -> None:
        now = time.monotonic()
        token = self._session.store.lease.held
        if now >= self._renew_at and token is not None:
            self._session.store.lease.renew(token)
            self._renew_at = now + LEASE_SECONDS / 3
        if now >= self._snapshot_at and self._whole:
            self._session.save_snapshot()
            self._snapshot_at = now + _SNAPSHOT_EVERY_SECONDS


def _awaited(site: str) -> SiteStood:
    """A site that only an agent runs and that never had one: nothing begins there until it comes."""
    say = "waits for its first agent"
    return SiteStood(at=time.time(), site=site, standing=Standing.REGIONAL_FALLBACK, epoch=0, say=say)
