from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from building import Hall, a_facility, a_policy, a_site, adopted
from wattline import engines
from wattline.engines import Launch, LocalEngine, Result
from wattline.live import Home, Meters
from wattline.live.attempts import Attempts
from wattline.live.clouds import CloudFiles
from wattline.release import KeptGoods, bundle_source, describe_source
from wattline.spec import read_pipeline
from wattline.state import AttemptEnded, CheckpointSaved, Event, Progressed, RunSubmitted, requests_of
from wattline.store import ObjectStore
from wattline.telemetry import EmulatedFacility

_ATTEMPT = "r1/train/1"


class Begun:
    """A training of eight GPUs that has just begun at second 1000."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home").ensure()
        objects = ObjectStore(self.home.objects)
        folder = root / "pipeline"
        folder.mkdir()
        phase = {"run": "true", "resources": {"gpus": 8}, "restart": {"max": 5}}
        head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q"}
        (folder / "wattline.yaml").write_text(json.dumps(head | {"phases": {"train": phase}}))
        bundle = bundle_source(folder, objects)
        kept = objects.put_file(folder / "wattline.yaml")
        facility = a_facility(a_site(telemetry="emulated"))
        self.hall = Hall(facility, a_policy(), 1000.0)
        self.hall.fold(
            adopted(1000.0),
            RunSubmitted(
                at=1000.0,
                run="r1",
                pipeline="p",
                project="q",
                jobs=requests_of(read_pipeline(folder / "wattline.yaml"), "r1"),
                documents=describe_source(str(kept), str(bundle.digest), folder, {}),
            ),
        )
        (action,) = self.hall.decide().actions
        self.engine = LocalEngine()
        self._facility, self._objects = facility, objects
        self.attempts = self.another()
        directory = self.home.attempt("r1", "train", 1)
        launch = Launch(
            attempt=_ATTEMPT,
            epoch=1,
            directory=directory,
            working_directory=directory / "work",
            command="true",
            environment={},
        )
        self.attempts.begin(action, launch)
        self.hall.fold(*self.attempts.tell(engines.Started(attempt=_ATTEMPT, pid=1, at=1000.0), 1000.0))

    def another(self) -> Attempts:
        """As of a process that was started now."""
        return Attempts(
            home=self.home,
            state=self.hall.state,
            meters=Meters(EmulatedFacility(self._facility, (), 0, 1000.0), self.engine),
            goods=KeptGoods(self._objects),
            clouds=CloudFiles(self.home, self.hall.state),
        )

    def report(self, at: float, /, **said: object) -> list[Event]:
        return self.attempts.tell(engines.Reported(attempt=_ATTEMPT, report=said, at=at), at)

    def end(self, reason: Any, wall_seconds: float, *, at: float, recovered: bool = False) -> AttemptEnded:
        result = Result(
            epoch=1,
            reason=reason,
            code=None,
            signal=None,
            cpu_seconds=0.0,
            wall_seconds=wall_seconds,
            started_at=1000.0,
            ended_at=at,
            message="so it was",
        )
        ended = self.attempts.end(_ATTEMPT, result, at, recovered=recovered)()
        assert isinstance(ended, AttemptEnded)
        return ended


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    begun = Begun(tmp_path)
    yield begun
    begun.engine.close()


def test_progress_is_told_once_a_second_and_at_the_last_step(begun: Begun) -> None:
    told = [
        event.step
        for tenth in range(25)
        for event in begun.report(1001.0 + tenth / 10, kind="step", step=tenth, total=24)
        if isinstance(event, Progressed)
    ]
    assert told == [0, 10, 20, 24]


def test_a_checkpoint_is_known_by_its_site_and_digest(begun: Begun) -> None:
    (saved,) = begun.report(1001.0, kind="checkpoint", step=7, digest="ab" * 32, bytes=123, seconds=0.5)
    assert isinstance(saved, CheckpointSaved)
    assert (saved.step, saved.site, saved.digest) == (7, "zurich", "ab" * 32)
    assert (saved.size_bytes, saved.seconds) == (123, 0.5)


@pytest.mark.parametrize(
    "said",
    [{"kind": "step"}, {"kind": "checkpoint", "step": "7"}, {"kind": "resumed", "step": -1}, {"kind": "?"}],
)
def test_what_makes_no_sense_is_not_told(begun: Begun, said: dict[str, object]) -> None:
    assert begun.report(1001.0, **said) == []


def test_an_attempt_that_is_not_here_is_not_listened_to(begun: Begun) -> None:
    started = engines.Started(attempt="r0/train/1", pid=1, at=1.0)
    assert begun.attempts.tell(started, 1.0) == []


def test_one_that_is_found_again_is_not_told_to_have_begun_twice(begun: Begun) -> None:
    later, again = begun.another(), engines.Started(attempt=_ATTEMPT, pid=1, at=1000.0)
    later.adopt(begun.hall.state.jobs["r1/train"], begun.home.attempt("r1", "train", 1))
    assert later.tell(again, 1010.0) == []


def test_an_attempt_pays_for_the_time_it_ran(begun: Begun) -> None:
    assert begun.end("lease-lost", 900.0, at=1900.0).usage.gpu_hours == pytest.approx(8 * 0.25)


def test_an_attempt_that_was_lost_does_not_pay_for_the_time_nobody_looked(begun: Begun) -> None:
    begun.hall.fold(*begun.report(1900.0, kind="step", step=1))  # the last that was heard
    ended = begun.end("lost", 86400.0, at=1000.0 + 86400.0, recovered=True)
    assert ended.ending == "lost"
    assert ended.usage.gpu_hours == pytest.approx(8 * 0.25)


def test_what_was_said_while_nobody_looked_on_is_told_with_the_end(begun: Begun) -> None:
    begun.hall.fold(*begun.report(1001.0, kind="step", step=3, total=150))
    said: list[dict[str, object]] = [{"kind": "step", "step": step, "total": 150} for step in range(1, 151)]
    said.insert(-1, {"kind": "checkpoint", "step": 149, "bytes": 8})
    directory = begun.home.attempt("r1", "train", 1)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "reports.jsonl").write_text("\n".join([*map(json.dumps, said), '{"kind": "ste']))
    os.utime(directory / "reports.jsonl", (1200.0, 1200.0))
    events = begun.another().last_words(begun.hall.job(), directory, 2000.0)
    assert [(type(event).__name__, event.at) for event in events] == [
        ("Progressed", 1200.0),
        ("CheckpointSaved", 1200.0),
    ]
    begun.hall.fold(*events)
    job = begun.hall.job()
    assert (job.step, None if job.saved is None else job.saved.step) == (150, 149)
    assert begun.another().last_words(begun.hall.job(), directory, 2000.0) == []
    assert begun.another().last_words(begun.hall.job(), directory / "gone", 2000.0) == []
