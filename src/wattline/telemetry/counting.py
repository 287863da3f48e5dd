"""Counting: how fast does a counter rise, when it may begin again from zero?"""

from __future__ import annotations

from collections.abc import Iterable


class Counters:
    """The last of each counter, so that the next gives a rate."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def rate(self, subject: str, value: float, at: float) -> tuple[float, bool] | None:
        """Rise per second since the last look, and whether it began anew meanwhile; None: not known yet.

        One that began anew has risen by what it shows at least.
        """
        before = self._last.get(subject)
        if before is not None and at <= before[1]:
            return None
        self._last[subject] = (value, at)
        if before is None:
            return None
        is_reset = value < before[0]
        rise = value if is_reset else value - before[0]
        return rise / (at - before[1]), is_reset

    def keep(self, subjects: Iterable[str]) -> None:
        """Forget all others."""
        kept = set(subjects)
        self._last = {subject: last for subject, last in self._last.items() if subject in kept}
