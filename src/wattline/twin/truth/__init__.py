"""The facility as it truly is: watts, heat and breakers, touched only where something changed."""

from wattline.twin.truth.energy import EnergyTally, SiteEnergy
from wattline.twin.truth.incident import Incident, IncidentKind, Touched
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.node import TrueNode
from wattline.twin.truth.ports import Surroundings
from wattline.twin.truth.truth import Carrier, Truth

__all__ = [
    "Carrier",
    "EnergyTally",
    "Incident",
    "IncidentKind",
    "SiteEnergy",
    "Surroundings",
    "Touched",
    "TrueLoop",
    "TrueNode",
    "Truth",
]
