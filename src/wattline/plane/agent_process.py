"""An agent's process: how is one site wired to its engine, its meters, its files and its server?"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from wattline import __version__
from wattline.actuators import SiteActuators
from wattline.checkpoint import Rate
from wattline.checkpoint.receiver import Receiver
from wattline.control import StepRecord
from wattline.control.sites import Agent, SyncReply, SyncRequest, Tenancy, Timing
from wattline.decoding import decode_json
from wattline.engines import leased_engine_of, leases
from wattline.engines.files import OUTPUT, write_document
from wattline.errors import RefusedError, UnavailableError, UsageError, WattlineError
from wattline.facility import Facility, TrafficClass
from wattline.live import Home, Meters
from wattline.live.launching import attempt_name
from wattline.live.printed import Printed
from wattline.live.site_stores import SiteStores, make_receiver
from wattline.live.site_world import SiteLiveWorld
from wattline.live.uplink import Uplink
from wattline.plane.session import LEASE_SECONDS, Session
from wattline.release.carrying import CarriedGoods, CarriedObjects
from wattline.state import Event, Job, State
from wattline.store.records import Journal
from wattline.store.steps import StepJournal, read_steps
from wattline.telemetry import EmulatedFacility, readers_of

_SNAPSHOT_SECONDS = 60.0
_ASK_AGAIN_SECONDS = 2.0
_LONGEST_TURN_SECONDS = 0.5
_NUMBERS_PER_START = 1 << 32
_GREETINGS = 1 << 16
_LATELY_SECONDS = 86400.0
_UNBOUNDED = 1e12  # bytes a second, where no link is in the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asked for."""

    site: str
    receive: str | None = None  # host:port for checkpoints of other sites


