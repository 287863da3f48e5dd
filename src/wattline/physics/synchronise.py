"""Synchronisation: what does a gang lose by the distance between its nodes?

Every step ends with an exchange of gradients; the slowest hop decides. A share of each step is exchanged at
the speed of NVLink inside a node; over a switch, between switches, and between rows it takes longer.
All figures are assumed: a site that has measured its own replaces them.
"""

from __future__ import annotations

from collections.abc import Collection

# Seconds that each second of a step gains, by the widest hop.
_OVER_SWITCH, _BETWEEN_SWITCHES, _BETWEEN_ROWS = 0.03, 0.06, 0.10


def predict_sync_speed(nodes: int, switches: Collection[str], rows: Collection[str]) -> float:
    """Speed of a gang over so many nodes, relative to one node; switches and rows that its nodes are on."""
    if nodes <= 1:
        return 1.0
    if len(rows) > 1:
        return 1.0 / (1.0 + _BETWEEN_ROWS)
    return 1.0 / (1.0 + (_BETWEEN_SWITCHES if len(switches) > 1 else _OVER_SWITCH))
