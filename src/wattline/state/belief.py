"""Belief: which readings are still to be believed at a time, and which are too old?

A reading holds for as long as a policy says: since it was read, or its site last vouched for its meters.
Where those are all there, what they do not tell has not changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from wattline.state.state import State

_ROUNDING_SECONDS = 0.001  # of a difference of times since 1970


class Belief:
    """A state's readings, seen at a time."""

    __slots__ = ("_fresh", "_ledger", "_silent_seconds", "_state", "at", "conditions", "plant")

    def __init__(self, state: State, at: float) -> None:
        self.at = at
        self.plant = state.plant
        self.conditions = state.conditions
        self._state = state
        self._ledger = state.ledger
        self._silent_seconds = at - state.ledger.heard_all_at  # since all sites were heard
        self._fresh: tuple[float, list[bool]] = (math.nan, [])  # for an age: which sites vouch for meters

    def may_be_unread(self, max_age_seconds: float) -> set[int] | None:
        """All resources whose reading may be too old to be believed; None: any may."""
        return self._ledger.unvouched if self._silent_seconds <= max_age_seconds else None

    def unread_resources(self, max_age_seconds: float) -> Iterator[int]:
        """Metered resources whose last reading is too old to be believed."""
        ledger = self._ledger
        silent = () if self._are_all_heard(max_age_seconds) else enumerate(ledger.read_order)
        for site, order in silent:
            if self.at - ledger.heard(site) <= max_age_seconds:
                continue
            for resource in order:
                read_at = ledger.drawn_at[resource]
                if read_at is None or self.at - read_at <= max_age_seconds:
                    break
                if resource not in ledger.mute:
                    yield resource
        # Where a site vouches for the rest, only meters that cannot read are too old.
        for resource in sorted(ledger.mute):
            read_at = ledger.drawn_at[resource]
            if read_at is not None and self.at - read_at > max_age_seconds:
                yield resource

    def unread_nodes(self, max_age_seconds: float) -> Iterator[int]:
        """Nodes whose GPUs' last temperature or draw is too old to be believed.

        Where all sites vouch for their meters, only those of which that became so since the last decision, or
        whose loop has changed: the others count as they did.
        """
        conditions, ledger = self.conditions, self._ledger
        if self._are_all_heard(max_age_seconds):
            if conditions.mute:
                yield from self._newly_unread_nodes(max_age_seconds)
            return
        columns = (conditions.node_celsius, conditions.node_gpu_watts)
        # Where nobody vouches, the first that is fresh ends the search.
        in_order = max(ledger.heard_all_at, *ledger.heard_at) == -math.inf
        for column in columns:
            for node in column:
                if self.at - self.node_read_at(node, column[node][1]) > max_age_seconds:
                    yield node
                elif in_order:
                    break

    def _newly_unread_nodes(self, max_age_seconds: float) -> Iterator[int]:
        conditions, at, decided_at = self.conditions, self.at, self._state.decided_at
        first, last = decided_at - max_age_seconds, at - max_age_seconds
        for node in conditions.mute_since(first - _ROUNDING_SECONDS, last + _ROUNDING_SECONDS):
            reads_at = conditions.node_reads_at(node)
            if any(decided_at - read_at <= max_age_seconds < at - read_at for read_at in reads_at):
                yield node
        for node in conditions.mute_on(self._ledger.touched):
            if any(at - read_at > max_age_seconds for read_at in conditions.node_reads_at(node)):
                yield node

    def node_read_at(self, node: int, read_at: float) -> float:
        """When a node's GPUs were last known: read then, or vouched for since."""
        if node in self.conditions.mute:
            return read_at
        return max(read_at, self._ledger.heard(self.plant.site_number_of_node[node]))

    def is_node_read(self, node: int, read_at: float, max_age_seconds: float) -> bool:
        """Whether a node's GPUs were read, or vouched for, lately enough to be believed."""
        if self._fresh[0] != max_age_seconds:
            self._vouch(max_age_seconds)
        if self._fresh[1][self.plant.site_number_of_node[node]] and node not in self.conditions.mute:
            return True
        return self.at - read_at <= max_age_seconds

    def _are_all_heard(self, max_age_seconds: float) -> bool:
        """Whether every site vouched for its meters lately enough."""
        ledger = self._ledger
        if self._silent_seconds <= max_age_seconds:
            return True
        return all(self.at - ledger.heard(site) <= max_age_seconds for site in range(len(ledger.heard_at)))

    def _vouch(self, max_age_seconds: float) -> None:
        """Find out which sites vouched for their meters lately enough."""
        ledger = self._ledger
        if self._silent_seconds <= max_age_seconds:
            self._fresh = (max_age_seconds, ledger.everywhere)
            return
        sites = range(len(ledger.heard_at))
        self._fresh = (max_age_seconds, [self.at - ledger.heard(site) <= max_age_seconds for site in sites])

    def loop_read_at(self, resource: int, read_at: float) -> float:
        """When a loop's coolant was last known: read then, or vouched for since."""
        if resource in self._ledger.mute:
            return read_at
        return max(read_at, self._ledger.heard(self.plant.site_number_of_resource[resource]))

    @property
    def heard_at(self) -> Iterable[float]:
        """When each site last vouched for its meters; far in the past where one never did."""
        ledger = self._ledger
        if ledger.heard_all_at >= max(ledger.heard_at):
            return (ledger.heard_all_at,)
        return [ledger.heard(site) for site in range(len(ledger.heard_at))]

    def is_read(self, resource: int, max_age_seconds: float) -> bool:
        """Whether a draw was read, or vouched for, lately enough to be believed."""
        ledger = self._ledger
        if self._silent_seconds <= max_age_seconds and resource not in ledger.unvouched:
            return True
        read_at = ledger.drawn_at[resource]
        if read_at is None:
            return False
        if self._fresh[0] != max_age_seconds:
            self._vouch(max_age_seconds)
        if self._fresh[1][self.plant.site_number_of_resource[resource]] and resource not in ledger.mute:
            return True
        return self.at - read_at <= max_age_seconds
