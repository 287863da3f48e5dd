"""A hub, its sites and the network between them in virtual time, with everything that fails by one seed.

The hub and the agents are the real ones: `FleetWorld`, `Desk`, `Agent`, `step`, `decide`, `State`, the fences
of the checkpoint repository; every message is encoded and decoded. Simulated are time, the network
(partitions, loss, delay, duplication, reordering), machines with their supervisors, clocks. Both are killed
before and after any record is written, and come back from their journals.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from bench.site_facility import GPU_WATTS, MONDAY, a_facility, a_policy, a_run
from bench.site_machine import Attempt, Machine, SimulatedWorld
from bench.site_records import CrashError, Records
from wattline.checkpoint.repository import Entry
from wattline.control import step
from wattline.control.sites import (
    Agent,
    SyncReply,
    SyncRequest,
    Tenancy,
    Timing,
    decode_reply,
    decode_request,
    encode_message,
)
from wattline.control.sites.messages import TOLD
from wattline.live.fleet import FleetWorld
from wattline.state import Adopted, Decision, Event, Measured, SiteHeard, SiteStood, Standing, State
from wattline.state.measuring import LEASED

SITES = ("zurich", "frankfurt", "oslo")
TIMING = Timing(
    lease_seconds=24.0,
    grace_seconds=9.0,
    sync_seconds=3.0,
    supervisor_seconds=15.0,
    drift=0.02,
    fence_seconds=2.0,
    skew_seconds=30.0,
)
CHAOS_SECONDS = 180.0  # then everything heals
WILD_RATE = 0.15  # of a clock far beyond the bound: what takes a second takes seven there
_DELAYS_SECONDS = (0.1,) * 10 + (0.5, 0.5, 2.0, 2.0, 8.0, 40.0)
FACILITY = a_facility(SITES)
POLICY = a_policy()


@dataclass
class SiteSide:
    """An agent, its journal and its machine."""

    site: str
    machine: Machine
    journal: Records = field(default_factory=lambda: Records(FACILITY, POLICY))
    agent: Agent | None = None
    world: SimulatedWorld | None = None
    starts: int = 0
    sync_at: float = 0.0  # true time
    back_at: float = 0.0
    up_since: float = 0.0
    copied: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)


class Simulation:
    """One seed."""

    def __init__(self, seed: int, *, wild: bool = False, story: bool = False) -> None:
        """`wild`: one site's clock is far beyond the bound."""
        self.seed, self.wild, self._story = seed, wild, story
        self._chance = chance = random.Random(seed)
        self.at = 0.0
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._cuts: list[tuple[frozenset[str], float, float]] = []
        self.seen: Counter[str] = Counter()
        self._hub_rate = 1.0 + chance.uniform(-1.0, 1.0) * TIMING.drift
        self.hub_journal = Records(FACILITY, POLICY)
        self._adopt(self.hub_journal)
        self.submissions: list[Event] = []
        self.state = State(FACILITY)
        self.fleet: FleetWorld | None = None
        self._hub_back_at = 0.0
        self._hub_turn_at = 0.0
        self.sides = {site: self._a_side(site) for site in SITES}
        if wild:
            self.sides[SITES[0]].machine = Machine(SITES[0], WILD_RATE, 0.0, self)
        self.told: dict[str, list[Event]] = {site: [] for site in SITES}
        self.envelopes: dict[str, tuple[float, float]] = {}
        self.given_up: set[str] = set()
        self._plan()

    # What will fail, and when.

    def _a_side(self, site: str) -> SiteSide:
        rate = 1.0 + self._chance.uniform(-1.0, 1.0) * TIMING.drift
        return SiteSide(site, Machine(site, rate, self._chance.uniform(0.0, 5.0), self))

    @staticmethod
    def _adopt(journal: Records) -> None:
        documents = Adopted(
            at=MONDAY, facility="f", facility_sha256="f", policy="p", policy_sha256="p", code="simulation"
        )
        journal.append([documents], lambda: "", Decision(at=MONDAY))

    def _plan(self) -> None:
        chance = self._chance
        for number in range(chance.randint(2, 5)):
            self._later(chance.uniform(0.0, 60.0), lambda number=number: self._submit(number))  # type: ignore[misc]
        for _ in range(chance.randint(1, 4)):
            begins = chance.uniform(5.0, CHAOS_SECONDS)
            lasts = chance.choice((4.0, 12.0, 30.0, 60.0, 100.0)) * chance.uniform(0.5, 1.2)
            ends = min(begins + lasts, CHAOS_SECONDS)
            some = frozenset(chance.sample((*SITES, "hub"), chance.choice((1, 1, 2))))
            self._cuts.append((some, begins, ends))
        for _ in range(chance.randint(0, 3)):
            site, kind = chance.choice(SITES), chance.choice(("before", "after", "now"))
            self._later(chance.uniform(5.0, CHAOS_SECONDS), lambda s=site, k=kind: self._kill_agent(s, k))  # type: ignore[misc]
        for _ in range(chance.randint(0, 3)):
            kind = chance.choice(("before", "after", "now"))
            self._later(chance.uniform(5.0, CHAOS_SECONDS), lambda k=kind: self._kill_hub(k))  # type: ignore[misc]
        for _ in range(chance.randint(0, 2)):
            site = chance.choice(SITES)
            self._later(chance.uniform(10.0, CHAOS_SECONDS), lambda s=site: self._kill_supervisor(s))  # type: ignore[misc]
        for _ in range(chance.randint(0, 2)):
            site, share = chance.choice(SITES), chance.choice((0.5, 0.7))
            self._later(chance.uniform(10.0, CHAOS_SECONDS), lambda s=site, w=share: self._lease_watts(s, w))  # type: ignore[misc]
        for site in SITES:
            self._later(CHAOS_SECONDS, lambda s=site: self._lease_watts(s, 1.0))  # type: ignore[misc]
        if chance.random() < 0.1:
            site, dies = chance.choice(SITES), chance.uniform(20.0, CHAOS_SECONDS)
            self._later(dies, lambda: self._destroy(site))
            self._later(dies + 60.0, lambda: self._give_up(site))

    def _later(self, at: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._coming, (at, self._count, what))

    def tell(self, what: str) -> None:
        if self._story:
            print(f"{self.at:7.1f}  {what}")

    # Running.

    def tick(self) -> None:
        """One second: what was to come comes, the hub turns, machines work, agents turn."""
        while self._coming and self._coming[0][0] <= self.at:
            heapq.heappop(self._coming)[2]()
        self._hub()
        for side in self.sides.values():
            side.machine.advance(self.at)
            self._site(side)
        self._review()

    # The hub.

    def hub_clock(self) -> float:
        return MONDAY + 10.0 + self._hub_rate * self.at

    def _hub(self) -> None:
        if self.fleet is None:
            if self.at < self._hub_back_at:
                return
            self.state = self.hub_journal.refold()
            self.fleet = FleetWorld(
                state=self.state, timing=TIMING, clock=self.hub_clock, requests=self._take_submissions
            )
        if self.at >= self._hub_turn_at:
            self._hub_turn()

    def _take_submissions(self) -> list[Event]:
        return list(self.submissions)

    def _hub_turn(self) -> bool:
        """Whether the hub lives after it."""
        assert self.fleet is not None
        self._hub_turn_at = self.at + 2.0
        journal, before = self.hub_journal, len(self.hub_journal.records)
        try:
            step(self.fleet, self.state, POLICY, journal)
        except CrashError:
            self._hub_dies()
        if len(journal.records) > before:
            self.submissions.clear()
            self._note_told(journal.records[-1].events)
        return self.fleet is not None

    def _hub_dies(self) -> None:
        self.fleet = None
        self._hub_back_at = self.at + self._chance.choice((1.0, 5.0, 30.0))
        self.seen["hub crashes"] += 1
        self.tell("the hub is killed")

    def _kill_hub(self, kind: str) -> None:
        if self.fleet is None or self.at > CHAOS_SECONDS:
            return
        if kind == "now":
            self._hub_dies()
        else:
            self.hub_journal.crash = kind

    def _note_told(self, events: Sequence[Event]) -> None:
        """Which events came from which site: those before each SiteHeard."""
        batch: list[Event] = []
        for event in events:
            if isinstance(event, SiteHeard):
                self.told[event.site] += batch
                batch = []
            elif isinstance(event, TOLD):
                batch.append(event)
            elif isinstance(event, SiteStood):
                self.seen[str(event.standing)] += 1
                self.tell(f"{event.site}: {event.standing}, {event.say}")

    # The sites.

    def _site(self, side: SiteSide) -> None:
        if side.machine.destroyed:
            return
        if side.agent is None:
            if self.at < side.back_at:
                return
            self._start_agent(side)
        agent, world = side.agent, side.world
        assert agent is not None
        assert world is not None
        try:
            if world.has_news() or agent.is_restless() or int(self.at) % 5 == 0:
                agent.turn()
            agent.renew()
        except CrashError:
            self._agent_dies(side)
            return
        if self.at >= side.sync_at:
            side.sync_at = self.at + TIMING.sync_seconds
            self._ask(side)

    def _start_agent(self, side: SiteSide) -> None:
        if not side.journal.records:
            self._adopt(side.journal)
        state = side.journal.refold()
        side.starts += 1
        side.up_since = self.at
        world = SimulatedWorld(side.machine, state, MONDAY, side.copied)
        tenancy = Tenancy(TIMING, side.starts << 32, world.monotonic())
        side.world = world
        side.agent = Agent(
            site=side.site,
            name=f"agent-{side.site}",
            version="simulation",
            world=world,
            state=state,
            policy=POLICY,
            journal=side.journal,
            outbox=side.journal,
            tenancy=tenancy,
        )

    def _agent_dies(self, side: SiteSide) -> None:
        side.agent = side.world = None
        side.back_at = self.at + self._chance.choice((1.0, 4.0, 10.0, 25.0))
        self.seen["agent crashes"] += 1
        self.tell(f"{side.site}: the agent is killed")

    def _kill_agent(self, site: str, kind: str) -> None:
        side = self.sides[site]
        if side.agent is None or self.at > CHAOS_SECONDS:
            return
        if kind == "now":
            self._agent_dies(side)
        else:
            side.journal.crash = kind

    def _kill_supervisor(self, site: str) -> None:
        alive = [attempt for attempt in self.sides[site].machine.attempts.values() if attempt.alive]
        if alive:
            self._chance.choice(alive).supervised = False
            self.seen["supervisor crashes"] += 1

    def _destroy(self, site: str) -> None:
        self.seen["sites destroyed"] += 1
        self.tell(f"{site}: burns down")
        self.sides[site].machine.destroy()
        self.sides[site].agent = None

    def _give_up(self, site: str) -> None:
        if self.fleet is None or site not in self.state.sites:
            self._later(self.at + 5.0, lambda: self._give_up(site))
            return
        self.given_up.add(site)
        self.fleet.desk.give_up(self.state, site, actor="ada", now=self.fleet.now())
        if not self._hub_turn():  # killed before it was written down, perhaps: not answered, she asks again
            self._later(self.at + 5.0, lambda: self._give_up(site))

    # The network.

    def _is_cut(self, one: str, other: str) -> bool:
        return any(
            begins <= self.at < ends and (one in some) is not (other in some)
            for some, begins, ends in self._cuts
        )

    def _send(self, one: str, other: str, what: Callable[[], None]) -> None:
        if self._is_cut(one, other):
            return
        chance, calm = self._chance, self.at > CHAOS_SECONDS
        if not calm and chance.random() < 0.1:
            return
        for _ in range(2 if not calm and chance.random() < 0.1 else 1):
            delay = 0.1 if calm else chance.choice(_DELAYS_SECONDS)
            self._later(self.at + delay, lambda: None if self._is_cut(one, other) else what())

    def _ask(self, side: SiteSide) -> None:
        assert side.agent is not None
        request = side.agent.ask(MONDAY + 10.0 + self.at)
        raw, agent = encode_message(request), side.agent
        self._send(side.site, "hub", lambda: self._arrived(side, agent, decode_request(raw)))

    def _arrived(self, side: SiteSide, agent: Agent, request: SyncRequest) -> None:
        if self.fleet is None:
            return
        future: Future[SyncReply] = self.fleet.submit(request)
        self._hub_turn()
        if not future.done() or self.fleet is None:
            return  # killed before it could answer
        raw = encode_message(future.result())
        self._send("hub", side.site, lambda: self._answered(side, agent, decode_reply(raw)))

    def _answered(self, side: SiteSide, agent: Agent, reply: SyncReply) -> None:
        if side.agent is not agent:
            return
        if reply.lease is not None and agent.tenancy.is_answer(reply.number):
            watts = sum(watts for name, watts in reply.lease.envelope if "feed" in name)
            if self.envelopes.get(side.site, (0.0,))[0] != watts:
                self.envelopes[side.site] = (watts, self.at)
        try:
            if agent.take(reply):
                side.sync_at = self.at
        except CrashError:
            self._agent_dies(side)

    def send_copy(self, origin: str, attempt: Attempt, target: str, step_number: int) -> None:
        side = self.sides[origin]
        key = (attempt.job, attempt.number)
        if side.copied.get(key, {}).get(target, -1) >= step_number:
            return

        def arrive() -> None:
            if not self.sides[target].machine.destroyed and self.sides[target].machine.arrive(
                *key, step_number
            ):
                self._send(target, origin, confirm)

        def confirm() -> None:
            steps = side.copied.setdefault(key, {})
            steps[target] = max(step_number, steps.get(target, 0))

        self._send(origin, target, arrive)

    def fetch(self, origin: str, target: str, job: str) -> Entry | None:
        machine = self.sides[origin].machine
        return None if machine.destroyed or self._is_cut(origin, target) else machine.newest(job)

    # People.

    def _submit(self, number: int) -> None:
        chance = self._chance
        event = a_run(
            number,
            at=self.hub_clock(),
            steps=chance.randint(20, 120),
            goes_on=chance.random() < 0.3,
            saves=chance.random() < 0.7,
            replicate_to=SITES if chance.random() < 0.7 else (),
        )
        self.submissions.append(event)

    def _lease_watts(self, site: str, share: float) -> None:
        watts = share * 8 * GPU_WATTS
        self.submissions.append(
            Measured(at=self.hub_clock(), source="grid", readings=((f"{site}/feed", LEASED, watts),))
        )

    def _review(self) -> None:
        """A person looks now and then at sites that are held for it."""
        held = [one for one in self.state.sites.values() if one.standing is Standing.HELD_FOR_REVIEW]
        if self.fleet is not None and held and self.at % 10 == 0:
            self.fleet.desk.reviewed(self.state, held[0].site, actor="ada", now=self.fleet.now())
            self._hub_turn()
