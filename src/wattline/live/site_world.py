"""A site's world: the live one, whose attempts live on leases and are found again after a restart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wattline.actuators import Actuator
from wattline.control.sites.messages import Held
from wattline.engines import Launch, LeasedEngine, leases
from wattline.errors import UnavailableError
from wattline.live.home import Home
from wattline.live.launching import attempt_name
from wattline.live.meters import Meters
from wattline.live.replicas import StoreOf
from wattline.live.running import Goods
from wattline.live.world import LiveWorld
from wattline.state import Event, State


class SiteLiveWorld(LiveWorld):
    """Implements `SiteWorld` of `control/sites`: what it starts goes on without it until its lease ends."""

    def __init__(
        self,
        *,
        home: Home,
        state: State,
        engine: LeasedEngine,
        actuator: Actuator,
        meters: Meters,
        goods: Goods,
        stores: StoreOf,
        requests: Callable[[], Sequence[Event]] = tuple,
    ) -> None:
        super().__init__(
            home=home,
            state=state,
            engine=engine,
            actuator=actuator,
            meters=meters,
            goods=goods,
            requests=requests,
            stores=stores,
        )
        self._leased_engine = engine
        self._until: dict[str, float] = {}

    def monotonic(self) -> float:
        return leases.now()

    def keep(self, until: Mapping[Held, float]) -> None:
        wanted = {attempt_name(held.job, held.attempt): deadline for held, deadline in until.items()}
        living = self._leased_engine.living()
        for attempt, deadline in wanted.items():
            if deadline > self._until.get(attempt, -math.inf):
                self._until[attempt] = deadline
                if attempt in living:
                    self._leased_engine.renew(attempt, deadline)
        self._until = {attempt: self._until.get(attempt, -math.inf) for attempt in wanted}

    def is_over(self, held: Held) -> bool:
        attempt = attempt_name(held.job, held.attempt)
        preparing = any(
            (action.job, action.attempt) == (held.job, held.attempt) for action, _ in self._preparing.values()
        )
        return not preparing and attempt not in self._leased_engine.living()

    def end(self, held: Held) -> None:
        for action_id, (action, future) in list(self._preparing.items()):
            if (action.job, action.attempt) == (held.job, held.attempt):
                future.cancel()
                del self._preparing[action_id]
        attempt = attempt_name(held.job, held.attempt)
        if attempt in self._leased_engine.living():
            self._leased_engine.end(attempt)

    def leave(self) -> None:
        """Go, and let everything run on."""
        self._replicas.close()
        self._sweeper.close()
        self._leased_engine.leave()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _launch(self, launch: Launch) -> None:
        until = self._until.get(launch.attempt, -math.inf)
        if until <= leases.now():
            raise UnavailableError(f"attempt {launch.attempt}: its site's lease ended before it could start")
        self._engine.start(replace(launch, lease_until=until))