class AgentProcess:
    """One site. The way to the server has a thread of its own: waiting for it never holds up the ladder."""

    def __init__(self, asked: Asked, session: Session, uplink: Uplink, tell: Callable[[str], None]) -> None:
        self._asked, self._session, self._uplink, self._tell = asked, session, uplink, tell
        self.name, number = _count_start(session.home)
        self._line = ThreadPoolExecutor(1, thread_name_prefix="wattline-sync")
        self._going: Future[SyncReply] | None = None
        self._sync_at = self._renew_at = self._snapshot_at = 0.0
        self._said = ""
        self._was_answered = False  # with a lease, since this start
        self._rate = Rate(_UNBOUNDED)
        objects = CarriedObjects(session.home.objects, uplink, lambda: self._rate)
        self._printed = Printed(asked.site, uplink, lambda: self._rate)
        self._goods = session.goods = CarriedGoods(objects, self._printed)
        session.objects = objects
        self._was_here = session.state is not None
        adopted = session.state.adopted if session.state is not None else self._greet(number)
        self._first: list[Event] = [
            session.adopt(adopted["facility_sha256"], adopted["policy_sha256"], time.time())
        ]
        assert session.state is not None
        self.state: State = session.state
        self._stores = SiteStores(session.home, lambda site: site == asked.site)
        self.world = self._make_world()
        self._first += self.world.recover()
        self._printed.remember(self._lately())
        self.agent = Agent(
            site=asked.site,
            name=self.name,
            version=__version__,
            world=self.world,
            state=self.state,
            policy=session.policy_of(adopted["policy_sha256"]),
            journal=StepJournal(session.store.journal),
            outbox=_Outbox(session.store.journal),
            tenancy=Tenancy(Timing(), number + _GREETINGS, leases.now()),
        )
        self._receiver = self._receive()

    def work(self, is_leaving: Callable[[], bool]) -> None:
        while not is_leaving():
            self.turn()
            self.world.sleep_until(self.world.now() + _LONGEST_TURN_SECONDS)

    def turn(self) -> None:
        """One step of the site, and the conversation with the server as far as it has come."""
        self._hear()
        self.agent.turn()
        self._ask()
        self._keep_up()

    def leave(self) -> None:
        """What runs goes on until its lease ends, or until an agent is here again."""
        self._goods.close()
        self._printed.close()
        self._line.shutdown(wait=False, cancel_futures=True)
        if self._receiver is not None:
            self._receiver.__exit__(None, None, None)
        self.world.leave()

    def _make_world(self) -> SiteLiveWorld:
        facility, session = self.state.plant.facility, self._session
        here = _alone(facility, self._asked.site)
        engine = leased_engine_of(here.sites[0], facility.name, was_checked=self._was_here)
        emulated = EmulatedFacility(here, (), 0, max(time.time(), self.state.at))
        return SiteLiveWorld(
            home=session.home,
            state=self.state,
            engine=engine,
            actuator=SiteActuators(here, emulated),
            meters=Meters(emulated, engine, readers_of(here)),
            goods=self._goods,
            stores=self._stores,
            requests=self._first_words,
        )

    def _first_words(self) -> list[Event]:
        first, self._first = self._first, []
        return first

    def _greet(self, number: int) -> dict[str, str]:
        """The first word of an empty home: which documents are in force?"""
        for attempt in range(_GREETINGS):
            request = SyncRequest(
                site=self._asked.site,
                agent=self.name,
                number=number + attempt,
                clock=time.time(),
                version=__version__,
            )
            try:
                reply = self._uplink.sync(request)
            except UnavailableError as error:
                self._say(error.message)
            else:
                if reply.refusal is not None:
                    raise RefusedError(reply.refusal.say, hint=reply.refusal.hint)
                if reply.adopted:
                    return reply.adopted
                self._say("waits until the server has adopted a facility")
            time.sleep(_ASK_AGAIN_SECONDS)
        raise UnavailableError(f"server {self._uplink.url}: says nothing of its facility")

    def _ask(self) -> None:
        if self._going is not None or time.monotonic() < self._sync_at:
            return
        timing = self.agent.tenancy.timing
        self._sync_at = time.monotonic() + timing.sync_seconds
        # An answer that takes half the grace is no use any more: the next request asks for the same.
        self._going = self._line.submit(
            self._uplink.sync,
            self.agent.ask(time.time(), self._share(TrafficClass.CONTROL) * timing.sync_seconds),
            timing.grace_seconds / 2,
        )

    def _hear(self) -> None:
        if self._going is None or not self._going.done():
            return
        future, self._going = self._going, None
        try:
            reply = future.result()
        except RefusedError as error:
            self._heed_refusal(error)
            return
        except WattlineError as error:
            self._say(error.message)
            return
        if reply.refusal is not None:
            self._heed_refusal(RefusedError(reply.refusal.say, hint=reply.refusal.hint))
        self._was_answered |= reply.lease is not None
        self._stores.receivers = reply.receivers
        if self.agent.take(reply):
            self._sync_at = 0.0
        timing = self.agent.tenancy.timing
        self.world.cut_seconds = timing.grace_seconds + 2.0 * timing.sync_seconds
        epoch = self.agent.tenancy.epoch
        self._say(self.agent.refusal or (f"holds its lease, epoch {epoch}" if epoch else "asks for a lease"))

    def _heed_refusal(self, error: RefusedError) -> None:
        """An agent that nothing depends on yet goes, with the words; who keeps a site safe stays at it."""
        if not self._was_answered and not self.state.holding:
            raise error
        self._say(error.message)

    def _keep_up(self) -> None:
        now = time.monotonic()
        self._rate.change(self._share(TrafficClass.ARTIFACT))
        self._printed.look(self._output_of(self.state.jobs[job]) for job in sorted(self.state.holding))
        token = self._session.store.lease.held
        if token is not None and now >= self._renew_at:
            self._session.store.lease.renew(token)
            self._renew_at = now + LEASE_SECONDS / 3
        if now >= self._snapshot_at:
            self._session.save_snapshot()
            self._snapshot_at = now + _SNAPSHOT_SECONDS

    def _lately(self) -> Iterator[tuple[str, Path]]:
        """What may have printed something that an earlier process did not hand over."""
        for job in self.state.jobs.values():
            if job.attempt and job.since > self.state.at - _LATELY_SECONDS:
                yield self._output_of(job)

    def _output_of(self, job: Job) -> tuple[str, Path]:
        folder = self._session.home.attempt(job.request.run, job.request.phase, job.attempt)
        return attempt_name(job.id, job.attempt), folder / OUTPUT

    def _share(self, traffic: TrafficClass) -> float:
        """What the narrowest of the site's links gives to a class now, in bytes a second."""
        plant, site = self.state.plant, self._asked.site
        links = [plant.link_resource(site, other, traffic) for other in plant.sites if other != site]
        rates = [self.state.ledger.caps[link] / 8 for link in links if link is not None]
        return max(1.0, min(rates, default=_UNBOUNDED))

    def _receive(self) -> Receiver | None:
        if self._asked.receive is None:
            return None
        folder = self._session.home.root / "sites" / self._asked.site / "checkpoints"
        receiver = make_receiver(self._asked.receive, folder).__enter__()
        self.agent.receives_at = receiver.url
        return receiver

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self._tell(what)


class _Outbox:
    """The agent's journal, read back for who has not heard it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def last_seq(self) -> int:
        return self._journal.last_seq()

    def after(self, seq: int) -> Iterable[tuple[int, StepRecord]]:
        return read_steps(self._journal, seq)


def _alone(facility: Facility, site: str) -> Facility:
    here = tuple(one for one in facility.sites if one.name == site)
    if not here:
        raise UsageError(f"site {site}: is not in facility {facility.name}")
    return replace(facility, sites=here, links=())


class _Identity(msgspec.Struct):
    name: str
    starts: int


def _count_start(home: Home) -> tuple[str, int]:
    """The agent's name, which its home keeps, and the first number of this start's requests."""
    path = home.root / "agent.json"
    try:
        known = decode_json(path.read_bytes(), _Identity)
    except FileNotFoundError:
        known = _Identity(uuid.uuid4().hex[:16], 0)
    except msgspec.MsgspecError as error:
        raise UnavailableError(
            f"{path}: cannot be read: {error}", hint="put it back, or give the site up"
        ) from error
    known.starts += 1
    write_document(home.root, path.name, msgspec.to_builtins(known), durable=True)
    return known.name, known.starts * _NUMBERS_PER_START
