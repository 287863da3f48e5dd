"""Sampling: what do a few numbers tell of each of their planes?

Trying would take longer than the whole encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np
import numpy.typing as npt

from wattline.checkpoint.codecs.planes import Bytes, Numbers

SAMPLED = 1024
_PLACES = 4
_TIMES_LOG = np.arange(SAMPLED + 1) * np.log2(np.maximum(np.arange(SAMPLED + 1), 1))


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a plane."""

    some: Bytes
    counts: npt.NDArray[np.intp]  # of each byte
    entropy: float  # the share of its size that a perfect coder of single bytes would need


def sample(numbers: Numbers) -> Numbers:
    """Some of the numbers, from a few places spread evenly; each place in one piece, so that repeats show."""
    if len(numbers) <= SAMPLED:
        return numbers
    each = SAMPLED // _PLACES
    gap = (len(numbers) - each) // (_PLACES - 1)
    return np.concatenate([numbers[at * gap : at * gap + each] for at in range(_PLACES)])


def look_at(some: Numbers) -> list[Seen]:
    """At the planes of a sample, lowest first."""
    planes = np.ascontiguousarray(some.view(np.uint8).reshape(-1, some.itemsize).T)
    return [_look_at_plane(plane) for plane in planes]


def _look_at_plane(some: Bytes) -> Seen:
    counts = np.bincount(some, minlength=256)
    bits = log2(len(some)) - float(_TIMES_LOG.take(counts).sum()) / len(some)
    return Seen(some, counts, bits / 8)
