"""The loop: step(), the ports it needs, and replay of what it wrote down."""

from wattline.control.canary import Canary, Sighting
from wattline.control.differing import Difference, Sides, Stance, Tally
from wattline.control.loop import Decide, step
from wattline.control.objectives import Objectives, observe
from wattline.control.objectives_tally import Burn, Standing
from wattline.control.opinion import Opinion
from wattline.control.outlook import Outlook, look_ahead
from wattline.control.ports import Forecaster, Journal, World
from wattline.control.record import StepRecord, decode_step, encode_decision, encode_step
from wattline.control.replay import Deciders, Documents, Drift, refold, replay
from wattline.control.travelling import Turn, turns, until
from wattline.control.trends import earlier_readings
from wattline.control.trial import RuleTrial, Trial

__all__ = [
    "Burn",
    "Canary",
    "Decide",
    "Deciders",
    "Difference",
    "Documents",
    "Drift",
    "Forecaster",
    "Journal",
    "Objectives",
    "Opinion",
    "Outlook",
    "RuleTrial",
    "Sides",
    "Sighting",
    "Stance",
    "Standing",
    "StepRecord",
    "Tally",
    "Trial",
    "Turn",
    "World",
    "decode_step",
    "earlier_readings",
    "encode_decision",
    "encode_step",
    "look_ahead",
    "observe",
    "refold",
    "replay",
    "step",
    "turns",
    "until",
]
