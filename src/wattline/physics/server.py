"""Server: of what a machine takes in, how much reaches its chips?

PUE divides by what machines take in, fans and supply losses included, so saving fan power makes it look
worse. What is left after both is what TUE divides by.
"""

from __future__ import annotations

from wattline.facility import CoolingKind
from wattline.physics.fans import predict_fan_watts
from wattline.physics.power import predict_node_supply_watts

# A node's supply takes in (load + fixed) / efficiency; turned round it says what is left of an input.
_SUPPLY_EFFICIENCY = 1.0 / (predict_node_supply_watts(1.0) - predict_node_supply_watts(0.0))
_SUPPLY_WATTS = predict_node_supply_watts(0.0) * _SUPPLY_EFFICIENCY
# What still blows in a box whose heat leaves by liquid; assumed.
_LIQUID_FAN_FRACTIONS = {CoolingKind.DIRECT_TO_CHIP: 0.03, CoolingKind.IMMERSION: 0.0}


def predict_compute_watts(cooling: CoolingKind, input_watts: float, full_watts: float) -> float:
    """What reaches the chips of a box that draws `full_watts` at most; nothing in one that is off."""
    fraction = _LIQUID_FAN_FRACTIONS.get(cooling)
    if fraction is None:
        fan_watts = predict_fan_watts(input_watts, full_watts)
    else:
        fan_watts = fraction * input_watts
    return max(0.0, input_watts * _SUPPLY_EFFICIENCY - _SUPPLY_WATTS - fan_watts)
