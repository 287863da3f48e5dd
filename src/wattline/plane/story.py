"""What happened to a job, and why? Its story as the journal has it: what came in, what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wattline.control import StepRecord
from wattline.plane.finding import View
from wattline.state import (
    BEGINNINGS,
    Action,
    ActionFailed,
    ActionKind,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    GatesJudged,
    Job,
    Noticed,
    Outcome,
    Released,
    Run,
    RunConcluded,
    RunSubmitted,
    Verdict,
)
from wattline.store.steps import read_steps
from wattline.units import format_bytes, format_share

FAULT = "fault"
MOVED = "moved"
SAVED = "saved"
WAITS = "waits"

_KEPT_BACK = (Outcome.WAIT, Outcome.REFUSE)
_ENDINGS = {Ending.SUCCEEDED: "finished", Ending.PAUSED: "paused"}
_ACTIONS = {
    ActionKind.START: "admitted",
    ActionKind.REFUSE: "refused",
    ActionKind.CAP_POWER: "capped",
    ActionKind.SHRINK_BATCH: "shrunk",
    ActionKind.PAUSE: "pausing",
    ActionKind.RESUME: "resumed",
    ActionKind.MIGRATE: MOVED,
    ActionKind.STOP: "stopping",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a story. `because` is what the policy gave as its reason, with its numbers."""

    at: float
    what: str
    say: str = ""
    job: str = ""  # empty: about the run or the facility
    attempt: int | None = None
    action: ActionKind | None = None
    because: str = ""
    lost_gpu_seconds: float = 0.0  # the price of an action, as it was estimated when it was decided
    site: str = ""
    verdicts: tuple[Verdict, ...] = field(default=())


def tell_story(view: View, run: Run, jobs: tuple[Job, ...]) -> list[Entry]:
    """All that the journal has about these jobs, in order; faults of the facility while they were there."""
    journal = view.session.store.journal
    chosen = {job.id: job for job in jobs}
    entries: list[Entry] = []
    for _, record in read_steps(journal, int(run.documents.get("after_seq", "0"))):
        entries += _tell_step(record, run, chosen)
    return entries


def why_moved(own: list[Entry], story: list[Entry]) -> list[tuple[Entry, str, str]]:
    """Each move of a job: the entry, where it came from, and what made it leave there."""
    moves = []
    site, left = "", ""
    for entry in own:
        if entry.what == MOVED:
            faults = [
                each for each in story if each.what == FAULT and each.at <= entry.at and each.site == site
            ]
            parts = [part for part in (left, *(f"after {fault.say}" for fault in faults[-1:])) if part]
            moves.append((entry, site, "; ".join(parts) or entry.because))
        if entry.action is not None and entry.site:
            site, left = entry.site, ""
        elif entry.action is not None and entry.because:
            left = entry.because
        elif entry.what == "lost":
            left = entry.say
    return moves


def _tell_step(record: StepRecord, run: Run, chosen: dict[str, Job]) -> Iterator[Entry]:
    for event in record.events:
        entry = _tell_event(event, run, chosen)
        if entry is not None:
            yield entry
    decision = record.decision
    acted = {action.job for action in decision.actions}
    for action in decision.actions:
        if action.job in chosen:
            yield _tell_action(action, decision)
    for job in chosen:
        kept_back = tuple(
            verdict for verdict in decision.verdicts if verdict.job == job and verdict.outcome in _KEPT_BACK
        )
        if kept_back and job not in acted:
            say = "; ".join(verdict.sentence() for verdict in kept_back)
            yield Entry(at=decision.at, what=WAITS, job=job, say=say, verdicts=kept_back)


