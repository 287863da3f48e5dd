"""Planes: how do numbers lie so that what they have in common is side by side?

The lowest bytes of all numbers, then the bytes above them, and so on. Numbers are rotated first, so that what
compresses (a float's exponent, the leading bits of a difference) fills one plane and the noise another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]  # unsigned, of 1, 2, 4 or 8 bytes
_Some = TypeVar("_Some", bound=np.generic)

_SAMPLED_PLACES = 4


def as_numbers(raw: memoryview, width: int) -> Numbers:
    """The bytes as unsigned numbers, not copied; where they are no whole numbers, each byte is one."""
    whole = width in (2, 4, 8) and len(raw) % width == 0
    return np.frombuffer(raw, f"<u{width if whole else 1}")


def sample(numbers: npt.NDArray[_Some], at_most: int) -> npt.NDArray[_Some]:
    """Some of the numbers, from a few places spread evenly; each place in one piece, so that repeats show."""
    if len(numbers) <= at_most:
        return numbers
    each = at_most // _SAMPLED_PLACES
    gap = (len(numbers) - each) // (_SAMPLED_PLACES - 1)
    return np.concatenate([numbers[at * gap : at * gap + each] for at in range(_SAMPLED_PLACES)])


def rotate(numbers: Numbers, bits: int) -> Numbers:
    """Rotated left, by less than a number's own bits."""
    if bits == 0:
        return numbers
    rotated = numbers << bits
    rotated |= numbers >> (8 * numbers.itemsize - bits)
    return rotated


def split(numbers: Numbers, rotation: int, planes: Bytes) -> None:
    """Fill `planes`, lowest first, with the bytes of the numbers rotated left by 0 to 7 bits."""
    _halve(rotate(numbers, rotation), planes)


def _halve(numbers: Numbers, planes: Bytes) -> None:
    """Shifts and narrowing copies, half the width each time: all are vectorized, which a strided copy of
    bytes is not, and there is less to shift each time."""
    if len(planes) == 1:
        planes[0] = numbers
        return
    middle = len(planes) // 2
    half = np.dtype(f"<u{middle}")
    _halve(numbers.astype(half), planes[:middle])
    _halve((numbers >> 8 * middle).astype(half), planes[middle:])


def join(planes: Sequence[Bytes], rotation: int) -> Numbers:
    """The numbers that were split."""
    width = len(planes)
    columns = np.empty((len(planes[0]), width), np.uint8)
    for number, plane in enumerate(planes):
        columns[:, number] = plane
    numbers: Numbers = columns.reshape(-1).view(f"<u{width}")
    return rotate(numbers, 8 * width - rotation if rotation else 0)
