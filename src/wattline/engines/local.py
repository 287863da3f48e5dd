"""The local engine: real processes on this machine, each attempt under a supervisor of its own."""

from __future__ import annotations

import math
import selectors
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from wattline.engines.cgroups import find_quota_parent
from wattline.engines.contract import (
    EngineEvent,
    Launch,
    NodeSeen,
    Result,
    UnknownAttemptError,
    check_share,
)
from wattline.engines.recovery import recover_attempt
from wattline.engines.supervised import Supervised
from wattline.errors import UnavailableError, UsageError

_CLOSE_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.02


class LocalEngine:
    """An Engine for one control process and one thread of it.

    `throttle="duty-cycle"` does without cgroups also where they could be had.
    """

    name = "local"

    def __init__(self, *, throttle: Literal["auto", "duty-cycle"] = "auto") -> None:
        self._quota_parent = find_quota_parent() if throttle == "auto" else None
        self._running: dict[str, Supervised] = {}
        self._ended: set[str] = set()
        self._selector = selectors.DefaultSelector()

    def start(self, launch: Launch) -> None:
        if launch.attempt in self._running or launch.attempt in self._ended:
            return
        try:
            supervised = Supervised.start(launch, self._quota_parent)
        except OSError as error:
            raise UnavailableError(
                f"attempt {launch.attempt}: no supervisor could be started in {launch.directory}: {error}",
                hint="check the directory's space and rights, and the limits on processes and files",
            ) from error
        self._take_in(supervised)

    def _take_in(self, supervised: Supervised) -> None:
        self._running[supervised.launch.attempt] = supervised
        if supervised.handle is not None:
            self._selector.register(supervised.handle, selectors.EVENT_READ)

    def renew(self, attempt: str, until: float) -> None:
        for supervised in self._known(attempt):
            supervised.send(do="renew", until=until)

    def end(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.send(do="end")

    def living(self) -> Collection[str]:
        return self._running.keys()

    def leave(self) -> None:
        """What lives on this process's pipes ends with it all the same."""
        for supervised in self._running.values():
            supervised.leave()
        self._running.clear()
        self._selector.close()

    def throttle(self, attempt: str, duty: float) -> None:
        check_share(attempt, "duty", duty)
        for supervised in self._known(attempt):
            supervised.send(do="throttle", duty=duty)

    def shrink(self, attempt: str, in_flight: float) -> None:
        check_share(attempt, "in_flight", in_flight)
        for supervised in self._known(attempt):
            supervised.want(supervised.desired.shrunk(in_flight))

    def request_checkpoint(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.want(supervised.desired.with_checkpoint())
            if supervised.launch.checkpoint_signal is not None:
                supervised.send(do="checkpoint")

    def request_pause(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.want(supervised.desired.paused())
            if supervised.launch.checkpoint_signal is not None:
                supervised.send(do="pause")

    def freeze(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.send(do="freeze")

    def thaw(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.send(do="thaw")

    def stop(self, attempt: str) -> None:
        for supervised in self._known(attempt):
            supervised.send(do="stop")

    def poll(self) -> list[EngineEvent]:
        events: list[EngineEvent] = []
        for attempt, supervised in list(self._running.items()):
            handle = supervised.handle
            events.extend(supervised.poll())
            if handle is not None and supervised.handle is None:
                self._selector.unregister(handle)
            if supervised.result is not None:
                del self._running[attempt]
                self._ended.add(attempt)
        return events

    def wait(self, timeout_seconds: float) -> None:
        if any(supervised.is_busy for supervised in self._running.values()):
            timeout_seconds = min(timeout_seconds, _LOOK_AGAIN_SECONDS)
        self._selector.select(max(0.0, timeout_seconds))

    def recover(self, directories: Iterable[Path], timeout_seconds: float = 10.0) -> dict[Path, Result]:
        recovered = {}
        own = {supervised.directory: attempt for attempt, supervised in self._running.items()}
        for directory in directories:
            if directory.resolve() in own:
                raise UsageError(
                    f"attempt {own[directory.resolve()]}: it runs under this engine",
                    hint="recover what an earlier process left; stop what this one runs",
                )
            supervised = Supervised.adopt(directory)
            if supervised is not None:
                self._take_in(supervised)
            else:
                recovered[directory] = recover_attempt(directory, timeout_seconds)
        return recovered

    def sweep(self, root: Path, known: Collection[Path], before: float = math.inf) -> list[str]:
        """Nothing of it outlives the process that started it, or its lease."""
        del root, known, before
        return []

    def nodes(self) -> list[NodeSeen]:
        return []

    def close(self) -> None:
        for supervised in self._running.values():
            supervised.release()
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._running:
            self.wait(_LOOK_AGAIN_SECONDS)
            self.poll()
            if time.monotonic() > deadline:
                self._kill_all(deadline + _CLOSE_SECONDS)
        self._selector.close()

    def _kill_all(self, deadline: float) -> None:
        for supervised in self._running.values():
            supervised.kill()
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"attempts {', '.join(self._running)}: processes are left that SIGKILL does not end",
                hint="look for processes in uninterruptible sleep, or of another user",
            )

    def _known(self, attempt: str) -> list[Supervised]:
        """The attempt if it runs, nothing if it has ended."""
        if attempt in self._running:
            return [self._running[attempt]]
        if attempt in self._ended:
            return []
        raise UnknownAttemptError(
            f"attempt {attempt}: this engine has not started it",
            hint="only the engine that started an attempt commands it; after a restart, recover it",
        )
