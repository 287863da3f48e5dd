"""Sparse: how is a plane stored in which one byte is more frequent than all others together?

Differences have such planes. Codes are whole bits long, which wastes most of one on the frequent byte, and
zstd loses time on its many short runs. So it is taken out: one bit says whether a byte is another, and the
others are kept in order.
"""

from __future__ import annotations

import numpy as np

from wattline.checkpoint.codecs.planes import Bytes
from wattline.checkpoint.errors import CheckpointError

_BLOCK_BYTES = 64 * 1024  # a position takes eight bytes: those of a whole plane could be eight planes


def take_out(plane: Bytes, frequent: int) -> tuple[Bytes, Bytes]:
    """Bits that are set where there is another byte, and those bytes."""
    others = plane != frequent
    return np.packbits(others), np.compress(others, plane)


def put_back(bits: Bytes, others: Bytes, frequent: int, size_bytes: int) -> Bytes:
    """The plane; CheckpointError where there are more or fewer other bytes than bits set."""
    set_bits = np.unpackbits(bits, count=size_bytes).view(np.bool_)
    if np.count_nonzero(set_bits) != len(others):
        raise CheckpointError(
            f"a plane keeps {len(others)} bytes apart, and lacks {np.count_nonzero(set_bits)}"
        )
    plane = np.full(size_bytes, frequent, np.uint8)
    at = 0
    for start in range(0, size_bytes, _BLOCK_BYTES):
        where = start + np.flatnonzero(set_bits[start : start + _BLOCK_BYTES])
        plane[where] = others[at : at + len(where)]
        at += len(where)
    return plane
