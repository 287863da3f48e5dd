"""Which run or job did somebody mean, and who writes to its journal now?"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wattline.errors import UnavailableError, UsageError
from wattline.live import Home
from wattline.plane.session import Session, open_session
from wattline.spec.nearest import nearest
from wattline.state import Job, Run, State
from wattline.store import LeaseInfo
from wattline.store.opening import DATABASE_NAME


class UnknownError(UsageError):
    """Somebody named what is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the journal says, as of a time: now while somebody writes it, else its last word."""

    session: Session
    state: State
    writer: LeaseInfo | None
    at: float


@contextmanager
def open_view() -> Iterator[View]:
    """Read the state folder; nothing is written, and no lease is needed."""
    with open_if_any() as view:
        if view is None:
            raise UnavailableError(
                f"nothing was ever run in {Home.find().root}",
                hint="`wattline run` begins; WATTLINE_HOME names another folder",
            )
        yield view


@contextmanager
def open_if_any() -> Iterator[View | None]:
    """The same, or None where nothing was ever run; asking must not make a database."""
    home = Home.find()
    if not os.environ.get("WATTLINE_DATABASE") and not (home.root / DATABASE_NAME).is_file():
        yield None
        return
    session = open_session(home)
    try:
        if session.state is None:
            yield None
            return
        writer = session.store.lease.current()
        at = session.state.at if writer is None else max(time.time(), session.state.at)
        yield View(session=session, state=session.state, writer=writer, at=at)
    finally:
        session.close()


def newest_first(state: State) -> list[Run]:
    """By when they came, whatever the clock said then: it may have been set back."""
    return [*reversed(state.runs.values())]


def find_run(state: State, name: str | None) -> Run:
    """The run of this name; the newest where none is named."""
    if name is None:
        return _newest(state)
    if name not in state.runs:
        raise unknown("run", name, [run.run for run in newest_first(state)])
    return state.runs[name]


def find_jobs(state: State, name: str | None) -> tuple[Run, tuple[Job, ...]]:
    """`run/phase`, a run, or a phase of the newest run; all jobs of the newest where nothing is named."""
    if name is None or name in state.runs:
        run = find_run(state, name)
        return run, tuple(state.jobs[job] for job in run.jobs)
    newest = _newest(state)
    job = state.jobs.get(name)
    if job is None:
        job = next((state.jobs[each] for each in newest.jobs if state.jobs[each].request.phase == name), None)
    if job is None or job.request.run not in state.runs:
        phases = [state.jobs[each].request.phase for each in newest.jobs]
        raise unknown("job", name, [*phases, *(run.run for run in newest_first(state)), *state.jobs])
    return state.runs[job.request.run], (job,)


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownError:
    """An error that names what was most likely meant."""
    names = list(known)
    close = nearest(name, names)
    hint = f"did you mean {close}?" if close else f"known here: {', '.join(names[:5]) or 'none yet'}"
    return UnknownError(f"{what} {name[:100]!r} is not known here", hint=hint)


def _newest(state: State) -> Run:
    runs = newest_first(state)
    if not runs:
        raise UnavailableError("no run was ever submitted here", hint="`wattline run` submits one")
    return runs[0]
