"""Difference: what is left of numbers when those of the checkpoint before are taken away?

Floats are subtracted as the unsigned numbers their bits are. Neighbouring floats are neighbouring numbers, so
a small change gives a small difference whatever the exponent; nothing is rounded, all can be undone. Half of
what a byte holds is added to each byte: small differences of either sign then have the same bytes above, and
those of a float that crosses zero differ from them in the highest bit alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wattline.checkpoint.codecs.planes import Numbers


def subtract(numbers: Numbers, base: Numbers, into: Numbers | None = None) -> Numbers:
    change: Numbers = np.subtract(numbers, base, out=into)
    change += _middle(change.dtype)
    return change


def add(change: Numbers, base: Numbers) -> Numbers:
    """The numbers that differ so from the base."""
    numbers: Numbers = change - _middle(change.dtype)
    numbers += base
    return numbers


def _middle(of: np.dtype[Any]) -> Any:
    return np.frombuffer(b"\x80" * of.itemsize, of)[0]
