"""Choosing: does the base help, and is the lower half of each number anything but noise?

Told from a sample, by the entropy of its planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wattline.checkpoint.codecs.difference import subtract
from wattline.checkpoint.codecs.planes import Numbers, turn
from wattline.checkpoint.codecs.sampling import Seen, look_at, sample

# A difference takes its base to restore: it must save something.
_WORTHWHILE = 0.97
# What compressing one more plane must save, as a share of that plane.
_PLANE_COST = 0.02
# To take the lower halves apart as well takes nearly as long as all the rest.
_WORTH_PARTING = 0.9


@dataclass(frozen=True, slots=True)
class Plan:
    """How to encode a chunk."""

    from_base: bool
    whole_low: bool  # lower halves stay in one piece, as they are
    planes: Sequence[Seen]  # the others


def choose_plan(numbers: Numbers, base: Numbers | None) -> Plan:
    some = sample(numbers)
    planes, from_base = look_at(turn(some)), False
    if base is not None:
        change = look_at(subtract(some, sample(base)))
        if from_base := _estimate(change) < _WORTHWHILE * _estimate(planes):
            planes = change
    middle = len(planes) // 2
    if middle > 1 and _estimate(planes[:middle]) > _WORTH_PARTING * middle:
        return Plan(from_base, whole_low=True, planes=planes[middle:])
    return Plan(from_base, whole_low=False, planes=planes)


def _estimate(planes: Sequence[Seen]) -> float:
    """About how many bytes of a number these planes take."""
    return sum(min(1.0, seen.entropy + _PLANE_COST) for seen in planes)
