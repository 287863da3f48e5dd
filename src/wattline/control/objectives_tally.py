"""How much of what an SLO counts was good lately, how fast is its error budget spent, and on what?

Counts are kept in cells of five minutes for as long as the longest window, so a figure costs what its window
holds and nothing grows with the age of a journal. Windows begin with a whole cell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from wattline.spec.slo import Slo

CELL_SECONDS = 300.0
_LONGEST_SECONDS = 28 * 86400.0
_HOUR = 3600.0
_NEARLY = 1e-9
_MOST_REASONS = 5

# Burn rates that alert, as in site reliability practice: over a long window, and over a short one too, so
# that an alert ends soon after its cause. A rate of one spends the budget exactly by the end of the window.
_ALERTS = (
    (_HOUR, 300.0, 14.4, "page"),
    (6 * _HOUR, 1800.0, 6.0, "page"),
    (72 * _HOUR, 6 * _HOUR, 1.0, "ticket"),
)
# With a generous objective even nothing but bad cannot burn that fast: then nine in ten bad ones alert.
_MOST_OF_ALL = 0.9
# One bad event among few is no rate.
_FEWEST_BAD = 2


class Burn(msgspec.Struct, frozen=True, kw_only=True):
    window_seconds: float
    rate: float | None  # how many times faster than the budget allows; None: nothing happened


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How an SLO stands at a time. Amounts are in its unit: jobs, resumes, releases or hours."""

    name: str
    say: str  # the SLO in words
    indicator: str
    objective: float
    window_seconds: float
    unit: str
    good: float
    bad: float
    share: float | None  # of good ones; None: nothing happened in the window
    is_met: bool | None
    allowed: float  # the error budget: how much might have been bad of what happened
    left: float  # negative where it is overspent
    burns: tuple[Burn, ...]
    alert: str  # page | ticket, or nothing
    reasons: tuple[tuple[str, float], ...]  # what ate the budget, the most first


class Cell(msgspec.Struct):
    good: float = 0.0
    bad: float = 0.0
    bad_events: int = 0
    reasons: dict[str, float] = {}


class Tally:
    """What one SLO has counted, by the number of the cell."""

    __slots__ = ("_newest", "_slo", "_unit", "cells")

    def __init__(self, slo: Slo, unit: str, cells: dict[int, Cell] | None = None) -> None:
        self._slo, self._unit = slo, unit
        self.cells: dict[int, Cell] = {} if cells is None else cells
        self._newest = max(self.cells, default=0)

    def add(self, at: float, *, good: float = 0.0, bad: float = 0.0, reason: str = "") -> None:
        number = int(at // CELL_SECONDS)
        cell = self.cells.get(number)
        if cell is None:
            cell = self.cells[number] = Cell(reasons={})
            if number > self._newest:
                self._newest = number
                self._forget(number - int(_LONGEST_SECONDS // CELL_SECONDS) - 1)
        cell.good += good
        if bad:
            cell.bad += bad
            cell.bad_events += 1
            cell.reasons[reason] = cell.reasons.get(reason, 0.0) + bad

    def _forget(self, before: int) -> None:
        """Cells were made nearly in order, so the old ones come first."""
        old = []
        for number in self.cells:
            if number >= before:
                break
            old.append(number)
        for number in old:
            del self.cells[number]

    def standing(self, at: float) -> Standing:
        slo = self._slo
        cells = list(self._since(at, slo.window_seconds))
        good, bad = sum(cell.good for cell in cells), sum(cell.bad for cell in cells)
        total, reasons = good + bad, Counter[str]()
        for cell in cells:
            reasons.update(cell.reasons)
        allowed = (1.0 - slo.objective) * total
        return Standing(
            name=slo.name,
            say=slo.sentence(),
            indicator=slo.indicator,
            objective=slo.objective,
            window_seconds=slo.window_seconds,
            unit=self._unit,
            good=good,
            bad=bad,
            share=good / total if total else None,
            is_met=good >= slo.objective * total * (1.0 - _NEARLY) if total else None,
            allowed=allowed,
            left=allowed - bad,
            burns=tuple(
                [Burn(window_seconds=window, rate=self._burn(at, window)[0]) for window, *_ in _ALERTS]
            ),
            alert=self._alert(at),
            reasons=tuple(reasons.most_common(_MOST_REASONS)),
        )

    def _since(self, at: float, window_seconds: float) -> Iterable[Cell]:
        first, last = int((at - window_seconds) // CELL_SECONDS), int(at // CELL_SECONDS)
        return [cell for number, cell in self.cells.items() if first <= number <= last]

    def _burn(self, at: float, window_seconds: float) -> tuple[float | None, int]:
        good = bad = 0.0
        events = 0
        for cell in self._since(at, window_seconds):
            good, bad, events = good + cell.good, bad + cell.bad, events + cell.bad_events
        if not good + bad:
            return None, 0
        budget = 1.0 - self._slo.objective
        rate = bad / (good + bad) / budget if budget > _NEARLY else (math.inf if bad else 0.0)
        return rate, events

    def _alert(self, at: float) -> str:
        budget = 1.0 - self._slo.objective
        for long_seconds, short_seconds, factor, alert in _ALERTS:
            most = _MOST_OF_ALL / budget if budget > _NEARLY else math.inf
            (slow, events), (quick, _) = self._burn(at, long_seconds), self._burn(at, short_seconds)
            enough = min(factor, most)
            if events >= _FEWEST_BAD and (slow or 0.0) >= enough and (quick or 0.0) >= enough:
                return alert
        return ""
