"""Are a run's checkpoints also where its owner wanted them?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import LocalStore, list_checkpoints, save, verify
from wattline.live import Home, find_lacking
from wattline.live.replicas import Replicas, local_stores
from wattline.state import Job, JobRequest, JobState, Noticed
from wattline.state.job import Saved

REQUEST = JobRequest(job="r1/train", run="r1", checkpoints=True, replicate_to=("oslo", "zurich"))
JOB = Job(request=REQUEST, state=JobState.RUNNING, submitted_at=0.0, since=0.0, saved=Saved(1, 0.0, "zurich"))


class Hall:
    """Two sites with a link whose rate a test sets."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.bytes_per_second: float | None = 1e8
        self.replicas = Replicas(local_stores(self.home), lambda origin, target: self.bytes_per_second)

    def store(self, site: str) -> LocalStore:
        return LocalStore(self.home.checkpoints(site, "r1", "train"))

    def save(self, step: int, keep: int | None = None) -> None:
        numbers = np.random.default_rng(step).bytes(100_000)
        save(self.store("zurich"), np.frombuffer(numbers, np.uint8), step=step, epoch=1, keep=keep)
        self.replicas.saved(JOB, "zurich")

    def settle(self) -> list[Noticed]:
        told = []
        deadline = time.monotonic() + 30
        while True:
            told += [event for event in self.replicas.poll(0.0) if isinstance(event, Noticed)]
            if not self.replicas.is_busy((JOB.id,)):
                return told
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    hall = Hall(tmp_path)
    yield hall
    hall.replicas.close()


def test_what_is_saved_here_is_soon_there_and_nothing_is_said(hall: Hall) -> None:
    for step in (1, 2, 3):
        hall.save(step)
    assert hall.replicas.is_busy(("r1/train",))
    assert not hall.replicas.is_busy(("r1/eval",))
    assert "oslo lacks step-00000003.e1" in find_lacking(hall.home, JOB)
    assert hall.settle() == []
    assert [entry.step for entry in list_checkpoints(hall.store("oslo"))] == [3, 2, 1]
    for entry in list_checkpoints(hall.store("oslo")):
        verify(hall.store("oslo"), entry.name)
    assert find_lacking(hall.home, JOB) == ""


def test_the_other_site_keeps_as_many_as_the_first(hall: Hall) -> None:
    for step in range(1, 6):
        hall.save(step, keep=2)
        hall.settle()
    assert [entry.step for entry in list_checkpoints(hall.store("oslo"))] == [5, 4]


def test_while_the_link_carries_nothing_that_is_said_once_and_made_good_later(hall: Hall) -> None:
    hall.save(1)
    hall.settle()
    hall.bytes_per_second = 0.0
    hall.save(2)
    told = hall.settle() + hall.settle()
    assert [each.say for each in told] == ["100 kB are not at oslo: the link from zurich carries nothing now"]
    assert list_checkpoints(hall.store("oslo"))[0].step == 1
    hall.bytes_per_second = None
    assert [each.say for each in hall.settle()] == ["all its checkpoints are at oslo now"]
    assert list_checkpoints(hall.store("oslo"))[0].step == 2


def test_a_disk_that_takes_nothing_is_told(hall: Hall) -> None:
    place = hall.home.checkpoints("oslo", "r1", "train")
    place.parent.mkdir(parents=True)
    place.touch()
    hall.save(1)
    (told,) = hall.settle()
    assert "are not at oslo" in told.say


def test_a_job_that_wants_no_replicas_lacks_none(hall: Hall) -> None:
    hall.save(1)
    alone = Job(
        request=JobRequest(job="r1/train", run="r1"), state=JobState.RUNNING, submitted_at=0.0, since=0.0
    )
    assert find_lacking(hall.home, alone) == ""
