"""Which known name did somebody most likely mean?"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from itertools import islice


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The closest known name by its letters, whatever their case; None when nothing comes close."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name[:100].lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean 'kW'?`, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def listed(known: Collection[str], most: int = 50) -> str:
    """Known names in a row; a long row is cut."""
    row = ", ".join(islice(known, most))
    return f"{row} and {len(known) - most:,} more" if len(known) > most else row
