"""Lots: how far is the facility from its data sheets?

A policy predicts with nominal figures. The truth has its own, drawn once by seed, so that a run shows what a
wrong model costs. Each figure belongs to its subject by name: the order of building does not matter.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

RESISTANCE_WIDTH = 0.05  # of a device on a loop
COOLING_WIDTH = 0.04  # from node to node
TIME_CONSTANT_WIDTH = 0.10
LOOP_CONDUCTANCE_WIDTH = 0.04
IDLE_WIDTH = 0.03
CURVE_WIDTH = 0.03


def draw_lot(seed: int, subject: str) -> float:
    """A number between -1 and 1 that belongs to this subject."""
    digest = hashlib.blake2b(f"{seed}/{subject}".encode(), digest_size=8).digest()
    return 2.0 * int.from_bytes(digest) / 2**64 - 1.0


@dataclass(frozen=True, slots=True)
class Lots:
    """Factors around 1; exactly 1 where the truth is to be as stated."""

    seed: int
    exact: bool

    def factor(self, width: float, subject: str) -> float:
        return 1.0 if self.exact else 1.0 + width * draw_lot(self.seed, subject)
