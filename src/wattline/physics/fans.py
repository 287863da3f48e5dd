"""Fans: what do a server's fans draw, and how much air do they move for it?

Fan power follows the cube of flow. Servers raise flow more slowly than heat and let their exhaust warm up,
so over the measured range fan power comes out as a line in server power.
"""

from __future__ import annotations

import math

# Measured (Azure/AzurePublicDataset, eight points between 320 W and 911 W, read off a figure): least squares.
# Each point is within 5 W of the line.
_MEASURED_LEAST_WATTS = 320.0
_MEASURED_MOST_WATTS = 911.4
_FAN_WATTS_PER_SERVER_WATT = 0.179
_FAN_WATTS_AT_NONE = -24.0


def predict_fan_watts(server_watts: float, full_server_watts: float = _MEASURED_MOST_WATTS) -> float:
    """What fans draw, as part of `server_watts`, in a server that draws `full_server_watts` at most.

    Another size of server is taken to be the measured one enlarged. Below the measured range the share stays
    as it is at its lower end: fans never stand still.
    """
    scale = full_server_watts / _MEASURED_MOST_WATTS
    measured_watts = max(server_watts / scale, _MEASURED_LEAST_WATTS)
    share = _FAN_WATTS_PER_SERVER_WATT + _FAN_WATTS_AT_NONE / measured_watts
    return share * server_watts


def predict_fan_watts_at_flow(full_fan_watts: float, flow_fraction: float) -> float:
    """What fans draw at a part of their full flow."""
    return full_fan_watts * math.pow(flow_fraction, 3.0)


def predict_fan_flow(fan_watts: float, full_fan_watts: float) -> float:
    """The part of full flow that fans give for these watts."""
    return math.cbrt(fan_watts / full_fan_watts)
