"""Clouds: what do regions say that machines cost now, and which of them are taken back?

Whoever watches a provider writes `clouds/SITE.json` in the state folder:

    {"usd_per_gpu_hour": 2.31, "reclaimed": {"cloud-eu/provider-n3": 120}}

with the seconds of notice for each machine; one that is no longer named was given back. What the state knows
already is not told again, so that a control process that comes back tells only what changed meanwhile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from wattline.live.hearing import read_number
from wattline.live.home import Home
from wattline.state import Event, Measured, NodeGivenBack, NodeReclaimed, Noticed, State
from wattline.state.market import GPU_HOUR_PRICE, gpu_hour_usd

_PERIOD_SECONDS = 1.0
_LARGEST_BYTES = 1_000_000


class CloudFiles:
    """Looks at each region's file once a second, where the facility has regions at all."""

    def __init__(self, home: Home, state: State) -> None:
        self._home, self._state = home, state
        self._next_at = -math.inf
        self._stamps: dict[str, tuple[float, int]] = {}
        self._told: dict[str, list[tuple[float, float]]] = {}  # by site, since when which price holds
        self._flaws: dict[str, str] = {}

    def poll(self, now: float) -> list[Event]:
        if not self._state.plant.clouds or now < self._next_at:
            return []
        self._next_at = now + _PERIOD_SECONDS
        return [event for site in self._state.plant.clouds for event in self._look(site, now)]

    def mean_usd(self, site: str, start: float, end: float) -> float:
        """What a GPU-hour cost on average between two times, as far as this process was told."""
        now = gpu_hour_usd(self._state.readings, self._state.plant, site)
        changes = self._told.get(site, [])
        if end <= start or not changes:
            return now
        total = 0.0
        for position, (since, usd) in enumerate(changes):
            until = changes[position + 1][0] if position + 1 < len(changes) else math.inf
            since = -math.inf if position == 0 else since
            total += usd * max(0.0, min(end, until) - max(start, since))
        return total / (end - start)

    def _look(self, site: str, now: float) -> Iterator[Event]:
        path = self._home.root / "clouds" / f"{site}.json"
        try:
            found = path.stat()
            stamp = (found.st_mtime, found.st_size)
            if self._stamps.get(site) == stamp:
                return
            price, reclaimed = _read(path)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:  # half written, or wrong: what was told before holds
            if self._flaws.get(site) != str(error):
                self._flaws[site] = str(error)
                yield Noticed(at=now, subject=site, say=f"{path}: cannot be read: {error}")
            return
        self._stamps[site] = stamp
        self._flaws.pop(site, None)
        if price is not None:
            known = self._state.readings.get((site, GPU_HOUR_PRICE))
            self._told.setdefault(site, []).append((now, price))
            if known is None or known[0] != price:
                yield Measured(at=now, source=site, readings=((site, GPU_HOUR_PRICE, price),))
        yield from self._reclaims(site, reclaimed, now)

    def _reclaims(self, site: str, reclaimed: dict[str, float], now: float) -> Iterator[Event]:
        plant, known = self._state.plant, self._state.reclaims
        for node in plant.nodes_of_site[site]:
            name = plant.spots[node].node.name
            is_out = name in known and known[name].leaves_at is not None
            if name in reclaimed and not is_out:
                yield NodeReclaimed(at=now, source=site, node=name, notice_seconds=reclaimed[name])
            elif name not in reclaimed and is_out:
                yield NodeGivenBack(at=now, source=site, node=name)


def _read(path: Path) -> tuple[float | None, dict[str, float]]:
    with path.open("rb") as file:
        raw = file.read(_LARGEST_BYTES + 1)
    said = json.loads(raw) if len(raw) <= _LARGEST_BYTES else None
    if not isinstance(said, dict):
        raise ValueError("a mapping of usd_per_gpu_hour and reclaimed is expected")  # noqa: TRY004
    price, reclaimed = read_number(said.get(GPU_HOUR_PRICE)), said.get("reclaimed", {})
    if GPU_HOUR_PRICE in said and (price is None or price < 0.0):
        raise ValueError(f"{GPU_HOUR_PRICE} is a number of at least 0")
    if not isinstance(reclaimed, dict):
        raise ValueError("reclaimed is a mapping of machines to seconds of notice")  # noqa: TRY004
    return price, {str(node): max(0.0, read_number(notice) or 0.0) for node, notice in reclaimed.items()}
