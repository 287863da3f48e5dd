"""Journals as a conductor writes them: what comes in and what is decided about it are one step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.looking import Writing
from wattline.policy import decide
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    Ending,
    Event,
    JobRequest,
    RunSubmitted,
    Snapshot,
    Usage,
)
from wattline.store.steps import StepJournal


def a_request(run: str, **changes: Any) -> JobRequest:
    fields: dict[str, Any] = {
        "job": f"{run}/train",
        "run": run,
        "phase": "train",
        "project": "nlp",
        "gpus": 1,
        "checkpoints": True,
        "max_duration_seconds": 3600.0,
    }
    return JobRequest(**(fields | changes))


def turn(writing: Writing, *events: Event, seconds: float = 1.0) -> None:
    """One turn of the loop."""
    state = writing.session.state
    assert state is not None
    writing.now += seconds
    state.fold(events)
    decision = decide(Snapshot(state, writing.now), writing.session.policy())
    StepJournal(writing.session.store.journal).append(events, state.digest, decision)
    state.settle(decision)


def submit(writing: Writing, run: str, **changes: Any) -> None:
    request = a_request(run, **changes)
    documents = {"after_seq": str(writing.session.store.journal.last_seq())}
    turn(
        writing,
        RunSubmitted(
            at=writing.now,
            actor="ada",
            project=request.project,
            run=run,
            pipeline="small",
            jobs=(request,),
            documents=documents,
        ),
    )


def start(writing: Writing, run: str) -> None:
    turn(writing, AttemptStarted(at=writing.now, job=f"{run}/train", attempt=1))


def end(writing: Writing, run: str, *, after_seconds: float = 60.0) -> None:
    writing.now += after_seconds
    ended = AttemptEnded(
        at=writing.now,
        job=f"{run}/train",
        attempt=1,
        ending=Ending.SUCCEEDED,
        usage=Usage(gpu_hours=after_seconds / 3600),
    )
    turn(writing, ended)


def three_in_line(writing: Writing) -> None:
    """Room for two: the third waits until the first has ended."""
    for run in ("first", "second", "third"):
        submit(writing, run)
    for run in ("first", "second"):
        start(writing, run)
    end(writing, "first")
    start(writing, "third")
    end(writing, "second")
    end(writing, "third")


def write_policy(folder: Path, name: str = "strict", **document: Any) -> Path:
    """A policy document; JSON is YAML too."""
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"policy": name, **document}))
    return path


NOBODY: dict[str, Any] = {
    "rules": [{"name": "nobody", "when": "job.gpus >= 1", "say": "not today", "mode": "block"}]
}
