"""Hearing: how much of what a training says about itself can be believed?

It is another program's word. It goes into the journal, which must stay readable, into a manifest, which has
its own rules, and onto a terminal, which must not obey it.
"""

from __future__ import annotations

import math
import re

_MOST = 2**63 - 1  # any reader of the journal can hold this
_BLAKE3 = re.compile("[0-9a-f]{64}")


def read_whole(value: object) -> int | None:
    """A count; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def read_number(value: object) -> float | None:
    """A finite number; None for anything else, also for one that is too long for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_digest(value: object) -> str:
    """A checkpoint's name; nothing where it is none."""
    return value if isinstance(value, str) and _BLAKE3.fullmatch(value) else ""


def read_words(value: object, most: int) -> str:
    """Text for a line, without what moves a cursor or has no encoding."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value)[:most])
