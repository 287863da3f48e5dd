"""Utilisation: what watts do GPUs draw, given the share of time that a kernel is resident on them?

GPU utilisation is a duty figure: 100 % says that some kernel was there all the time, not what it did. A GPU
that waits in a collective and one that multiplies matrices both show it, at 100 W and at 400 W. So beside
duty the model has what a resident kernel wants, as a spread over GPUs: it waits or it works, and a device
that is asked for more than its limit is held there, with the ripple of the regulator that holds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wattline.physics.fitting import minimise

# A fit looks at so many quantiles; five times as many moved no parameter by more than two watts.
_FITTED_QUANTILES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawCurve:
    """GPUs of one kind under one cluster's work."""

    limit_watts: float
    idle_watts: float
    idle_spread_watts: float  # between devices
    waiting_share: float  # of the GPUs on which a kernel is resident
    waiting_watts: float  # above idle, the median one; log-normal
    waiting_log_spread: float
    working_watts: float  # what the others would draw without a limit, on average; normal
    working_spread_watts: float
    ripple_watts: float  # around the limit, to both sides; exponential

    def share_below(self, watts: float, duty: float) -> float:
        """The share of GPUs at this duty (0 to 1) that draw no more than `watts`."""
        if duty == 0.0:
            return _normal((watts - self.idle_watts) / self.idle_spread_watts)
        above_watts = watts - self.idle_watts
        waiting = 0.0
        if above_watts > 0.0:
            waiting = _normal(math.log(above_watts / (duty * self.waiting_watts)) / self.waiting_log_spread)
        return self.waiting_share * waiting + (1.0 - self.waiting_share) * self._working_below(watts, duty)

    def _working_below(self, watts: float, duty: float) -> float:
        """Duty scales what is wanted; the limit acts on the result, as it regulates the average."""
        wanted_watts = self.idle_watts + duty * (self.working_watts - self.idle_watts)
        spread_watts = duty * self.working_spread_watts
        unlimited = _normal((min(watts, self.limit_watts) - wanted_watts) / spread_watts)
        limited = 1.0 - _normal((self.limit_watts - wanted_watts) / spread_watts)
        return unlimited + limited * _two_sided((watts - self.limit_watts) / self.ripple_watts)


def _normal(deviations: float) -> float:
    return 0.5 * math.erfc(-deviations / math.sqrt(2.0))


def _two_sided(scales: float) -> float:
    """An exponential to both sides (Laplace): the measured tail above the limit falls as one."""
    return 0.5 * math.exp(scales) if scales < 0.0 else 1.0 - 0.5 * math.exp(-scales)


def predict_share_below(curve: DrawCurve, duties: Mapping[float, float], watts: float) -> float:
    """The share of a cluster's GPUs that draw no more than `watts`; `duties` gives the share at each duty."""
    return sum(share * curve.share_below(watts, duty) for duty, share in duties.items())


# Fitted on Seren (InternLM/AcmeTrace, A100s, August 2023) alone and tested on Kalos: docs/validation.md. The
# shapes are assumed; only distributions are published, so which GPU drew what at which duty is not known.
A100_DRAW = DrawCurve(
    limit_watts=400.0,
    idle_watts=64.3,
    idle_spread_watts=2.48,
    waiting_share=0.460,
    waiting_watts=33.7,
    waiting_log_spread=0.369,
    working_watts=370.0,
    working_spread_watts=146.0,
    ripple_watts=18.8,
)


def fit_draw_curve(
    duties: Mapping[float, float], watts_quantiles: Sequence[float], limit_watts: float
) -> DrawCurve:
    """The curve that puts a cluster's measured watts (equally likely, in order) nearest to their ranks."""
    count = len(watts_quantiles)
    ranks = [(index + 0.5) / _FITTED_QUANTILES for index in range(_FITTED_QUANTILES)]
    measured = [(watts_quantiles[int(rank * count)], rank) for rank in ranks]

    def loss(parameters: tuple[float, ...]) -> float:
        if min(parameters) <= 0.0 or parameters[2] >= 1.0:
            return math.inf
        curve = _curve_of(parameters, limit_watts)
        return sum((predict_share_below(curve, duties, watts) - rank) ** 2 for watts, rank in measured)

    idle_watts = watts_quantiles[count // 10]
    room_watts = limit_watts - idle_watts
    start = (
        idle_watts,
        3.0,
        0.4,
        0.1 * room_watts,
        0.4,
        0.9 * limit_watts,
        0.3 * room_watts,
        0.05 * room_watts,
    )
    steps = (1.0, 1.0, 0.1, 0.03 * room_watts, 0.1, 0.1 * room_watts, 0.1 * room_watts, 0.02 * room_watts)
    return _curve_of(minimise(loss, start, steps), limit_watts)


def _curve_of(parameters: tuple[float, ...], limit_watts: float) -> DrawCurve:
    idle, idle_spread, share, waiting, waiting_spread, working, working_spread, ripple = parameters
    return DrawCurve(
        limit_watts=limit_watts,
        idle_watts=idle,
        idle_spread_watts=idle_spread,
        waiting_share=share,
        waiting_watts=waiting,
        waiting_log_spread=waiting_spread,
        working_watts=working,
        working_spread_watts=working_spread,
        ripple_watts=ripple,
    )
