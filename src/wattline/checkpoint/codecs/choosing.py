"""Choosing: does the base help, and how far should numbers be rotated?

Told from a sample, by the entropy of its planes: trying would take longer than the whole encoding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wattline.checkpoint.codecs.difference import subtract
from wattline.checkpoint.codecs.planes import Bytes, Numbers, sample, split

_SAMPLE_NUMBERS = 2048
# Where the leading bits of a difference lie depends on how far training moved.
_ROTATIONS = (0, 4)
# A difference takes its base to restore: it must save something.
_WORTHWHILE = 0.97
# What compressing one more plane must save, as a share of that plane.
_PLANE_COST = 0.02
# Codes are whole bits long, so a plane that is mostly one byte takes so much more than its entropy.
_SKEWED, _SKEW_COST = 0.3, 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """How to encode a chunk."""

    from_base: bool
    rotation: int


# One bit makes a float's exponent a plane of its own; integers do not mind.
ALONE = Plan(from_base=False, rotation=1)


def choose_plan(numbers: Numbers, base: Numbers | None) -> Plan:
    if base is None:
        return ALONE
    some = sample(numbers, _SAMPLE_NUMBERS)
    change = subtract(some, sample(base, _SAMPLE_NUMBERS))
    alone, *costs = _estimate((some, ALONE.rotation), *((change, rotation) for rotation in _ROTATIONS))
    least = min(costs)
    if least >= _WORTHWHILE * alone:
        return ALONE
    return Plan(from_base=True, rotation=_ROTATIONS[costs.index(least)])


def _estimate(*ways: tuple[Numbers, int]) -> list[float]:
    """About how many bytes one number takes, for numbers and how far they are rotated."""
    first, _ = ways[0]
    planes = np.empty((len(ways), first.itemsize, len(first)), np.uint8)
    for (numbers, rotation), each in zip(ways, planes, strict=True):
        split(numbers, rotation, each)
    entropies = _entropies(planes.reshape(-1, len(first))).reshape(len(ways), -1)
    overheads = np.where(entropies < _SKEWED, np.minimum(entropies, _SKEW_COST), 0.0)
    costs: list[float] = np.minimum(1.0, entropies + overheads + _PLANE_COST).sum(axis=1).tolist()
    return costs


def _entropies(planes: Bytes) -> npt.NDArray[np.float64]:
    """The share of its size that a perfect coder of single bytes would need, for each plane."""
    number, size = planes.shape
    apart = planes + 256 * np.arange(number)[:, np.newaxis]  # all are counted at once
    counts = np.bincount(apart.reshape(-1), minlength=256 * number).reshape(number, 256)
    weighed = counts * np.log2(np.maximum(counts, 1))
    bits: npt.NDArray[np.float64] = np.log2(size) - weighed.sum(axis=1) / size
    return bits / 8
