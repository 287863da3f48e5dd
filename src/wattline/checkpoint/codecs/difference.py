"""Difference: what is left of numbers when those of the checkpoint before are taken away?

Floats are subtracted as the unsigned numbers their bits are. Neighbouring floats are neighbouring numbers, so
a small change gives a small difference whatever the exponent; nothing is rounded, all can be undone. The sign
of a float is compared by itself, in the highest bit: a weight that crosses zero then changes little, too. The
difference of the rest has its own sign in the lowest bit, so that small ones begin with zeros.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from wattline.checkpoint.codecs.planes import Numbers


def subtract(numbers: Numbers, base: Numbers) -> Numbers:
    top = 8 * numbers.itemsize - 1
    change = numbers - base
    change <<= 1
    change ^= (_signed(change) >> top).view(change.dtype)
    signs: Numbers = numbers ^ base
    signs &= 1 << top
    change |= signs
    return change


def add(change: Numbers, base: Numbers) -> Numbers:
    """The numbers that differ so from the base."""
    top = 8 * change.itemsize - 1
    rest = (1 << top) - 1
    numbers = change & rest
    numbers ^= (-_signed(numbers & 1)).view(numbers.dtype)
    numbers >>= 1
    numbers += base
    numbers &= rest
    numbers |= (change ^ base) & (1 << top)
    return numbers


def _signed(numbers: Numbers) -> npt.NDArray[Any]:
    return numbers.view(f"<i{numbers.itemsize}")
