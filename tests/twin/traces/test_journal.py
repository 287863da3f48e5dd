from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from wattline.errors import DocumentError, UnavailableError
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    JobRequest,
    RunSubmitted,
)
from wattline.store import Store, open_store
from wattline.store.steps import StepJournal
from wattline.twin.traces import Flawed, TraceJob, read_trace

NEVER_RAN = "it never ran, so nobody knows for how long it would"
NOT_ENDED = "it had not ended when this was recorded"


class Diary:
    """A journal, written an event at a time."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.home = home
        self.store: Store = open_store(home)
        assert self.store.lease.try_acquire("diary", ttl_seconds=60)
        self._steps = StepJournal(self.store.journal)

    def write(self, *events: Event) -> None:
        for event in events:
            self._steps.append([event], lambda: "digest", Decision(at=event.at))

    def submit(self, at: float, run: str, *jobs: JobRequest) -> None:
        self.write(RunSubmitted(at=at, run=run, pipeline="p", project="nlp", jobs=jobs))


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path / "50%25 of a home #1?")
    with diary.store:
        yield diary


def a_job(name: str = "r1/train", gpus: int = 4, after: tuple[str, ...] = (), **asked: float) -> JobRequest:
    run, _, phase = name.partition("/")
    return JobRequest(
        job=name,
        run=run,
        phase=phase,
        project="nlp",
        model="lm",
        gpus=gpus,
        cpus=asked.get("cpus", 1.0),
        after=after,
        max_duration_seconds=asked.get("most"),
    )


def started(at: float, job: str = "r1/train", attempt: int = 1) -> AttemptStarted:
    return AttemptStarted(at=at, job=job, attempt=attempt)


def ended(
    at: float, job: str = "r1/train", attempt: int = 1, ending: Ending = Ending.SUCCEEDED
) -> AttemptEnded:
    return AttemptEnded(at=at, job=job, attempt=attempt, ending=ending)


def saved(at: float, job: str = "r1/train", attempt: int = 1) -> CheckpointSaved:
    return CheckpointSaved(at=at, job=job, attempt=attempt, step=1, site="here")


def test_a_job_arrives_when_submitted_and_works_as_long_as_it_ran(diary: Diary) -> None:
    diary.submit(1000.0, "r1", a_job(most=900.0, cpus=8.0))
    diary.write(started(1100.0), ended(1160.0))
    diary.submit(1500.0, "r2", a_job("r2/train", gpus=1))
    diary.write(started(1600.0, "r2/train"), ended(1605.0, "r2/train", ending=Ending.FAILED))

    trace = read_trace(diary.home)
    assert (trace.kind, trace.refused) == ("journal", ())
    assert list(trace.jobs) == [
        TraceJob(
            name="r1/train",
            arrives_seconds=0.0,
            gpus=4,
            work_seconds=60.0,
            project="nlp",
            application="lm",
            limit_seconds=900.0,
            cpus=8.0,
        ),
        TraceJob(
            name="r2/train", arrives_seconds=500.0, gpus=1, work_seconds=5.0, project="nlp", application="lm"
        ),
    ]


def test_of_an_attempt_that_another_followed_only_what_was_saved_counts(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job())
    diary.write(started(10.0), saved(30.0), saved(50.0), ended(80.0, ending=Ending.LOST))
    diary.write(started(100.0, attempt=2), ended(130.0, attempt=2, ending=Ending.FAILED))
    diary.write(started(200.0, attempt=3), saved(204.0, attempt=3), ended(205.0, attempt=3))

    assert read_trace(diary.home).jobs[0].work_seconds == (50 - 10) + (205 - 200)


def test_what_is_told_twice_or_too_late_changes_nothing(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job())
    diary.submit(500.0, "r1", a_job())
    diary.write(started(10.0), started(20.0), ended(80.0), saved(90.0), ended(95.0))

    (job,) = read_trace(diary.home).jobs
    assert (job.arrives_seconds, job.work_seconds) == (0.0, 70.0)


def test_a_job_arrives_when_the_phase_before_it_has_ended(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job("r1/prepare"), a_job("r1/train", after=("r1/prepare",)), a_job("r1/other"))
    for job, begins, ends in [("r1/prepare", 5, 30), ("r1/other", 6, 7), ("r1/train", 40, 90)]:
        diary.write(started(begins, job), ended(ends, job))

    assert [(job.name, job.arrives_seconds) for job in read_trace(diary.home).jobs] == [
        ("r1/prepare", 0.0),
        ("r1/other", 0.0),
        ("r1/train", 30.0),
    ]


def test_jobs_whose_length_nobody_knows_are_counted_with_their_record(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job())
    diary.write(started(1.0), ended(9.0))
    names = ["never", "not-started", "running", "paused", "lost", "no-gpu"]
    diary.submit(20.0, "r2", *(a_job(f"r2/{name}", gpus=0 if name == "no-gpu" else 1) for name in names))
    diary.write(ended(21.0, "r2/not-started", ending=Ending.NOT_STARTED))
    for name in names[2:]:
        diary.write(started(22.0, f"r2/{name}"))
    diary.write(ended(30.0, "r2/paused", ending=Ending.PAUSED), ended(30.0, "r2/lost", ending=Ending.LOST))
    diary.write(ended(30.0, "r2/no-gpu"))

    trace = read_trace(diary.home)
    assert [job.name for job in trace.jobs] == ["r1/train"]
    assert trace.refused == (
        Flawed(line=4, rule=NEVER_RAN, value="r2/never"),
        Flawed(line=4, rule=NEVER_RAN, value="r2/not-started"),
        Flawed(line=4, rule=NOT_ENDED, value="r2/running"),
        Flawed(line=4, rule=NOT_ENDED, value="r2/paused"),
        Flawed(line=4, rule=NOT_ENDED, value="r2/lost"),
        Flawed(line=4, rule="no GPU asked for", value="0"),
    )


def test_a_journal_that_somebody_writes_is_read_and_left_as_it_is(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job())
    diary.write(started(1.0), ended(9.0))
    before = diary.store.journal.last_seq()

    assert len(read_trace(diary.home).jobs) == 1
    assert len(read_trace(diary.home / "wattline.db").jobs) == 1

    diary.submit(10.0, "r2", a_job("r2/train"))
    assert diary.store.journal.verify() == before + 1


def test_a_journal_that_nobody_has_open_is_not_changed_by_a_byte(diary: Diary) -> None:
    diary.submit(0.0, "r1", a_job())
    diary.write(started(1.0), ended(9.0))
    diary.store.close()
    copy = diary.home / "of-may.backup"
    (diary.home / "wattline.db").rename(copy)
    before = copy.read_bytes()

    trace = read_trace(copy)
    assert (trace.name, trace.kind, len(trace.jobs)) == ("of-may", "journal", 1)
    assert copy.read_bytes() == before
    assert [path.name for path in diary.home.parent.iterdir()] == [diary.home.name]


def test_a_journal_without_jobs_is_told(diary: Diary) -> None:
    with pytest.raises(DocumentError, match="this journal trace has no jobs"):
        read_trace(diary.home)


def test_a_folder_without_a_journal_is_told_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no such journal"):
        read_trace(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"some text\n" * 100, Random(0).randbytes(5000), gzip.compress(b"x", mtime=0)],
    ids=["empty", "text", "noise", "gzip"],
)
def test_a_file_that_only_has_the_name_of_a_journal_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "wattline.db"
    path.write_bytes(content)

    with pytest.raises(UnavailableError, match="database"):
        read_trace(path)
    assert path.read_bytes() == content
