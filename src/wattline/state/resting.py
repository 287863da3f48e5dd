"""Resting: which nodes sleep, since when is nobody on those that do not, and who came lately?

Only nodes of sites that can send them to sleep are kept here; elsewhere nothing is counted. What decides how
many stay awake fades: what came counts half after a half-life.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from wattline.enums import plain_members
from wattline.state.plant import Plant

replace = msgspec.structs.replace

HALF_LIFE_SECONDS = 7200.0
LOT_SECONDS = 60.0
_RATE = math.log(2.0) / HALF_LIFE_SECONDS


@plain_members
class NodeMode(StrEnum):
    AWAKE = "awake"
    FALLING = "falling"  # asked to sleep
    ASLEEP = "asleep"
    WAKING = "waking"  # asked to wake


class Rest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that was asked to sleep at least once."""

    node: str
    mode: NodeMode
    since: float
    turns: int = 0  # how often it was asked: makes each action's id its own
    woken_at: float | None = None  # when it was last asked to wake
    failed_at: float | None = None  # when it last failed to


class Came(msgspec.Struct, frozen=True):
    """Who started in a pool lately: how many lots, and how many of its nodes each took, in fading sums.

    Those who come within a minute came together, and are one lot: people submit sweeps, not single jobs.
    """

    at: float = 0.0
    lots: float = 0.0
    nodes: float = 0.0
    squares: float = 0.0
    lot_at: float = 0.0  # when the last lot began
    lot_nodes: float = 0.0  # … and what it took

    def faded(self, at: float) -> Came:
        left = math.exp(-_RATE * max(0.0, at - self.at))
        return replace(
            self,
            at=max(at, self.at),
            lots=left * self.lots,
            nodes=left * self.nodes,
            squares=left * self.squares,
        )

    def plus(self, nodes: float, at: float) -> Came:
        left, at = math.exp(-_RATE * max(0.0, at - self.at)), max(at, self.at)
        is_new = self.lots == 0.0 or at - self.lot_at > LOT_SECONDS
        before = 0.0 if is_new else self.lot_nodes
        lot = before + nodes
        return Came(
            at,
            left * self.lots + is_new,
            left * self.nodes + nodes,
            left * self.squares + lot * lot - before * before,
            at if is_new else self.lot_at,
            lot,
        )

    @property
    def per_second(self) -> float:
        """Lots, as of its time."""
        return _RATE * self.lots


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """How many of those who started found nodes awake, and what the others waited for theirs to wake."""

    starts: int = 0
    cold: int = 0
    cold_seconds: float = 0.0
    longest_seconds: float = 0.0

    def plus(self, cold_seconds: float) -> Starts:
        return Starts(
            starts=self.starts + 1,
            cold=self.cold + (cold_seconds > 0.0),
            cold_seconds=self.cold_seconds + cold_seconds,
            longest_seconds=max(self.longest_seconds, cold_seconds),
        )


class Resting:
    """Columns over nodes and pools; changed by `Tables` alone."""

    __slots__ = ("came", "can_sleep", "idle", "modes", "of_pool", "pools", "rests", "starts")

    def __init__(self, plant: Plant) -> None:
        self.can_sleep = [spot.site.sleep is not None and spot.node.gpus > 0 for spot in plant.spots]
        self.pools = sorted({plant.spots[node].pool for node, can in enumerate(self.can_sleep) if can})
        self.rests: dict[int, Rest] = {}
        self.modes: dict[NodeMode, dict[int, None]] = {mode: {} for mode in NodeMode}
        # By pool: nodes that are awake and that nobody uses, the longest first, and those that sleep.
        self.idle: list[dict[int, float]] = [{} for _ in plant.pools]
        self.of_pool: list[set[int]] = [set() for _ in plant.pools]
        self.came: dict[int, Came] = {}  # by pool
        self.starts = Starts()
        for node, can in enumerate(self.can_sleep):
            if can:  # since before anybody looked
                self.idle[plant.spots[node].pool][node] = 0.0

    def put(self, node: int, pool: int, rest: Rest) -> None:
        before = self.rests.get(node)
        if before is not None:
            del self.modes[before.mode][node]
        self.rests[node] = rest
        self.modes[rest.mode][node] = None
        if rest.mode is NodeMode.ASLEEP:
            self.of_pool[pool].add(node)
        else:
            self.of_pool[pool].discard(node)

    def is_awake(self, node: int) -> bool:
        rest = self.rests.get(node)
        return rest is None or rest.mode is NodeMode.AWAKE


def waited_seconds(rest: Rest, since: float, at: float) -> float:
    """How long somebody who waits since a time waited for a node to wake; nothing where it was awake then."""
    if rest.woken_at is None or rest.mode not in (NodeMode.AWAKE, NodeMode.WAKING):
        return 0.0
    woke_at = rest.since if rest.mode is NodeMode.AWAKE else at
    return max(0.0, woke_at - max(since, rest.woken_at))


def saved_amounts(plant: Plant, node: int) -> Iterable[tuple[int, int]]:
    """What a sleeping node leaves to others of each thing that carries it, in whole watts."""
    spot = plant.spots[node]
    asleep = 1.0 if spot.site.sleep is None else spot.site.sleep.asleep
    watts = (1.0 - asleep) * spot.node.idle_watts
    return [
        (resource, math.floor(share * watts)) for resource, share in (*spot.power, (spot.loop_resource, 1.0))
    ]
