"""Pairs: how do two bytes become one where nearly all lie within fifteen values of each other?

Exponents do. Half as many bytes are half the work for zstd, and its codes, whole bits long, waste less on a
pair than on each of two. The few bytes outside are kept apart, in order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wattline.checkpoint.codecs.planes import Bytes
from wattline.checkpoint.errors import CheckpointError

_VALUES = 15  # have the codes 0 to 14
_APART = 15
_BLOCK_BYTES = 256 * 1024  # what is computed in between stays in the processor's cache


def find_lowest(counts: npt.NDArray[np.intp]) -> tuple[int, int]:
    """The lowest of the fifteen values that cover most of the bytes counted, and how many they leave out."""
    below = np.zeros(len(counts) + 1, np.intp)
    counts.cumsum(out=below[1:])
    covered = below[_VALUES:] - below[:-_VALUES]
    lowest = int(covered.argmax())
    return lowest, int(below[-1] - covered[lowest])


def pair(plane: Bytes, lowest: int) -> tuple[Bytes, Bytes]:
    """Pairs of codes, and the bytes that are kept apart."""
    pairs = np.empty((len(plane) + 1) // 2, np.uint8)
    apart = []
    for start in range(0, len(plane), _BLOCK_BYTES):
        block = plane[start : start + _BLOCK_BYTES]
        codes = np.empty(len(block) + len(block) % 2, np.uint8)
        np.subtract(block, np.uint8(lowest), out=codes[: len(block)])
        codes[len(block) :] = 0
        outside = np.flatnonzero(codes >= _VALUES)
        codes[outside] = _APART
        apart.append(block[outside])
        twos = codes.view("<u2")
        both = twos >> 4
        both |= twos
        pairs[start // 2 : (start + _BLOCK_BYTES) // 2] = both
    return pairs, np.concatenate(apart)


def part(pairs: Bytes, lowest: int, apart: Bytes, size_bytes: int) -> Bytes:
    """The plane that was paired; CheckpointError where it cannot have been."""
    twos = pairs.astype("<u2")
    codes: Bytes = ((twos | twos << 4) & 0x0F0F).view(np.uint8)[:size_bytes]
    outside = np.flatnonzero(codes == _APART)
    if len(outside) != len(apart):
        raise CheckpointError(f"a plane keeps {len(apart)} bytes apart, and lacks {len(outside)}")
    codes += np.uint8(lowest)
    codes[outside] = apart
    return codes
