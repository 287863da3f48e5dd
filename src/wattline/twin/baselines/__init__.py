"""What people run today, for comparison: decisions of the same shape that judge no power, heat or budget."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wattline.control import Decide
from wattline.twin.baselines.blind import decide_blind
from wattline.twin.baselines.easy import decide_easy
from wattline.twin.baselines.fifo import decide_fifo
from wattline.twin.baselines.tiresias import decide_tiresias

BASELINES: Mapping[str, Decide] = MappingProxyType(
    {"fifo": decide_fifo, "easy": decide_easy, "tiresias": decide_tiresias, "power-blind": decide_blind}
)

__all__ = ["BASELINES", "decide_blind", "decide_easy", "decide_fifo", "decide_tiresias"]
