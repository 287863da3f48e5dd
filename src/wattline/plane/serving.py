"""How does a server conduct: when is it its turn, what does it go by, and how does it leave?

One server at a time holds the writer lease; the others stand by and look again now and then. Runs that were
submitted to a server go on without whoever submitted them. A server that is asked to leave lets everything
save first, and leaves no word behind that would keep a job from going on under the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from wattline.errors import UnavailableError
from wattline.live import Home
from wattline.live.fleet import FleetWorld
from wattline.plane.collecting import collecting_between_turns
from wattline.plane.conductor import Conductor
from wattline.plane.policy_in_force import Following, choose_policy
from wattline.plane.session import Session, user
from wattline.spec import Fault
from wattline.state import HOLDING, Asked, Decision, Event, RunConcluded, RunSubmitted, State
from wattline.store import LeaseLostError

_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
_SAVE_SECONDS = 120.0
# After a turn the loop stands back three times as long as that took, this long at most: most of the
# interpreter, and of the database, is for those who ask and submit. What came meanwhile is taken in at once.
_BREATHS = 3.0
_LONGEST_BREATH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What the command line asked for."""

    facility: str | None = None
    policy: str | None = None
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    receives_at: str = ""  # where agents of other sites fetch and bring checkpoints of those run here


Say = Callable[[str], None]
Stopping = Callable[[], int]  # how many times it was asked to leave


class Shift:
    """Conducts whenever the lease is free, until it is asked to leave."""

    def __init__(self, home: Home, database: str | None, asked: Serving, say: Say) -> None:
        self._home, self._database = home, database
        self._asked, self._say = asked, say
        self.is_conducting = False
        self.fleet: FleetWorld | None = None  # whom agents ask, while it conducts

    def work(self, stopping: Stopping) -> None:
        """Stand by and conduct in turns; a database that is away is asked again."""
        said = ""
        while not stopping():
            try:
                with_session = Session(self._home, self._database)
            except UnavailableError as error:
                said = self._once(said, f"waits: {error.message}")
                _pause(_AGAIN_SECONDS, stopping)
                continue
            try:
                said = self._with(with_session, stopping, said)
            finally:
                with suppress(
                    UnavailableError
                ):  # a lease that could not be given back runs out, or its process does
                    with_session.close()

    def _with(self, session: Session, stopping: Stopping, said: str) -> str:
        while not stopping():
            try:
                # Between two turns of conducting nothing of the last one is left, whatever the lease says.
                if session.become_writer("wattline serve", own_is_over=True):
                    self._conduct(session, stopping)
                    return ""
                holder = session.store.lease.current()
            except LeaseLostError as error:
                self._say(f"conducts no more: {error.message}")
                return ""
            except UnavailableError as error:
                said = self._once(said, f"waits: {error.message}")
                _pause(_AGAIN_SECONDS, stopping)
                return said
            if holder is not None:
                said = self._once(said, f"stands by: {holder.holder} on {holder.process.hostname} conducts")
            _pause(_LOOK_SECONDS, stopping)
        return said

    def hands_over(self, state: State, origin: str, to: str | None) -> bool:
        """Whether a checkpoint of one site can be had at another; see `Desk.hands_over`."""
        fleet = self.fleet
        return fleet is None or fleet.desk.hands_over(state, origin, to)

    def _conduct(self, session: Session, stopping: Stopping) -> None:
        conductor = self._conductor(session)
        self.is_conducting, self.fleet = True, conductor.world
        adopted = conductor.state.plant.facility.name
        self._say(f"conducts {adopted}")
        try:
            with collecting_between_turns() as collect:
                while not stopping():
                    began = time.monotonic()
                    decision = conductor.turn()
                    took = time.monotonic() - began
                    collect()
                    _pause(min(_LONGEST_BREATH_SECONDS, _BREATHS * took), stopping)
                    conductor.rest(decision)
            self._save(conductor, stopping)
        finally:
            self.is_conducting, self.fleet = False, None
            conductor.close()

    def _conductor(self, session: Session) -> Conductor:
        adopted = session.state.adopted if session.state else {}
        asked = self._asked
        facility = adopted.get("facility_sha256")
        if asked.facility is not None or not facility:
            facility = session.keep_facility(asked.facility or "lab")
        policy = choose_policy(session, asked.policy, otherwise=adopted.get("policy_sha256"))
        return Conductor(
            session,
            facility_digest=facility,
            policy_digest=policy,
            faults=asked.faults,
            watcher=_Log(self._say),
            seed=asked.seed,
            receives_at=asked.receives_at,
            following=Following(session, policy) if asked.policy is None else None,
        )

    def _save(self, conductor: Conductor, stopping: Stopping) -> None:
        """Let all that runs save and leave; it goes on by itself under whoever conducts next."""
        sites = conductor.state.sites  # what agents run goes on under them
        running = [
            job
            for job in conductor.state.jobs.values()
            if job.state in HOLDING and not job.asked and not (job.place and job.place.site in sites)
        ]
        if not running:
            return
        self._say(f"lets {len(running)} jobs save; once more stops them now")
        give_up_at, asked_times = time.monotonic() + _SAVE_SECONDS, stopping()
        words = {job.id: job.request.project for job in running}
        conductor.submit(*_say_to(words, "pause", conductor.world.now()))
        while any(job in conductor.state.holding for job in words):
            if time.monotonic() > give_up_at or stopping() > asked_times:
                break
            conductor.rest(conductor.turn())
        conductor.note(_say_to(words, "resume", conductor.world.now()))

    def _once(self, said: str, say: str) -> str:
        if say != said:
            self._say(say)
        return say


class _Log:
    """A line for every run that comes and goes."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def turn(self, _state: State, events: Sequence[Event], _decision: Decision) -> None:
        for event in events:
            if isinstance(event, RunSubmitted):
                self._say(f"{event.run} was submitted by {event.actor}")
            elif isinstance(event, RunConcluded):
                self._say(f"{event.run} ended: {event.status}")


def _say_to(jobs: dict[str, str], want: str, at: float) -> list[Event]:
    return [Asked(at=at, actor=user(), project=project, job=job, want=want) for job, project in jobs.items()]


def _pause(seconds: float, stopping: Stopping) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stopping():
        time.sleep(max(0.0, min(0.1, until - time.monotonic())))
