"""Asked before: what people want of running jobs, and what no engine has answered yet."""

from __future__ import annotations

from wattline.policy.giving_way.ladder import choose_elsewhere
from wattline.policy.naming import next_action
from wattline.policy.scaling.scaling import answer_seconds
from wattline.spec.ladder import Rung, RungKind
from wattline.spec.policy import Policy
from wattline.state import MIGRATE, Action, ActionKind, JobState, Snapshot

_MOST_TRIES = 3


def heed(draft: Snapshot, policy: Policy) -> tuple[list[Action], dict[str, float]]:
    """Do what people asked of running jobs; their word wins over the policy's.

    Also the jobs where that has just failed, and when to ask them again.
    """
    actions: list[Action] = []
    refused: dict[str, float] = {}
    jobs = draft.jobs
    asked = [job_id for job_id in (*draft.restless, *draft.changed) if jobs[job_id].asked]
    for job_id in sorted(set(asked)) if asked else ():
        job = draft.job(job_id)
        if job.state is not JobState.RUNNING:
            continue
        # A running job has been so since it started, or since it could not be made to leave.
        again_at = job.since + policy.thresholds.settle
        if job.since != job.started_at and draft.at < again_at:
            refused[job_id] = again_at
            continue
        place = None
        if job.asked.startswith(MIGRATE):
            to = job.asked.removeprefix(f"{MIGRATE} to ") if job.asked != MIGRATE else "any"
            choice = choose_elsewhere(draft, policy, job, Rung(kind=RungKind.MIGRATE, to=to))
            if choice is None:  # it runs on where it is until another site takes it
                refused[job_id] = draft.at + policy.thresholds.settle
                continue
            place = choice.place
        pausing = place is not None or (job.asked == "pause" and job.request.checkpoints)
        kind = ActionKind.PAUSE if pausing else ActionKind.STOP
        action = next_action(job, kind, because=f"asked to {job.asked}", returns_to=place)
        draft.issue(action)
        actions.append(action)
    return actions, refused


def ask_again(draft: Snapshot, policy: Policy) -> tuple[list[Action], list[float]]:
    """Repeat actions that nobody answered in time; the same id, so doing it twice does it once.

    An attempt that does not answer is stopped in the end, and asked to until it says that it has ended; the
    job goes on from its checkpoint.
    """
    actions, deadlines = [], []
    for flight in draft.flights.values():
        if flight.action.node:
            deadline = flight.issued_at + answer_seconds(draft, flight.action, policy)
            if draft.at < deadline:
                deadlines.append(deadline)
            else:
                actions.append(flight.action)
            continue
        job = draft.job(flight.action.job)
        if draft.agent_of(job) is not None:
            continue  # its agent fetches what it has not answered, and asks again itself
        # A stop that failed has just been answered: give it as long before the next.
        deadline = max(flight.issued_at, job.since) + policy.thresholds.acknowledge_within
        stopping = flight.action.kind is ActionKind.STOP
        if job.state is JobState.STOPPING and not stopping:
            continue  # overtaken: it must not be done after the stop
        if draft.at < deadline:
            deadlines.append(deadline)
        elif stopping or flight.tries < _MOST_TRIES:
            actions.append(flight.action)
        else:
            because = f"{flight.action.kind} was not answered {flight.tries} times"
            stop = next_action(job, ActionKind.STOP, because=because, lost=True)
            draft.issue(stop)
            actions.append(stop)
    return actions, deadlines
