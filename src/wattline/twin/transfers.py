"""Transfers: when does a checkpoint arrive at another site, with others on the same link?

Links are shared by traffic class; within the class transfers share alike (max-min fairness). Rates change
only when a transfer begins or ends, or a link does: in between nothing is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from wattline.facility import Link, TrafficClass
from wattline.physics import share_fairly

_BITS = 8.0


@dataclass(slots=True, eq=False)
class _Transfer:
    job: str
    link: Link
    bits_left: float
    rate: float = 0.0


class Transfers:
    """Checkpoints on their way between sites."""

    def __init__(self, links: dict[frozenset[str], Link], fraction: Callable[[str], float]) -> None:
        self._links, self._fraction = links, fraction
        self._moving: dict[str, _Transfer] = {}
        self._at = 0.0

    def begin(self, job: str, from_site: str, to_site: str, size_bytes: float, at: float) -> bool:
        """False where no link joins the two: there is nothing to wait for, and nothing comes."""
        link = self._links.get(frozenset((from_site, to_site)))
        if link is None:
            return False
        self._move(at)
        latency_bits = link.latency_seconds * link.bits_per_second * link.shares[TrafficClass.CHECKPOINT]
        self._moving[job] = _Transfer(job, link, _BITS * size_bytes + latency_bits)
        self._share()
        return True

    def drop(self, job: str, at: float) -> None:
        if job in self._moving:
            self._move(at)
            del self._moving[job]
            self._share()

    def change(self, at: float) -> None:
        """A link carries more or less from now on."""
        if self._moving:
            self._move(at)
            self._share()

    def next_end_at(self) -> float:
        ends = [one.bits_left / one.rate for one in self._moving.values() if one.rate > 0.0]
        return self._at + min(ends) if ends else math.inf

    def arrived(self, at: float) -> list[str]:
        """Jobs whose checkpoint is there by now."""
        if not self._moving:
            return []
        self._move(at)
        # A bit is a rounding error here; a transfer that is nearly there must not end twice.
        done = [job for job, one in self._moving.items() if one.bits_left <= max(1.0, 1e-6 * one.rate)]
        for job in done:
            del self._moving[job]
        self._share()
        return done

    def _move(self, at: float) -> None:
        for one in self._moving.values():
            one.bits_left -= one.rate * (at - self._at)
        self._at = at

    def _share(self) -> None:
        by_link: dict[str, list[_Transfer]] = {}
        for one in self._moving.values():
            by_link.setdefault(one.link.name, []).append(one)
        for name, group in by_link.items():
            link = group[0].link
            capacity = link.bits_per_second * link.shares[TrafficClass.CHECKPOINT] * self._fraction(name)
            for one, rate in zip(group, share_fairly(capacity, [capacity] * len(group)), strict=True):
                one.rate = rate
