"""Engines: where does work run? One contract; the local engine runs real processes under supervisors."""

from wattline.engines.choosing import engines_of, leased_engine_of
from wattline.engines.contract import (
    AttemptHeldError,
    Ended,
    Engine,
    EngineEvent,
    Launch,
    LeasedEngine,
    NodeSeen,
    Noted,
    Reason,
    Reported,
    Result,
    Started,
    UnknownAttemptError,
    Usage,
)
from wattline.engines.desired import Desired
from wattline.engines.files import DIRECTORY_VARIABLE
from wattline.engines.local import LocalEngine

__all__ = [
    "DIRECTORY_VARIABLE",
    "AttemptHeldError",
    "Desired",
    "Ended",
    "Engine",
    "EngineEvent",
    "Launch",
    "LeasedEngine",
    "LocalEngine",
    "NodeSeen",
    "Noted",
    "Reason",
    "Reported",
    "Result",
    "Started",
    "UnknownAttemptError",
    "Usage",
    "engines_of",
    "leased_engine_of",
]
