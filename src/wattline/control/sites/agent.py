"""The agent: what does a site do by itself, and what because it was told to?

It runs the loop that every world runs, over a state and a journal of its own. Orders come as answers to its
requests; what it then decides is those orders and its own ladder. Its journal is its outbox: what was written
after the last number that the hub has heard is told until it is heard; a crash on either side loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from wattline.control.loop import step
from wattline.control.ports import Journal, World
from wattline.control.record import StepRecord
from wattline.control.sites.messages import (
    MOST_BYTES,
    MOST_EVENTS,
    TOLD,
    Held,
    Order,
    SyncReply,
    SyncRequest,
    Told,
)
from wattline.control.sites.tenancy import Tenancy
from wattline.errors import RefusedError
from wattline.policy import decide_at_site, is_own
from wattline.spec.policy import Policy
from wattline.state import (
    BEGINNINGS,
    HOLDING,
    Acted,
    Action,
    ActionKind,
    Decision,
    Event,
    Handed,
    Measured,
    Snapshot,
    State,
)
from wattline.state.measuring import LEASED

_Readings = dict[tuple[str, str, str], tuple[float, float | None]]
_EVENTS_AT_ONCE = MOST_EVENTS // 2  # a record is told whole: one may have many
_RECORDS_PASSED = 500
_encode = msgspec.json.Encoder().encode


class SiteWorld(World, Protocol):
    """A world whose attempts live on leases that are renewed."""

    def keep(self, until: Mapping[Held, float]) -> None:
        """Let each of these attempts go on until then, on the clock of `monotonic`; never shorter."""
        ...

    def monotonic(self) -> float:
        """A clock that only goes forward, and goes on over a restart of the agent."""
        ...

    def is_over(self, held: Held) -> bool:
        """Whether surely nothing of it runs any more, though that may not have been told yet."""
        ...

    def end(self, held: Held) -> None:
        """Kill an attempt that may not be: at once, without asking it."""
        ...


class Outbox(Protocol):
    """The agent's own journal, read back."""

    def last_seq(self) -> int: ...

    def after(self, seq: int) -> Iterable[tuple[int, StepRecord]]: ...


