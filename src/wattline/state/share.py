"""How many GPUs does a project hold, and how many did it hold lately?

The past fades: what was held counts half after a half-life. Which one a policy weighs teams by is its own
choice, so the few there are to choose from are all kept.
"""

from __future__ import annotations

import math

import msgspec

_DAY_SECONDS = 86400.0
HALF_LIVES_SECONDS = (_DAY_SECONDS, 7 * _DAY_SECONDS, 28 * _DAY_SECONDS)
_RATES = tuple(math.log(2.0) / seconds for seconds in HALF_LIVES_SECONDS)

Lately = tuple[float, float, float]


class Share(msgspec.Struct, frozen=True):
    gpus: int = 0  # held now
    at: float = 0.0  # since when
    lately: Lately = (0.0, 0.0, 0.0)  # GPUs that it held then, on average over each fading past

    def plus(self, gpus: int, at: float) -> Share:
        """After taking so many more, or giving them back."""
        return Share(self.gpus + gpus, max(at, self.at), self.faded(at))

    def faded(self, at: float) -> Lately:
        """The averages as they are at a time; a clock that went back changes nothing."""
        elapsed, held = at - self.at, self.gpus
        if elapsed <= 0.0:
            return self.lately
        day, week, month = self.lately
        by_day, by_week, by_month = _RATES
        return (
            held + (day - held) * math.exp(-elapsed * by_day),
            held + (week - held) * math.exp(-elapsed * by_week),
            held + (month - held) * math.exp(-elapsed * by_month),
        )
