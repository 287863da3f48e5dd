"""What may be turned: power caps, on emulated GPUs."""

from wattline.actuators.actuator import Actuator
from wattline.actuators.emulated import EmulatedActuator

__all__ = ["Actuator", "EmulatedActuator"]
