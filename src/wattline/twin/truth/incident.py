"""Incident: what happened in the facility by itself?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from wattline.enums import plain_members


@plain_members
class IncidentKind(StrEnum):
    PACE = "pace"  # jobs run faster or slower than before
    OFF = "off"  # nodes went off, and what ran there is lost
    ON = "on"
    TRIPPED = "tripped"
    RESET = "reset"
    FAULT = "fault"
    MENDED = "mended"  # a fault is over


@dataclass(frozen=True, slots=True)
class Incident:
    kind: IncidentKind
    at: float
    subject: str  # loop, rack, supply or fault
    keys: tuple[str, ...] = ()  # jobs concerned
    nodes: tuple[int, ...] = ()


class Touched(msgspec.Struct, frozen=True):
    """What changed since it was last asked, by number, in the order in which it did."""

    resources: dict[int, None]
    loops: dict[int, None]  # those of the resources that are loops
    nodes: dict[int, None]