def _tell_event(event: Event, run: Run, chosen: dict[str, Job]) -> Entry | None:
    if isinstance(event, Noticed):
        return _tell_notice(event, chosen)
    if isinstance(event, RunSubmitted | GatesJudged | RunConcluded | Released):
        return _tell_of_run(event) if event.run == run.run else None
    if isinstance(event, ActionFailed):
        job = event.action.partition("#")[0]
        return Entry(at=event.at, what="failed", say=event.say, job=job) if job in chosen else None
    if isinstance(event, Asked | AttemptStarted | CheckpointSaved | AttemptEnded) and event.job in chosen:
        return _tell_of_job(event)
    return None


def _tell_of_job(event: Asked | AttemptStarted | CheckpointSaved | AttemptEnded) -> Entry:
    if isinstance(event, Asked):
        return Entry(at=event.at, what="asked", say=f"to {event.want}, by {event.actor}", job=event.job)
    if isinstance(event, AttemptStarted):
        say = f"attempt {event.attempt}"
        return Entry(at=event.at, what="started", say=say, job=event.job, attempt=event.attempt)
    if isinstance(event, CheckpointSaved):
        say = f"step {event.step} at {event.site}, {format_bytes(event.size_bytes)}"
        return Entry(at=event.at, what=SAVED, say=say, job=event.job, attempt=event.attempt, site=event.site)
    used = f"{event.usage.gpu_hours:.3g} GPU-hours, {event.usage.kwh:.3g} kWh"
    return Entry(
        at=event.at,
        what=_ENDINGS.get(event.ending, str(event.ending).replace("_", " ")),
        say=used if event.ending in _ENDINGS else f"{event.say}; {used}",
        job=event.job,
        attempt=event.attempt,
    )


def _tell_of_run(event: RunSubmitted | GatesJudged | RunConcluded | Released) -> Entry:
    if isinstance(event, RunSubmitted):
        return Entry(at=event.at, what="submitted", say=f"{event.run} by {event.actor}")
    if isinstance(event, GatesJudged):
        words = {True: "all passed", False: "not passed", None: "could not be evaluated"}
        failed = [f"{gate['gate']}: {gate['message']}" for gate in event.results if gate["outcome"] != "pass"]
        return Entry(at=event.at, what="gates", say="; ".join([words[event.passed], *failed]))
    if isinstance(event, Released):
        what = "rolled back" if event.rolled_back else "released"
        return Entry(at=event.at, what=what, say=f"{event.name}:{event.channel} number {event.number}")
    return Entry(at=event.at, what="ended", say=event.status + (f": {event.say}" if event.say else ""))


def _tell_notice(event: Noticed, chosen: dict[str, Job]) -> Entry | None:
    if event.job:
        return (
            Entry(at=event.at, what="noticed", say=event.say, job=event.job) if event.job in chosen else None
        )
    there = any(
        job.submitted_at <= event.at and (job.ended_at is None or event.at <= job.ended_at)
        for job in chosen.values()
    )
    if not there:
        return None
    is_fault = event.say.startswith("fault ")
    say = f"{event.say} at {event.subject}" if is_fault else f"{event.subject}: {event.say}"
    return Entry(
        at=event.at,
        what=FAULT if is_fault else "noticed",
        say=f"{say} (emulated)" if event.source == "emulated" else say,
        site=event.subject.partition("/")[0],
    )


def _tell_action(action: Action, decision: Decision) -> Entry:
    what, say = _ACTIONS[action.kind], ""
    if action.kind in BEGINNINGS:
        say = f"to {action.place}"
    elif action.kind in (ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH):
        what = what if action.fraction < 1 else f"un{what}"
        of = "its power" if action.kind is ActionKind.CAP_POWER else "its batch in flight"
        say = f"at {format_share(action.fraction)} of {of}"
    elif action.kind is ActionKind.PAUSE:
        say = "at a checkpoint"
    return Entry(
        at=decision.at,
        what=what,
        say=say,
        job=action.job,
        attempt=action.attempt,
        action=action.kind,
        because=action.because,
        lost_gpu_seconds=action.lost_gpu_seconds,
        site=action.place.site if action.place else "",
        verdicts=tuple(verdict for verdict in decision.verdicts if verdict.job == action.job),
    )
