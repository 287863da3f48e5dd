"""The run command: from words on the command line to an exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from wattline.cli.narrator import Narrator
from wattline.cli.remote import say_here
from wattline.cli.running import INTERRUPTED_EXIT_CODE, Asking, carry, find_resumable, submit
from wattline.cli.summary_text import show_run
from wattline.errors import UsageError
from wattline.plane.session import open_session
from wattline.plane.summary import describe_run

EXIT_CODES = {"succeeded": 0, "awaiting approval": 0, "gates unknown": 3}


def run_pipeline(
    *,
    pipeline: Path,
    facility: str | None,
    policy: str | None,
    faults: Path | None,
    resume: bool,
    run_id: str | None,
    seed: int,
    approved_by: str | None,
    as_json: bool,
) -> int:
    if run_id is not None and not resume:
        raise UsageError("--run names a run to resume", hint="add --resume, or leave --run out")
    asking = Asking(
        pipeline=pipeline,
        facility=facility,
        policy=policy,
        faults=faults,
        seed=seed,
        approved_by=approved_by,
    )
    say_here()
    session = open_session()
    try:
        with Narrator(session.home) as narrator:
            unfinished = find_resumable(session, asking, run_id) if resume else None
            event = submit(session, asking, narrator) if unfinished is None else None
            name = event.run if event is not None else unfinished.run if unfinished is not None else ""
            ended = unfinished is not None and unfinished.ended_at is not None
            interrupted = 0 if ended else carry(session, name, event, asking, narrator)
        run = session.state.runs.get(name) if session.state is not None else None
        if run is None:  # interrupted before whoever conducts this state folder took it in
            sys.stderr.write(f"{name} was handed over; `wattline status` shows when it is taken in\n")
            return INTERRUPTED_EXIT_CODE
        if as_json:
            json.dump(describe_run(session, run), sys.stdout, indent=2, default=str)
            sys.stdout.write("\n")
        else:
            show_run(Console(highlight=False), session, run)
        if run.ended_at is None and interrupted:
            sys.stderr.write(f"paused; `wattline run --resume --run {name}` goes on\n")
            return INTERRUPTED_EXIT_CODE
        return EXIT_CODES.get(run.status, 1)
    finally:
        session.close()
