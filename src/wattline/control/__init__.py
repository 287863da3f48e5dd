"""The loop: step(), the ports it needs, and replay of what it wrote down."""

from wattline.control.loop import Decide, step
from wattline.control.outlook import Outlook, look_ahead
from wattline.control.ports import Forecaster, Journal, World
from wattline.control.record import StepRecord, decode_step, encode_decision, encode_step
from wattline.control.replay import Documents, Drift, refold, replay

__all__ = [
    "Decide",
    "Documents",
    "Drift",
    "Forecaster",
    "Journal",
    "Outlook",
    "StepRecord",
    "World",
    "decode_step",
    "encode_decision",
    "encode_step",
    "look_ahead",
    "refold",
    "replay",
    "step",
]
