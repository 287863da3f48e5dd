"""How does a check that looks at several fields say which of them is wrong?

A pydantic validator may raise one error at its own place. A check across fields finds several, each deeper in
the document, so it hands them over as flaws with their paths; the reader gives each its line and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_FLAWS = 50  # one check reports at most this many
KEY = "[key]"  # the last step of a path when a key, not its value, is wrong; pydantic's own word


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One fault, by its path below the model that was checked."""

    at: tuple[str | int, ...]
    message: str
    value: str | None = None
    allowed: str | None = None
    nearest: str | None = None


class FlawedError(ValueError):
    """What a validator raises when it found these."""

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        self.flaws = tuple(flaws[:MOST_FLAWS])
        super().__init__("; ".join(f"{'.'.join(map(str, flaw.at))}: {flaw.message}" for flaw in self.flaws))
