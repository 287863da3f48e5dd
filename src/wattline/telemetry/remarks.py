"""Remarks: what is worth saying about a meter, once, when it begins and when it is over?"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

_MOST_KEPT = 1000
_MOST_NAMED = 5


class Remark(NamedTuple):
    """Something that people should know of a meter; it changes no number."""

    subject: str
    say: str


class Remarks:
    """What holds now, by what it is about; only what changed is told."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], str] = {}
        self._new: list[Remark] = []

    def hold(self, subject: str, kind: str, say: str | None, over: str = "") -> None:
        """From now on this is so, or it is not any more (None); `over` is said then, if anything is."""
        key = (subject, kind)
        known = self._held.get(key)
        if say is None:
            if known is not None:
                del self._held[key]
                if over:
                    self._new.append(Remark(subject, over))
        elif known is None and len(self._held) < _MOST_KEPT:
            self._held[key] = say
            self._new.append(Remark(subject, say))

    def note(self, subject: str, say: str) -> None:
        """Something that happened, and is over."""
        self._new.append(Remark(subject, say))

    def take(self) -> list[Remark]:
        new, self._new = self._new[:_MOST_KEPT], []
        return new


def named(names: Collection[str]) -> str:
    """A few of many: `a, b, c and 17 more`."""
    first = sorted(names)[:_MOST_NAMED]
    rest = len(names) - len(first)
    return ", ".join(first) + (f" and {rest:,} more" if rest else "")
