"""What may be turned: power limits of GPUs by a helper on their node, of nodes over Redfish, and emulated."""

from wattline.actuators.actuator import Actuator
from wattline.actuators.emulated import EmulatedActuator
from wattline.actuators.sites import NoActuator, SiteActuators

__all__ = ["Actuator", "EmulatedActuator", "NoActuator", "SiteActuators"]
