"""Which column holds what? By the names in the first line, whatever their order and case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wattline.errors import DocumentError, Problem
from wattline.spec.nearest import nearest
from wattline.spec.tree import printable


@dataclass(frozen=True, slots=True)
class Header:
    """The named columns of a table."""

    file: str
    line: int
    text: str
    separator: str

    @property
    def names(self) -> list[str]:
        return [name.strip().strip('"').lower() for name in self.text.split(self.separator)]

    @property
    def width(self) -> int:
        return len(self.names)

    def find(self, *alternatives: str) -> int | None:
        """The place of the first of these names that there is."""
        names = self.names
        return next((names.index(name.lower()) for name in alternatives if name.lower() in names), None)

    def require(self, known: Sequence[str], *needed: tuple[str, ...]) -> list[int]:
        """The place of each column, under any of its names; DocumentError with all that are missing."""
        places = [self.find(*alternatives) for alternatives in needed]
        missing = [names for names, place in zip(needed, places, strict=True) if place is None]
        if missing:
            raise DocumentError(*(self._missing(names, known) for names in missing))
        return [place for place in places if place is not None]

    def _missing(self, alternatives: tuple[str, ...], known: Sequence[str]) -> Problem:
        taken = {name.lower() for name in known}
        seen = [name for name in self.names if name and name not in taken]
        close = nearest(alternatives[0], seen)
        column = self.text.lower().find(close) + 1 if close else 1
        return Problem(
            file=self.file,
            line=self.line,
            column=column,
            field=alternatives[0],
            message="this column is missing",
            value=repr(printable(close)) if close else None,
            allowed=", ".join(known),
            nearest=alternatives[0] if close else None,
        )
