"""Recirculation: how much warmer is the air before a rack that stands beside busy ones?"""

from __future__ import annotations

# Two neighbours that each draw 10 kW more than when idle warm the air between them by 3 K; assumed, in the
# range that halls without containment report.
_KELVIN_PER_WATT = 1.5e-4


def predict_recirculation_kelvin(neighbour_watts_above_idle: float) -> float:
    """Only where air is the coolant: what leaves one rack's back finds its way to the next one's front."""
    return _KELVIN_PER_WATT * max(0.0, neighbour_watts_above_idle)
