"""Planes: how do numbers lie so that what they have in common is side by side?

The lowest bytes of all numbers, then the bytes above them, and so on. The highest two bytes are turned by one
bit first, so that a float's exponent fills one plane and its sign lies in the noise below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]  # unsigned, of 1, 2, 4 or 8 bytes

# As arrays: NumPy takes a microsecond to make one of a Python number.
_NOTHING = np.array(0, "<i2")
_MANTISSA_BITS = np.array(7, "<u2")


def as_numbers(raw: memoryview, width: int) -> Numbers:
    """The bytes as unsigned numbers, not copied; where they are no whole numbers, each byte is one."""
    whole = width in (2, 4, 8) and len(raw) % width == 0
    return np.frombuffer(raw, f"<u{width if whole else 1}")


def half_of(numbers: Numbers) -> np.dtype[Any]:
    """The type of half a number."""
    return np.dtype(f"<u{numbers.itemsize // 2}")


def turn(numbers: Numbers) -> Numbers:
    """The highest two bytes of each rotated left by one bit."""
    if numbers.itemsize == 1:
        return numbers
    if numbers.itemsize == 2:
        return numbers << 1 | numbers >> 15
    turned = numbers.copy()
    highest = turned.view("<u2").reshape(len(turned), -1)[:, -1]
    highest[:] = highest << 1 | highest >> 15
    return turned


def split(numbers: Numbers, turned: bool, low: Numbers | None, planes: Bytes, room: Numbers) -> None:
    """Fill `planes`, lowest first; with `low` only those of the upper halves, the lower ones go there.

    Shifts and narrowing copies, half the width each time: all are vectorized, which a strided copy of bytes
    is not, and there is less to shift each time. What is in `room` is lost; it may be the numbers themselves.
    """
    width = numbers.itemsize
    if width == 1:
        planes[0] = numbers
    elif width == 2 and turned:
        _split_turned(numbers, planes, room)
    else:
        half = half_of(numbers)
        if low is None:
            lower = numbers.astype(half)
            split(lower, False, None, planes[: width // 2], lower)
        else:
            np.copyto(low, numbers, casting="unsafe")
        np.right_shift(numbers, 4 * width, out=room)
        upper = room.astype(half)
        split(upper, turned, None, planes[-(width // 2) :], upper)


def _split_turned(numbers: Numbers, planes: Bytes, room: Numbers) -> None:
    """As turning and halving would, in fewer steps. Signs wait where the exponents will be."""
    rest, exponents = planes
    np.copyto(rest, numbers, casting="unsafe")
    rest += rest
    np.less(numbers.view("<i2"), _NOTHING, out=exponents.view(np.bool_))
    rest |= exponents
    np.right_shift(numbers, _MANTISSA_BITS, out=room)
    np.copyto(exponents, room, casting="unsafe")


def join(width: int, turned: bool, low: Numbers | None, planes: Sequence[Bytes]) -> Numbers:
    """The numbers that were split."""
    if width == 1:
        return planes[0]
    half = width // 2
    lower = join(half, False, None, planes[:half]) if low is None else low
    numbers: Numbers = join(half, turned and width > 2, None, planes[-half:]).astype(f"<u{width}")
    numbers <<= 4 * width
    numbers |= lower
    return numbers >> 1 | numbers << 15 if turned and width == 2 else numbers
