"""Network: what does each traffic class get of a link, and how long does a transfer take?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wattline.facility import TrafficClass


def share_fairly(capacity: float, demands: Sequence[float]) -> list[float]:
    """Max-min fairness: nobody gets more than they ask, and what one leaves the others share alike."""
    shares = [0.0] * len(demands)
    left = max(0.0, capacity)
    by_demand = sorted(range(len(demands)), key=lambda index: demands[index])
    for position, index in enumerate(by_demand):
        shares[index] = min(demands[index], left / (len(demands) - position))
        left -= shares[index]
    return shares


def share_link(
    bits_per_second: float,
    guaranteed: Mapping[TrafficClass, float],
    demands: Mapping[TrafficClass, float],
) -> dict[TrafficClass, float]:
    """Each class gets its guaranteed part as far as it asks for it; the rest is shared fairly."""
    granted = {
        traffic: min(demand, guaranteed.get(traffic, 0.0) * bits_per_second)
        for traffic, demand in demands.items()
    }
    spare = bits_per_second - sum(granted.values())
    extra = share_fairly(spare, [demands[traffic] - granted[traffic] for traffic in demands])
    return {traffic: granted[traffic] + more for traffic, more in zip(demands, extra, strict=True)}


def transfer_seconds(size_bytes: float, bits_per_second: float, latency_seconds: float) -> float:
    """Time to move so many bytes; infinite over a link that carries nothing."""
    if size_bytes <= 0:
        return latency_seconds
    if bits_per_second <= 0:
        return math.inf
    return latency_seconds + 8.0 * size_bytes / bits_per_second