class Agent:
    """One site. `turn` and `take` are called by one thread."""

    def __init__(
        self,
        *,
        site: str,
        name: str,
        version: str,
        world: SiteWorld,
        state: State,
        policy: Policy,
        journal: Journal,
        outbox: Outbox,
        tenancy: Tenancy,
    ) -> None:
        self.site, self.name, self._version = site, name, version
        self._world, self._state, self._policy = world, state, policy
        self._journal, self._outbox, self.tenancy = journal, outbox, tenancy
        self._heard: int | None = None  # not known before the first answer
        self._orders: list[Order] = []
        self._obeyed: set[str] = set()
        self._pending: list[Event] = []
        self._readings: _Readings = {}  # the newest of each that the hub may not have
        self._told: _Readings = {}
        self._offered = 0
        self.receives_at = ""
        self.refusal = ""

    # The loop's world: that of the site, with what the hub has handed over.

    def now(self) -> float:
        return self._world.now()

    def events(self) -> Sequence[Event]:
        found = [*self._pending, *self._world.events()]
        self._pending.clear()
        for event in found:
            if isinstance(event, Measured):
                for subject, quantity, value in event.readings:
                    self._readings[event.source, subject, quantity] = (event.at, value)
        return found

    def apply(self, action: Action) -> None:
        self._world.apply(action)

    def sleep_until(self, at: float | None) -> None:
        self._world.sleep_until(at)

    def turn(self) -> Decision:
        """One step; then whatever runs here is allowed to go on for as long as it may."""
        self._hand_over()
        decision = step(self, self._state, self._policy, self._journal, self._decide)
        self.renew()
        return decision

    def renew(self) -> None:
        """Let what runs here go on for as long as it may; to be called more often than that lasts."""
        now, until = self._world.monotonic(), self.tenancy.may_run_until
        held = self._held()
        self._world.keep({one: until(now, alone=_goes_on(self._state, one.job)) for one in held})

    def is_restless(self) -> bool:
        """Whether a turn has something to do that the world does not tell of."""
        waits = bool(self._orders or self._pending or self._state.flights)
        return waits or (bool(self._state.holding) and self.tenancy.is_cut_off(self._world.monotonic()))

    def ask(self, clock: float, budget_bytes: float = MOST_BYTES) -> SyncRequest:
        """The next request: what the hub has not heard, as far as control traffic may carry it now, and what
        is held here."""
        after, through, events = self._unheard(min(budget_bytes, MOST_BYTES / 2))
        number = self.tenancy.ask(self._world.monotonic())
        self._told = dict(self._readings)
        return SyncRequest(
            site=self.site,
            agent=self.name,
            number=number,
            clock=clock,
            version=self._version,
            epoch=self.tenancy.epoch,
            receives_at=self.receives_at,
            accepts=self._offered,
            holds=tuple(held for held in self._held() if not self._world.is_over(held)),
            after=after,
            through=through,
            events=tuple(events[:MOST_EVENTS]),
            readings=tuple(_measured(self._told)),
        )

    def take(self, reply: SyncReply) -> bool:
        """What the hub answers; whether to ask again at once. Only the answer to the last request counts."""
        if not self.tenancy.is_answer(reply.number):
            return False
        self.refusal = "" if reply.refusal is None else reply.refusal.say
        if reply.refusal is not None:
            return False
        if reply.heard > self._outbox.last_seq():
            raise RefusedError(
                f"agent {self.name}: the server has heard it up to {reply.heard}, its own journal ends at "
                f"{self._outbox.last_seq()}",
                hint="its home is an older copy: give the site up, and start with an empty one",
            )
        self._heard = reply.heard
        self._offered = reply.offer
        for key, reading in self._told.items():
            if self._readings.get(key) == reading:
                del self._readings[key]
        for held in reply.disowned:
            self._world.end(held)
        if reply.lease is not None:
            self.tenancy.renew(reply.lease)
            self._obey_envelope(reply.lease.envelope)
            self._orders = list(reply.orders)
        return reply.soon

    def _unheard(self, budget_bytes: float) -> tuple[int, int, list[Told]]:
        """What the journal tells that the hub has not heard; records that tell nothing wait for company."""
        if self._heard is None:
            return 0, 0, []
        through, events, passed = self._heard, list[Told](), 0
        for seq, record in self._outbox.after(self._heard):
            told, passed = _told(record, self.site), passed + 1
            events += told
            budget_bytes -= len(_encode(told))
            if told or passed > _RECORDS_PASSED:
                through = seq
            if len(events) >= _EVENTS_AT_ONCE or budget_bytes <= 0.0:
                break
        return self._heard, through, events

    def _held(self) -> list[Held]:
        return [Held(job_id, self._state.jobs[job_id].attempt) for job_id in sorted(self._state.holding)]

    def _hand_over(self) -> None:
        """Jobs that the site is given: known here before they are begun."""
        now = self._world.now()
        for order in self._orders:
            if order.jobs and order.run is not None:
                self._pending.append(Handed(at=now, action=order.action, jobs=order.jobs, run=order.run))

    def _decide(self, snapshot: Snapshot, policy: Policy) -> Decision:
        orders = [order.action for order in self._orders if self._is_due(order.action)]
        self._obeyed.update(action.id for action in orders)
        self._orders = []
        now, cut_off = self._world.monotonic(), ""
        if self.tenancy.is_cut_off(now):
            cut_off = f"its site is cut off: no word for {self.tenancy.silent_seconds(now):.0f} s"
        return decide_at_site(snapshot, policy, site=self.site, orders=orders, cut_off=cut_off)

    def _is_due(self, action: Action) -> bool:
        """Each order once: a beginning by its attempt, which the journal keeps; others do no harm twice."""
        if action.node:
            return action.id not in self._obeyed
        job = self._state.jobs.get(action.job)
        if job is None:
            return False
        if action.kind in BEGINNINGS:
            return job.attempt == action.attempt - 1 and job.state not in HOLDING
        is_known = action.id in self._obeyed or action.id in self._state.flights
        return not is_known and job.attempt == action.attempt and job.state in HOLDING

    def _obey_envelope(self, envelope: tuple[tuple[str, float], ...]) -> None:
        """The ladder holds to it as to any cap, also when nobody renews it."""
        known = self._state.readings
        readings = tuple(
            (name, LEASED, watts)
            for name, watts in envelope
            if name in self._state.plant.resource_number and known.get((name, LEASED), (None,))[0] != watts
        )
        if readings:
            self._pending.append(Measured(at=self._world.now(), source="lease", readings=readings))


def _goes_on(state: State, job_id: str) -> bool:
    return state.jobs[job_id].request.on_isolation == "continue"


def _told(record: StepRecord, site: str) -> list[Told]:
    """What of one step concerns the hub: what happened, then what the agent thought of itself."""
    events: list[Told] = [event for event in record.events if isinstance(event, TOLD)]
    at = record.decision.at
    own = [action for action in record.decision.actions if is_own(action, site)]
    return [*events, *(Acted(at=at, action=action) for action in own if action.kind is not ActionKind.WAKE)]


def _measured(readings: _Readings) -> list[Measured]:
    """The newest of each, by source; a lease is no news to who gave it."""
    found: dict[tuple[str, float], list[tuple[str, str, float | None]]] = {}
    for (source, subject, quantity), (at, value) in readings.items():
        if source != "lease":
            found.setdefault((source, at), []).append((subject, quantity, value))
    return [
        Measured(at=at, source=source, readings=tuple(values))
        for (source, at), values in sorted(found.items(), key=lambda item: item[0][1])
    ]
