"""Our own journal as a trace: what was asked of this control plane, and how long did it run?

A job arrives when it could first run: when its run was submitted, or when the last phase before it had
succeeded. Its work is what it did for good: of an attempt that another one followed, the time up to its
newest checkpoint, from where the next one went on; of the last attempt all of it. Where power was capped, the
time that this cost is still in there.

A job that never ran, or had not ended, is refused: nobody knows how long it takes, and the longest it may
take is no guess at that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from wattline.errors import UnavailableError
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    JobRequest,
    RunSubmitted,
)
from wattline.store import Journal
from wattline.store.steps import read_steps
from wattline.twin.traces.flaws import FlawError, check_gpus
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.lines import shown

_MAGIC = b"SQLite format 3\0"
_FINAL = frozenset({Ending.SUCCEEDED, Ending.FAILED, Ending.TIMED_OUT, Ending.STOPPED})


def find_journal(path: Path) -> Path | None:
    """The database that a folder or a file is; None: it is something else.

    A database that somebody has open is told by the index file beside it, without touching it: opening and
    closing it by other means than SQLite would drop this process's locks on it.
    """
    if path.is_dir():
        from wattline.store.opening import DATABASE_NAME

        return path / DATABASE_NAME
    if path.suffix == ".db" or path.with_name(f"{path.name}-shm").exists():
        return path
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return path if file.read(len(_MAGIC)) == _MAGIC else None
    except OSError as error:
        raise UnavailableError(f"{shown(path)}: cannot be read: {error.strerror or error}") from error


def take_journal(database: Path, gathering: Gathering) -> None:
    """Take every job of the journal; the database is opened so that nothing can be written to it."""
    if not database.is_file():
        raise UnavailableError(
            f"{shown(database)}: there is no such journal", hint="name a trace file, or a state folder"
        )
    from wattline.store import open_store  # who replays another trace need not wait for a database library

    # Read twice as a URL, by SQLAlchemy and then by SQLite: a `?` in a path must not end it for either.
    address = quote(quote(str(database.absolute())))
    with open_store(f"sqlite:///file:{address}?mode=ro&uri=true") as store:
        take_records(store.journal, gathering)


def take_records(journal: Journal, gathering: Gathering) -> None:
    """Take every job of a journal that is open, in whichever database."""
    stories = _read_stories(journal)
    for story in stories.values():
        try:
            _take_story(story, stories, gathering)
        except FlawError as flaw:
            gathering.refuse(story.record, flaw)


@dataclass(slots=True)
class _Story:
    """What the journal tells of one job."""

    record: int
    request: JobRequest
    submitted_at: float
    attempt: int = -1
    started_at: float | None = None
    saved_at: float | None = None  # by this attempt
    ended_at: float | None = None
    ending: Ending | None = None
    kept_seconds: float = 0.0  # of the attempts before

    def hear(self, event: AttemptStarted | CheckpointSaved | AttemptEnded) -> None:
        if isinstance(event, AttemptStarted) and event.attempt > self.attempt:
            if self.started_at is not None and self.saved_at is not None:
                self.kept_seconds += self.saved_at - self.started_at
            self.attempt, self.started_at = event.attempt, event.at
            self.saved_at = self.ended_at = self.ending = None
        elif event.attempt == self.attempt and self.ended_at is None:
            if isinstance(event, CheckpointSaved):
                self.saved_at = event.at
            elif isinstance(event, AttemptEnded):
                self.ended_at, self.ending = event.at, event.ending


def _read_stories(journal: Journal) -> dict[str, _Story]:
    stories: dict[str, _Story] = {}
    for record, step in read_steps(journal):
        for event in step.events:
            _tell(stories, record, event)
    return stories


def _tell(stories: dict[str, _Story], record: int, event: Event) -> None:
    if isinstance(event, RunSubmitted):
        for request in event.jobs:
            # As the control plane does: a run that is there already is not submitted again.
            stories.setdefault(request.job, _Story(record, request, event.at))
    elif isinstance(event, AttemptStarted | CheckpointSaved | AttemptEnded) and event.job in stories:
        stories[event.job].hear(event)


def _take_story(story: _Story, stories: dict[str, _Story], gathering: Gathering) -> None:
    request = story.request
    check_gpus(request.gpus)
    if story.started_at is None:
        raise FlawError("it never ran, so nobody knows for how long it would", request.job)
    if story.ended_at is None or story.ending not in _FINAL:
        raise FlawError("it had not ended when this was recorded", request.job)
    before = [stories[name].ended_at or 0.0 for name in request.after if name in stories]
    gathering.take(
        story.record,
        max([story.submitted_at, *before]),
        request.gpus,
        story.kept_seconds + story.ended_at - story.started_at,
        request.project,
        name=request.job,
        application=request.model,
        limit_seconds=request.max_duration_seconds or 0.0,
        cpus=request.cpus,
    )
