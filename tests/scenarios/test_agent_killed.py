"""Agents and servers are killed while real training runs; it goes on, is found again, and counts once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.fleet_server import QUICK
from bench.wan_cut import SITES, TRAIN, Fleet, by_hand, model_of

from wattline.state import AttemptEnded, Job, JobState
from wattline.store.steps import read_steps

STEPS = 1200


@pytest.fixture
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, timing=request.param)
    yield fleet
    fleet.close()


@pytest.fixture
def hurry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Training takes its time until this file is there: it does not end before all has been seen."""
    file, nap = tmp_path / "hurry", 'time.sleep(settings["seconds"])'
    assert nap in TRAIN
    held = TRAIN.replace(nap, f"os.path.exists({str(file)!r}) or {nap}")
    monkeypatch.setattr("bench.wan_cut.TRAIN", f"import os\n{held}")
    return file


def running_at(fleet: Fleet, job: str) -> str:
    fleet.until(lambda: (known := fleet.job(job)) is not None and known.step > 5, "training")
    known = fleet.job(job)
    assert known is not None
    assert known.place is not None
    return known.place.site


def ended(fleet: Fleet, job: str) -> Job:
    fleet.until(lambda: (now := fleet.job(job)) is not None and now.state is JobState.SUCCEEDED, "its end")
    known = fleet.job(job)
    assert known is not None
    return known


def ends_told(fleet: Fleet, job: str) -> int:
    with fleet.session() as session:
        records = [record for _, record in read_steps(session.store.journal)]
    events = [event for record in records for event in record.events]
    return sum(isinstance(event, AttemptEnded) and event.job == job for event in events)


@pytest.mark.parametrize("fleet", ["patient"], indirect=True)
def test_killing_agent_and_server_leaves_training_alone_and_its_result_counts_once(
    fleet: Fleet, hurry: Path
) -> None:
    fleet.until_joined()
    job = fleet.submit(STEPS, "stop")
    site = running_at(fleet, job)
    living = fleet.living(job)
    fleet.kill(site)
    time.sleep(1.0)
    assert fleet.living(job) == living
    fleet.start(site)
    fleet.kill("hub")
    time.sleep(0.5)
    fleet.start("hub")
    hurry.touch()
    last = ended(fleet, job)
    assert last.attempt == 1
    assert ends_told(fleet, job) == 1
    assert model_of(fleet, job, last) == by_hand(STEPS)


@pytest.mark.parametrize("fleet", ["quick"], indirect=True)
def test_without_its_agent_training_ends_itself_and_begins_again_elsewhere(fleet: Fleet, hurry: Path) -> None:
    fleet.until_joined()
    job = fleet.submit(STEPS, "stop")
    site = running_at(fleet, job)
    fleet.until(lambda: bool((known := fleet.job(job)) and known.copies), "a copy at the other site")
    fleet.kill(site)
    killed_at = time.monotonic()
    fleet.until(lambda: not any(one.startswith(site) for one in fleet.living(job)), "the fence")
    assert time.monotonic() - killed_at < QUICK.surely_over_seconds + 5.0
    hurry.touch()
    last = ended(fleet, job)
    assert last.attempt == 2
    assert last.place is not None
    assert last.place.site == next(other for other in SITES if other != site)
    assert model_of(fleet, job, last) == by_hand(STEPS)
