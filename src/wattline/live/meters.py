"""Meters: readings worth telling, once a second, and the energy each attempt has used."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from wattline.engines import Engine
from wattline.live.changes import Changes
from wattline.live.energy import Energy
from wattline.live.hearing import read_number
from wattline.state import Measured, Noticed
from wattline.telemetry import EmulatedFacility, Listeners, Reading

_PERIOD_SECONDS = 1.0
# A reading that has not moved is told again after this, so that it never counts as too old.
_REFRESH_SECONDS = 10.0
# What counts as moved, by the unit a quantity ends with.
_DEADBAND = {"watts": 1.0, "celsius": 0.1, "fraction": 0.001}
# In one turn, which is one record: the rest is told with the next.
_MOST_READINGS = 100_000
_METER_FILE = "meter.json"
_LEAST_DUTY_CHANGE = 0.01


class Meters:
    """The emulated facility and whatever real meters a site has, as events."""

    def __init__(
        self, emulated: EmulatedFacility, engine: Engine, listeners: Listeners | None = None
    ) -> None:
        self.emulated = emulated
        self._engine = engine
        self._listeners = Listeners(()) if listeners is None else listeners
        self._changes, self._energy = Changes(), Energy()
        self._next_at = 0.0
        self._told: dict[tuple[str, str], tuple[float, float]] = {}
        self._folders: dict[str, Path] = {}
        self._duties: dict[str, float] = {}
        self._faults_told = 0
        self._unkept: set[str] = set()
        self._untold: deque[Measured] = deque()  # what did not fit into one turn

    @property
    def next_at(self) -> float:
        return 0.0 if self._untold else self._next_at

    def attach(self, attempt: str, folder: Path, nodes: dict[str, int], cpus: float, cap: float) -> None:
        """An attempt begins: its emulated GPUs are busy from now on."""
        self.emulated.occupy(attempt, nodes, cpus)
        if cap < 1.0:
            self.emulated.set_power_cap(attempt, cap)
        self._folders[attempt] = folder

    def attach_real(self, attempt: str, folder: Path, shares: dict[str, float]) -> None:
        """An attempt begins on nodes with real meters; `shares` is its part of each node's GPUs."""
        self._folders[attempt] = folder
        self._energy.attach(attempt, shares)

    def detach(self, attempt: str) -> float:
        """An attempt is over; returns the joules it used."""
        if self._folders.pop(attempt, None) is None:
            return 0.0
        self._unkept.discard(attempt)
        if attempt in self._energy:
            return self._energy.detach(attempt)
        self._duties.pop(attempt, None)
        self.emulated.release(attempt)
        return self.emulated.energy_joules(attempt)

    def observe_cpu(self, attempt: str, cpu_seconds: float, at: float) -> None:
        """What an attempt's processes have used drives its emulated GPUs, where it has some."""
        if attempt in self._folders and attempt not in self._energy:
            self.emulated.observe_cpu(attempt, cpu_seconds, at)

    def read(self, at: float) -> list[Measured | Noticed]:
        """What changed since the last second; also lets heat and caps slow the real processes."""
        self.emulated.advance(at)
        self._pace()
        events: list[Measured | Noticed] = [*self._faults(), *self._listen(at)]
        if at < self._next_at:
            return events
        self._next_at = at + _PERIOD_SECONDS
        moved = [reading for reading in self.emulated.readings(at) if self._moved(reading)]
        by_source: dict[str, list[tuple[str, str, float]]] = {}
        for reading in moved:
            by_source.setdefault(reading.source, []).append(
                (reading.subject, reading.quantity, round(float(reading.value), 3))
            )
        for source, readings in by_source.items():
            events.append(Measured(at=at, source=source, readings=tuple(readings)))
        for attempt, folder in self._folders.items():
            events += self._keep(attempt, folder, at)
        return events

    def close(self) -> None:
        """Ask real meters no more."""
        self._listeners.close()

    def _listen(self, at: float) -> Iterator[Measured | Noticed]:
        """What has arrived of real meters; one that falls silent leaves its readings to age."""
        for batch in self._listeners.take():
            for remark in batch.remarks:
                yield Noticed(at=at, source=batch.kind, subject=remark.subject, say=remark.say)
            self._energy.count(batch.readings or ())
            self._untold.extend(self._changes.tell(batch))
        left = _MOST_READINGS
        while self._untold and left > 0:
            event = self._untold.popleft()
            left -= len(event.readings)
            yield event

    def _keep(self, attempt: str, folder: Path, at: float) -> list[Noticed]:
        """A script may remove its folder, and a disk may be full: that costs the count, not the run."""
        try:
            is_real = attempt in self._energy
            joules = self._energy.joules(attempt) if is_real else self.emulated.energy_joules(attempt)
            write_meter(folder, joules)
        except OSError as error:
            if attempt not in self._unkept:
                self._unkept.add(attempt)
                say = f"its energy could not be kept: {error.strerror or error}; a crash now would lose count"
                return [Noticed(at=at, subject=attempt, say=say)]
        return []

    def _pace(self) -> None:
        for attempt in [one for one in self._folders if one not in self._energy]:
            duty = max(0.05, self.emulated.speed(attempt))
            if abs(duty - self._duties.get(attempt, 1.0)) >= _LEAST_DUTY_CHANGE:
                self._engine.throttle(attempt, duty)
                self._duties[attempt] = duty

    def _faults(self) -> list[Measured | Noticed]:
        fired = self.emulated.faults_fired
        new, self._faults_told = fired[self._faults_told :], len(fired)
        return [
            Noticed(at=at, source="emulated", subject=fault.subject, say=f"fault {fault.name} begins")
            for fault, at in new
        ]

    def _moved(self, reading: Reading) -> bool:
        key = (reading.subject, reading.quantity)
        told = self._told.get(key)
        band = next((width for unit, width in _DEADBAND.items() if reading.quantity.endswith(unit)), 0.0)
        moved = (
            told is None or abs(reading.value - told[0]) > band or reading.at - told[1] >= _REFRESH_SECONDS
        )
        if moved:
            self._told[key] = (reading.value, reading.at)
        return moved


def write_meter(folder: Path, joules: float) -> None:
    """Energy so far, for whoever takes over after a crash."""
    draft = folder / f".{_METER_FILE}"
    draft.write_text(json.dumps({"joules": joules}))
    draft.replace(folder / _METER_FILE)


def read_meter(folder: Path) -> float:
    """What the meter last wrote; nothing where it never did."""
    try:
        return max(0.0, read_number(json.loads((folder / _METER_FILE).read_text())["joules"]) or 0.0)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0.0
