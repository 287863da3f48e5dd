"""What meters last said of heat, with its age: the state's memory of readings that are no claim."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Conditions:
    """Columns by node and by loop; what GPUs say in the order it was read, the oldest first."""

    node_celsius: dict[int, tuple[float, float]] = field(default_factory=dict)  # hottest GPU, read at
    node_gpu_watts: dict[int, tuple[float, float]] = field(default_factory=dict)  # hungriest GPU, read at
    coolant_celsius: dict[int, tuple[float, float]] = field(default_factory=dict)
    flow_fraction: dict[int, float] = field(default_factory=dict)
    supply_celsius: dict[int, float] = field(default_factory=dict)
    mute: set[int] = field(default_factory=set)  # nodes whose meters said that they cannot read
    touched: set[int] = field(default_factory=set)  # nodes read since the last decision
