"""Which literals in an expression are quantities, and what are they worth in base units?

CEL knows neither `15%` nor `40kW`, and does not compare an int with a double. So an expression is cut into
tokens, its numbers become doubles in base units, and a map of offsets lets a message point at what was
written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from wattline import units
from wattline.spec.nearest import nearest

_KINDS = (
    units.POWER,
    units.DURATION,
    units.BANDWIDTH,
    units.THROUGHPUT,
    units.SIZE,
    units.FRACTION,
    units.TEMPERATURE,
    units.FLOW,
    units.MONEY,
    units.ENERGY,
    units.MASS,
)
WORTH = {unit: worth for kind in _KINDS for unit, worth in kind.worth.items() if unit}
_UNITS = "|".join(re.escape(unit) for unit in sorted(WORTH, key=len, reverse=True))

_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|//[^\n]*)
  | (?P<text>[bB]?[rR]?(?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\")
    | [bB]?[rR](?:'[^'\n]*'|"[^"\n]*")
    | [bB]?(?:'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)
    (?P<unit>(?:{_UNITS})(?![\w%]))?(?P<unknown>[^\W\d]\w*)?
  | (?P<name>[^\W\d]\w*)
  | (?P<mark>&&|\|\||[=!<>]=|.)
    """,
    re.VERBOSE,
)
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# A name in one of these is not in seconds, so a duration beside it would be wrong by that factor.
_OTHER_CLOCKS = frozenset({"ms", "millis", "minutes", "hours", "days", "weeks"})


class SpellingError(ValueError):
    """An expression cannot be read. `known` and `nearest` are set when a name in it is not known."""

    def __init__(self, summary: str, *, name: str = "", known: Collection[str] = ()) -> None:
        self.summary = summary
        self.known = tuple(known)
        self.nearest = nearest(name, self.known) or nearest(name.partition(".")[0], self.known)
        parts = [summary]
        if known:
            parts.append(f"known: {', '.join(self.known)}")
        if self.nearest:
            parts.append(f"did you mean {self.nearest!r}?")
        super().__init__("; ".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of an expression as written; `kind` is text, number, name or mark."""

    kind: str
    text: str
    offset: int
    unit: str = ""

    @property
    def place(self) -> str:
        return f"at column {self.offset + 1}"

    @property
    def amount(self) -> float:
        number = float(self.text.removesuffix(self.unit)) * WORTH.get(self.unit, 1.0)
        if not math.isfinite(number):
            raise SpellingError(f"{self.place}: {self.text} is too large a number")
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """An expression whose numbers are doubles, with the offsets at which it drifts from what was written."""

    text: str
    drifts: tuple[tuple[int, int], ...]  # (offset here, offset as written)

    def written_offset(self, offset: int) -> int:
        here, written = next(pair for pair in reversed(self.drifts) if pair[0] <= offset)
        return written + offset - here


def tokens_of(text: str) -> tuple[Token, ...]:
    """Cut an expression into tokens, without spaces and comments."""
    return tuple(_cut(text))


def _cut(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        if match["unknown"]:
            unit = match["unknown"]
            raise SpellingError(
                f"at column {match.start() + 1}: unknown unit {unit!r}", name=unit, known=WORTH
            )
        kind = next(name for name in ("space", "text", "number", "name", "mark") if match[name] is not None)
        if kind != "space":
            yield Token(kind=kind, text=match[0], offset=match.start(), unit=match["unit"] or "")


def promote(text: str) -> Promoted:
    """Turn quantities and integers into doubles; an index such as `[0]` stays an integer."""
    tokens = tokens_of(text)
    _refuse_mixed_clocks(tokens)
    parts: list[str] = []
    drifts = [(0, 0)]
    done = length = 0
    for position, token in enumerate(tokens):
        if token.kind != "number" or _is_index(tokens, position):
            continue
        double = repr(token.amount)
        parts += [text[done : token.offset], double]
        length += token.offset - done + len(double)
        done = token.offset + len(token.text)
        drifts.append((length, done))
    return Promoted(text="".join([*parts, text[done:]]), drifts=tuple(drifts))


def _is_index(tokens: tuple[Token, ...], position: int) -> bool:
    around = tokens[max(position - 2, 0) : position + 2]
    if len(around) != 4 or (around[1].text, around[3].text) != ("[", "]"):
        return False
    indexed = around[0]
    is_value = (indexed.kind == "name" and indexed.text != "in") or indexed.text in {"]", ")", "}"}
    return is_value and around[2].text.isdigit()


def _refuse_mixed_clocks(tokens: tuple[Token, ...]) -> None:
    """Refuse `minutes_to_throttle < 20min`: it would compare minutes with 1200 seconds."""
    for (left, mark), right in zip(pairwise(tokens), tokens[2:], strict=False):
        if mark.text not in _COMPARISONS or {left.kind, right.kind} != {"name", "number"}:
            continue
        name, number = (left, right) if left.kind == "name" else (right, left)
        clocks = _OTHER_CLOCKS.intersection(name.text.split("_"))
        if clocks and number.unit in units.DURATION.worth:
            raise SpellingError(
                f"{number.place}: {name.text} is in {', '.join(clocks)}, so it compares with a number "
                f"without a unit, not with {number.text}"
            )
