"""Routing: which engine runs an attempt? That of the site it was placed at; together they are one engine."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from wattline.engines.contract import Engine, EngineEvent, Launch, NodeSeen, Result, UnknownAttemptError
from wattline.engines.documents import read_document
from wattline.engines.files import LAUNCH
from wattline.errors import WattlineError

_SLICE_SECONDS = 0.05


class _Recorded(msgspec.Struct, frozen=True):
    attempt: str = ""
    site: str = ""


class RoutedEngine:
    """Several engines as one. What was started before sites had engines of their own is the first one's."""

    def __init__(self, by_site: Mapping[str, Engine]) -> None:
        self._by_site = dict(by_site)
        self._engines = list(dict.fromkeys(self._by_site.values()))
        self._of: dict[str, Engine] = {}
        self.name = "+".join(dict.fromkeys(engine.name for engine in self._engines))

    def start(self, launch: Launch) -> None:
        engine = self._by_site.get(launch.site, self._engines[0])
        engine.start(launch)
        self._of[launch.attempt] = engine

    def throttle(self, attempt: str, duty: float) -> None:
        self._engine(attempt).throttle(attempt, duty)

    def shrink(self, attempt: str, in_flight: float) -> None:
        self._engine(attempt).shrink(attempt, in_flight)

    def request_checkpoint(self, attempt: str) -> None:
        self._engine(attempt).request_checkpoint(attempt)

    def request_pause(self, attempt: str) -> None:
        self._engine(attempt).request_pause(attempt)

    def freeze(self, attempt: str) -> None:
        self._engine(attempt).freeze(attempt)

    def thaw(self, attempt: str) -> None:
        self._engine(attempt).thaw(attempt)

    def stop(self, attempt: str) -> None:
        self._engine(attempt).stop(attempt)

    def poll(self) -> list[EngineEvent]:
        return [event for engine in self._engines for event in engine.poll()]

    def wait(self, timeout_seconds: float) -> None:
        """They are waited for in turns: none of them knows of the others."""
        for engine in self._engines:
            engine.wait(min(timeout_seconds, _SLICE_SECONDS))

    def recover(self, directories: Iterable[Path], timeout_seconds: float = 10.0) -> dict[Path, Result]:
        recovered: dict[Path, Result] = {}
        for directory in directories:
            recorded = read_document(directory, LAUNCH, _Recorded) or _Recorded()
            engine = self._by_site.get(recorded.site, self._engines[0])
            recovered |= engine.recover([directory], timeout_seconds)
            self._of[recorded.attempt] = engine
        return recovered

    def sweep(self, root: Path, known: Collection[Path], before: float = math.inf) -> list[str]:
        """One engine that does not answer keeps nobody from the others'."""
        swept, trouble = [], None
        for engine in self._engines:
            try:
                swept += engine.sweep(root, known, before)
            except WattlineError as error:
                trouble = error
        if trouble is not None and not swept:
            raise trouble
        return swept

    def nodes(self) -> list[NodeSeen]:
        return [seen for engine in self._engines for seen in engine.nodes()]

    def close(self) -> None:
        for engine in self._engines:
            engine.close()

    def _engine(self, attempt: str) -> Engine:
        engine = self._of.get(attempt)
        if engine is None:
            raise UnknownAttemptError(
                f"attempt {attempt}: no engine here has started it", hint="after a restart, recover it first"
            )
        return engine
