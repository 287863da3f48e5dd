"""Changes: which readings of real meters are worth telling, when most of them say what they said before?

What moved is told. For the rest a site vouches with the time of its oldest reading, so ten thousand idle
nodes cost one line. What falls silent is told as such: nobody vouches for it, and it ages from when it was
last read.
"""

from __future__ import annotations

from collections.abc import Iterable

from wattline.state import Measured
from wattline.telemetry import Batch, Reading

Key = tuple[str, str]
Told = tuple[str, str, float | None]

MOST_READINGS = 20_000  # in one event

# What counts as moved, by the unit a quantity ends with: the larger of an amount and a share of the last.
_BANDS = {"watts": (1.0, 0.005), "celsius": (0.1, 0.0), "fraction": (0.005, 0.0)}
_UNTOLD = frozenset({"gpu_joules"})  # counts up all the time: it is for whoever counts energy


class Changes:
    """What was last read and last told of every real meter."""

    def __init__(self) -> None:
        self._told: dict[Key, float] = {}
        self._read: dict[int, dict[Key, tuple[float, float]]] = {}  # by source: value, and when
        self._heard: dict[str, dict[int, float]] = {}  # by site and source: its oldest reading
        self._vouched: dict[str, float] = {}

    def tell(self, batch: Batch) -> list[Measured]:
        """What the state has to know of a batch."""
        readings = [one for one in batch.readings or () if one.quantity not in _UNTOLD]
        before = self._read.get(batch.source, {})
        now = {(one.subject, one.quantity): (one.value, one.at) for one in readings}
        self._read[batch.source] = now
        told: dict[float, list[Told]] = {}
        for one in self._moved(readings):
            told.setdefault(one.at, []).append((one.subject, one.quantity, round(float(one.value), 3)))
        silent = [key for key in before if key not in now]
        for key in silent:  # as it last was, at the time it was last so
            value, at = before[key]
            told.setdefault(at, []).append((*key, round(float(value), 3)))
            self._told.pop(key, None)
        events = [event for at in sorted(told) for event in _measured(at, batch.kind, told[at])]
        unread: list[Told] = [(subject, quantity, None) for subject, quantity in silent]
        return [*events, *_measured(batch.asked_at, batch.kind, unread), *self._vouch(batch, readings)]

    def _moved(self, readings: Iterable[Reading]) -> list[Reading]:
        """Those that moved; of a node's GPUs all or none, because the state keeps the worst of one moment."""
        told, moved, groups = self._told, [], dict[Key, list[Reading]]()
        roused: set[Key] = set()
        for one in readings:
            key = (one.subject, one.quantity)
            is_moved = _has_moved(told.get(key), one.value, one.quantity)
            if one.quantity.startswith("gpu_"):
                group = (one.subject.rpartition("/")[0], one.quantity)
                groups.setdefault(group, []).append(one)
                if is_moved:
                    roused.add(group)
            elif is_moved:
                moved.append(one)
        for group in roused:
            moved += groups[group]
        for one in moved:
            told[one.subject, one.quantity] = one.value
        return moved

    def _vouch(self, batch: Batch, readings: list[Reading]) -> list[Measured]:
        """A site vouches as of the oldest reading of all its sources that answer."""
        heard = self._heard.setdefault(batch.site, {})
        heard.pop(batch.source, None)
        if readings:
            heard[batch.source] = min([one.at for one in readings])
        if not heard:
            return []
        at = min(heard.values())
        if at <= self._vouched.get(batch.site, float("-inf")):
            return []
        self._vouched[batch.site] = at
        return [Measured(at=at, source=batch.kind, readings=(), unchanged=(batch.site,))]


def _measured(at: float, source: str, told: list[Told]) -> list[Measured]:
    """Readings of one moment, in events of a size that can be kept."""
    return [
        Measured(at=at, source=source, readings=tuple(told[first : first + MOST_READINGS]))
        for first in range(0, len(told), MOST_READINGS)
    ]


def _has_moved(told: float | None, value: float, quantity: str) -> bool:
    if told is None:
        return True
    least, share = _BANDS.get(quantity.rpartition("_")[2], (0.0, 0.0))
    return abs(value - told) > max(least, share * abs(told))
