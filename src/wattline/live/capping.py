"""Capping: how are power limits set while the loop goes on, and put back when an attempt is over?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from wattline.actuators import Actuator
from wattline.errors import WattlineError
from wattline.state import Acknowledged, Action, ActionFailed, Event, Noticed


class Capping:
    """An actuator in a thread of its own, where it talks to machines: one thing after the other, in order."""

    def __init__(self, actuator: Actuator) -> None:
        self._actuator = actuator
        self._worker = ThreadPoolExecutor(1, "wattline-caps") if actuator.is_slow else None
        self._done: list[tuple[Action | None, str, Future[None]]] = []

    def begin(self, attempt: str, nodes: Mapping[str, int], fraction: float) -> None:
        """An attempt runs; where it was to begin under a cap, it does now."""

        def work() -> None:
            self._actuator.begin(attempt, nodes)
            if fraction < 1.0:
                self._actuator.set_power_cap(attempt, fraction)

        self._do(None, attempt, work)

    def cap(self, action: Action, attempt: str) -> None:
        """Answered by what `poll` gives."""
        self._do(action, attempt, lambda: self._actuator.set_power_cap(attempt, action.fraction))

    def end(self, attempt: str) -> None:
        self._do(None, attempt, lambda: self._actuator.end(attempt))

    def poll(self, now: float) -> list[Event]:
        """What came of what was asked for."""
        found: list[Event] = []
        ready = [each for each in self._done if each[2].done()]
        self._done = [each for each in self._done if not each[2].done()]
        for action, attempt, future in ready:
            trouble = future.exception()
            if trouble is not None and not isinstance(trouble, WattlineError | OSError):
                raise trouble
            say = trouble.message if isinstance(trouble, WattlineError) else str(trouble)
            if action is None:
                if trouble is not None:
                    found.append(Noticed(at=now, subject=attempt, say=f"its power limits: {say}"))
            elif trouble is None:
                found.append(Acknowledged(at=now, action=action.id))
            else:
                found.append(ActionFailed(at=now, action=action.id, say=say))
        return found

    def close(self) -> None:
        """Limits are put back as they were."""
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)
        self._actuator.close()

    @property
    def is_busy(self) -> bool:
        return bool(self._done)

    def _do(self, action: Action | None, attempt: str, work: Callable[[], None]) -> None:
        future: Future[None]
        if self._worker is not None:
            future = self._worker.submit(work)
        else:
            future = Future()
            try:
                work()
                future.set_result(None)
            except (WattlineError, OSError) as error:
                future.set_exception(error)
        self._done.append((action, attempt, future))
