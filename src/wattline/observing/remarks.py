"""Remarks: what was odd, missing or taken for granted? Said once, in the order it was found."""

from __future__ import annotations

from collections.abc import Collection

_MOST_NAMED = 5


class Remarks(list[str]):
    """Sentences for people."""

    def note(self, sentence: str) -> None:
        if sentence not in self:
            self.append(sentence)


def named(names: Collection[str]) -> str:
    """The first few of many names, and how many more there are."""
    few = ", ".join(name[:80] for name in sorted(names)[:_MOST_NAMED])
    return few if len(names) <= _MOST_NAMED else f"{few} and {len(names) - _MOST_NAMED:,} more"
