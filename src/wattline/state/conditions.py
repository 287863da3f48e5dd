"""What meters last said of heat, with its age: the state's memory of readings that are no claim."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Conditions:
    """Columns by node and by loop; what GPUs say in the order it was read, the oldest first."""

    node_celsius: dict[int, tuple[float, float]] = field(default_factory=dict)  # hottest GPU, read at
    node_gpu_watts: dict[int, tuple[float, float]] = field(default_factory=dict)  # hungriest GPU, read at
    coolant_celsius: dict[int, tuple[float, float]] = field(default_factory=dict)
    flow_fraction: dict[int, float] = field(default_factory=dict)
    supply_celsius: dict[int, float] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)  # nodes read since the last decision
    # Nodes whose meters said that they cannot read; the same by loop, and by when each was last read.
    mute: set[int] = field(default_factory=set)
    _mute_on: dict[int, set[int]] = field(default_factory=dict)
    _mute_since: list[tuple[float, int]] = field(default_factory=list)

    def fall_silent(self, node: int, loop: int) -> None:
        """A node's meters say that they cannot read: what they said before grows old."""
        if node in self.mute:
            return
        self.mute.add(node)
        self._mute_on.setdefault(loop, set()).add(node)
        for read_at in self.node_reads_at(node):
            insort(self._mute_since, (read_at, node))

    def speak_again(self, node: int, loop: int) -> None:
        """They read again; asked before what they read is put in its column."""
        self.mute.discard(node)
        self._mute_on[loop].discard(node)
        for read_at in self.node_reads_at(node):
            del self._mute_since[bisect_left(self._mute_since, (read_at, node))]

    def mute_on(self, loops: Iterable[int]) -> Iterator[int]:
        """Silent nodes on some loops."""
        for loop in loops:
            yield from self._mute_on.get(loop, ())

    def mute_since(self, first: float, last: float) -> list[int]:
        """Silent nodes of which something was last read at a time between these."""
        reads = self._mute_since
        return [
            node for _, node in reads[bisect_left(reads, (first,)) : bisect_right(reads, (last, math.inf))]
        ]

    def node_reads_at(self, node: int) -> list[float]:
        """When each column of a node was last read."""
        columns = (self.node_celsius, self.node_gpu_watts)
        return [column[node][1] for column in columns if node in column]
