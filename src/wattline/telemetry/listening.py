"""Listening: how are meters asked while the loop goes on, however long they take to answer?

A thread for each source asks it every so often. What has arrived lies ready; the loop takes it when it comes
by.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wattline.errors import WattlineError
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remark, Remarks

_SLOWEST_RETRY_SECONDS = 60.0
_CLOSING_SECONDS = 1.0
_STUCK_SECONDS = 120.0


class MeterSource(Protocol):
    """Something that is asked for readings."""

    @property
    def kind(self) -> str: ...

    site: str
    every_seconds: float
    remarks: Remarks

    def read(self, now: float) -> list[Reading]:
        """What it says now; a WattlineError where it cannot be asked."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Batch:
    """What one source said at one time; no readings at all where it could not be asked."""

    source: int  # which of them
    kind: str
    site: str
    asked_at: float
    readings: list[Reading] | None
    remarks: list[Remark] = field(default_factory=list)


class Listeners:
    """All real sources; the threads begin when somebody listens."""

    def __init__(self, sources: Sequence[MeterSource], clock: Callable[[], float] = time.time) -> None:
        self._sources = list(sources)
        self._clock = clock
        self._lock = threading.Lock()
        self._arrived: dict[int, Batch] = {}
        self._asking: dict[int, float] = {}  # since when
        self._given_up: set[int] = set()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def __bool__(self) -> bool:
        return bool(self._sources)

    def take(self) -> list[Batch]:
        """What has arrived since; never waits for a meter."""
        if not self._threads and self._sources and not self._closing.is_set():
            for number in range(len(self._sources)):
                name = f"wattline-meters-{number}"
                self._threads.append(
                    threading.Thread(target=self._listen, args=(number,), name=name, daemon=True)
                )
            for thread in self._threads:
                thread.start()
        with self._lock:
            arrived, self._arrived = self._arrived, {}
            late = [number for number, since in self._asking.items() if self._is_stuck(number, since)]
        return [arrived[number] for number in sorted(arrived)] + [self._give_up(number) for number in late]

    def close(self) -> None:
        """Ask no more; who still waits for an answer is left to it."""
        self._closing.set()
        for thread in self._threads:
            thread.join(_CLOSING_SECONDS)

    def _is_stuck(self, number: int, since: float) -> bool:
        """Whether an answer is long overdue: one that comes a byte at a time may never end."""
        return number not in self._given_up and time.monotonic() - since > _STUCK_SECONDS

    def _give_up(self, number: int) -> Batch:
        """Say that nothing comes; if it does come after all, it counts."""
        self._given_up.add(number)
        source = self._sources[number]
        say = f"{source.kind}: asked {_STUCK_SECONDS:g} s ago, and the answer has no end"
        return Batch(number, source.kind, source.site, self._clock(), None, [Remark(source.site, say)])

    def _listen(self, number: int) -> None:
        source = self._sources[number]
        failures = 0
        while not self._closing.is_set():
            began = time.monotonic()
            with self._lock:
                self._asking[number] = began
            batch = self._ask(number, source)
            failures = failures + 1 if batch.readings is None else 0
            with self._lock:
                self._asking.pop(number)
                self._given_up.discard(number)
                before = self._arrived.get(number)
                if (
                    before is not None
                ):  # nobody came by: the newer readings count, and what was said stays said
                    batch.remarks = [*before.remarks, *batch.remarks]
                self._arrived[number] = batch
            pause = min(
                max(source.every_seconds, _SLOWEST_RETRY_SECONDS), source.every_seconds * (1 + failures)
            )
            self._closing.wait(max(0.0, pause - (time.monotonic() - began)))
        source.close()

    def _ask(self, number: int, source: MeterSource) -> Batch:
        now = self._clock()
        readings: list[Reading] | None = None
        try:
            readings = source.read(now)
        except WattlineError as error:
            say = f"{error.message}; what it said last counts until it is too old"
            source.remarks.hold(source.site, "source", say)
        except Exception as error:  # noqa: BLE001 - a fault in one reader must not silence the others unheard
            say = f"{source.kind}: could not be read: {type(error).__name__}: {error}"[:500]
            source.remarks.hold(source.site, "source", say)
        else:
            source.remarks.hold(source.site, "source", None, f"{source.kind} answers again")
        return Batch(number, source.kind, source.site, now, readings, source.remarks.take())
