"""Energy: how many joules did each attempt use, by the meters of the nodes it ran on?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wattline.telemetry import Reading


class Energy:
    """Joules of attempts on nodes with real meters: by their counters, else by watts over time."""

    def __init__(self) -> None:
        self._shares: dict[str, Mapping[str, float]] = {}  # attempt → node → its part of the node's GPUs
        self._joules: dict[str, float] = {}
        self._counted: dict[str, float] = {}  # GPU → its counter
        self._watched: dict[str, float] = {}  # node → when its watts were last read
        self._has_counters: set[str] = set()

    def __contains__(self, attempt: str) -> bool:
        return attempt in self._shares

    def attach(self, attempt: str, shares: Mapping[str, float]) -> None:
        self._shares[attempt] = shares
        self._joules[attempt] = 0.0

    def detach(self, attempt: str) -> float:
        """An attempt is over; returns what it used."""
        del self._shares[attempt]
        return self._joules.pop(attempt)

    def joules(self, attempt: str) -> float:
        return self._joules[attempt]

    def count(self, readings: Iterable[Reading]) -> None:
        """Take in what was read; only nodes that somebody runs on are counted."""
        watched = {node for shares in self._shares.values() for node in shares}
        if not watched:
            self._counted.clear()
            self._watched.clear()
            return
        rises: dict[str, float] = {}
        watts: dict[str, tuple[float, float]] = {}
        for one in readings:
            node = one.subject.rpartition("/")[0]
            if node not in watched:
                continue
            if one.quantity == "gpu_joules":
                before = self._counted.get(one.subject)
                self._counted[one.subject] = one.value
                if before is not None:  # one that began anew has used what it shows at least
                    rise = one.value if one.value < before else one.value - before
                    rises[node] = rises.get(node, 0.0) + rise
                self._has_counters.add(node)
            elif one.quantity == "gpu_watts":
                watts[node] = (watts.get(node, (0.0, 0.0))[0] + one.value, one.at)
        for node, (drawn, at) in watts.items():
            since = self._watched.get(node)
            if since is None or at > since:
                self._watched[node] = at
                if since is not None and node not in self._has_counters:
                    rises[node] = drawn * (at - since)
        for attempt, shares in self._shares.items():
            self._joules[attempt] += sum(share * rises.get(node, 0.0) for node, share in shares.items())
