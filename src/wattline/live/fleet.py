"""The fleet: how are sites with agents of their own one world?

What agents tell is what happens. Their requests come from other threads and wait for the loop's next turn: an
answer rests on what is written down. Nothing is sent: an agent fetches what its site has in flight, until it
has answered.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Protocol

import msgspec

from wattline.control.ports import World
from wattline.control.sites import MAY_BE, Desk, SyncReply, SyncRequest, Timing
from wattline.errors import UnavailableError
from wattline.state import Action, Event, Measured, SiteAsked, State

_MOST_WAITING = 1000
_LONGEST_SLEEP_SECONDS = 1.0
_ANSWER_SECONDS = 0.2


class LocalWorld(World, Protocol):
    """What a conductor needs of the world in its own process."""

    def recover(self) -> list[Event]: ...

    def is_replicating(self, jobs: tuple[str, ...]) -> bool: ...

    def stop_all(self) -> None: ...

    def close(self) -> None: ...


class FleetWorld:
    """The sites that agents run; `local` is the world of those that this process runs itself."""

    def __init__(
        self,
        *,
        state: State,
        timing: Timing,
        clock: Callable[[], float],
        requests: Callable[[], Sequence[Event]] = tuple,
        local: LocalWorld | None = None,
        is_writer: Callable[[], bool] = lambda: True,
    ) -> None:
        """`clock` only goes forward; `is_writer` asks the store, where another may have taken over."""
        self._state, self._clock, self._requests, self._local = state, clock, requests, local
        self._is_writer = is_writer
        self.desk = Desk(timing, clock())
        self._asked: deque[tuple[SyncRequest, Future[SyncReply]]] = deque()
        self._woken = threading.Event()

    def now(self) -> float:
        return self._clock() if self._local is None else self._local.now()

    def submit(self, request: SyncRequest) -> Future[SyncReply]:
        """From any thread: the answer comes with the loop's next turn."""
        if len(self._asked) >= _MOST_WAITING:
            raise UnavailableError(
                f"site {request.site}: {_MOST_WAITING} requests wait for an answer", hint="ask again later"
            )
        future: Future[SyncReply] = Future()
        self._asked.append((request, future))
        self._woken.set()
        return future

    def sync(self, request: SyncRequest, timeout_seconds: float = 10.0) -> SyncReply:
        """`submit`, and wait."""
        try:
            return self.submit(request).result(timeout_seconds)
        except FutureTimeoutError:
            raise UnavailableError(
                f"site {request.site}: no answer within {timeout_seconds:.0f} s", hint="ask again later"
            ) from None

    def events(self) -> Sequence[Event]:
        self._woken.clear()
        self.desk.journaled()
        found = self._heard_here() if self._local is not None else []
        found += self._requests()
        for event in found:
            if isinstance(event, SiteAsked):
                self._heed(event)
        self._answer()
        self.desk.look(self._state, self.now())
        return [*found, *self.desk.drain()]

    def _heed(self, asked: SiteAsked) -> None:
        """A person's word about a site; void where it was overtaken by how the site stands by now."""
        record = self._state.sites.get(asked.site)
        if record is None or record.standing not in MAY_BE.get(asked.want, ()):
            return
        if asked.want == "give_up":
            self.desk.give_up(self._state, asked.site, actor=asked.actor, now=self.now())
        else:
            self.desk.reviewed(self._state, asked.site, actor=asked.actor, now=self.now())

    def _heard_here(self) -> list[Event]:
        """What the local world tells, but for readings of sites whose agents read for themselves."""
        assert self._local is not None
        found = list(self._local.events())
        if not self._state.sites:
            return found
        return [self._own_readings(event) if isinstance(event, Measured) else event for event in found]

    def _own_readings(self, event: Measured) -> Measured:
        plant, sites = self._state.plant, self._state.sites
        kept = []
        for subject, quantity, value in event.readings:
            node = plant.node_number.get(subject.rsplit("/gpu", 1)[0])
            resource = plant.resource_number.get(subject)
            site = plant.spots[node].site.name if node is not None else subject
            if resource is not None and plant.site_number_of_resource[resource] >= 0:
                site = plant.site_names[plant.site_number_of_resource[resource]]
            if site not in sites:
                kept.append((subject, quantity, value))
        unchanged = tuple(site for site in event.unchanged if site not in sites)
        return msgspec.structs.replace(event, readings=tuple(kept), unchanged=unchanged)

    def recover(self) -> list[Event]:
        """How what ran here ended; what agents run is told by them."""
        return [] if self._local is None else self._local.recover()

    def is_replicating(self, jobs: tuple[str, ...]) -> bool:
        """Whether checkpoints of these jobs are on their way from here to another site."""
        return self._local is not None and self._local.is_replicating(jobs)

    def stop_all(self) -> None:
        """End what runs here; agents go on with what is theirs."""
        if self._local is not None:
            self._local.stop_all()

    def close(self) -> None:
        """End everything that was started here, and tell agents that nobody answers."""
        while self._asked:
            _, future = self._asked.popleft()
            future.set_exception(UnavailableError("this server is leaving", hint="ask again later"))
        if self._local is not None:
            self._local.close()

    def apply(self, action: Action) -> None:
        """What concerns a site with an agent is in flight, and fetched; the rest is done here."""
        if self._local is not None and self._site_of(action) not in self._state.sites:
            self._local.apply(action)

    def sleep_until(self, at: float | None) -> None:
        now = self.now()
        due = [now + _LONGEST_SLEEP_SECONDS, at, self.desk.next_look_at(self._state)]
        wake_at = min(time for time in due if time is not None)
        if self._local is not None and not self._woken.is_set():
            if self._state.sites:  # it does not wake for a request, so it may not sleep for long
                wake_at = min(wake_at, now + _ANSWER_SECONDS)
            self._local.sleep_until(wake_at)
            return
        self._woken.wait(max(0.0, wake_at - now))

    def _answer(self) -> None:
        """One look at the store for all who wait: they came before it."""
        if not self._asked:
            return
        waiting = [self._asked.popleft() for _ in range(len(self._asked))]
        may_answer = self._is_writer()
        for request, future in waiting:
            if may_answer:
                future.set_result(self.desk.answer(self._state, request, self.now()))
            else:
                future.set_exception(
                    UnavailableError("this server is not the active one any more", hint="ask the one that is")
                )

    def _site_of(self, action: Action) -> str:
        plant = self._state.plant
        if action.node:
            return plant.spots[plant.node_number[action.node]].site.name
        job = self._state.jobs[action.job]
        return "" if job.place is None else job.place.site
