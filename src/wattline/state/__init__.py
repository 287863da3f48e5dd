"""What is true now: Snapshot, Event, Action, Verdict, and how one event changes the state."""

from wattline.state.account import Account, usage_of, week_ends_at
from wattline.state.action import BEGINNINGS, Action, ActionKind, Decision, Place
from wattline.state.claim import Claim, claim_of, peak_watts_on
from wattline.state.dump import dump_state, load_state
from wattline.state.event import (
    SCHEMA_VERSION,
    Acknowledged,
    ActionFailed,
    Adopted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    GatesJudged,
    Measured,
    Noticed,
    Progressed,
    Released,
    RunConcluded,
    RunSubmitted,
    Ticked,
    Usage,
)
from wattline.state.job import ENDED, HOLDING, Flight, Job, JobState, Past, Run, Saved
from wattline.state.plant import POWER, Plant, Resource, ResourceKind, Spot
from wattline.state.request import JobRequest, job_id, requests_of
from wattline.state.snapshot import Snapshot, project
from wattline.state.state import State
from wattline.state.verdict import Outcome, Verdict

__all__ = [
    "BEGINNINGS",
    "ENDED",
    "HOLDING",
    "POWER",
    "SCHEMA_VERSION",
    "Account",
    "Acknowledged",
    "Action",
    "ActionFailed",
    "ActionKind",
    "Adopted",
    "Asked",
    "AttemptEnded",
    "AttemptStarted",
    "CheckpointSaved",
    "Claim",
    "Decision",
    "Ending",
    "Event",
    "Flight",
    "GatesJudged",
    "Job",
    "JobRequest",
    "JobState",
    "Measured",
    "Noticed",
    "Outcome",
    "Past",
    "Place",
    "Plant",
    "Progressed",
    "Released",
    "Resource",
    "ResourceKind",
    "Run",
    "RunConcluded",
    "RunSubmitted",
    "Saved",
    "Snapshot",
    "Spot",
    "State",
    "Ticked",
    "Usage",
    "Verdict",
    "claim_of",
    "dump_state",
    "job_id",
    "load_state",
    "peak_watts_on",
    "project",
    "requests_of",
    "usage_of",
    "week_ends_at",
]
