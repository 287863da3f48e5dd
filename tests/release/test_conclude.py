from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from building import Hall, a_facility, a_policy, a_site, adopted
from wattline.live import Home
from wattline.release import (
    KeptGoods,
    Shelf,
    bundle_source,
    describe_source,
    is_ready,
    judge_run,
    load_manifest,
    release_run,
)
from wattline.spec import read_pipeline
from wattline.state import AttemptEnded, Ending, Event, Released, RunConcluded, RunSubmitted, requests_of
from wattline.store import ObjectStore


class Ended:
    """A run of one phase that has left these results, and everything that is needed to conclude it."""

    def __init__(self, root: Path, results: dict[str, str], ending: Ending, **more: Any) -> None:
        self.home = Home(root / "home").ensure()
        self.objects = ObjectStore(self.home.objects)
        self.goods = KeptGoods(self.objects)
        self.shelf = Shelf(self.home.releases, self.objects)
        folder, out = root / "pipeline", root / "out"
        for place in (folder, out):
            place.mkdir()
        for name, text in results.items():
            (out / name).write_text(text)
        head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q"}
        document = head | {"phases": {"train": {"run": "true", "restart": {"max": 0}}}} | more
        (folder / "wattline.yaml").write_text(json.dumps(document))
        bundle = bundle_source(folder, self.objects)
        kept = self.objects.put_file(folder / "wattline.yaml")
        self.hall = Hall(a_facility(a_site()), a_policy(), 1000.0)
        digest = self.objects.put_bytes(b"a document")
        self.hall.fold(
            adopted(1000.0, facility=str(digest), policy=str(digest)),
            RunSubmitted(
                at=1000.0,
                actor="ada",
                project="q",
                run="r1",
                pipeline="p",
                jobs=requests_of(read_pipeline(folder / "wattline.yaml"), "r1"),
                documents=describe_source(str(kept), str(bundle.digest), folder, {}),
            ),
        )
        self.hall.obey(self.hall.decide())
        outputs = self.goods.pack(out) if ending is Ending.SUCCEEDED else ""
        self.hall.fold(
            AttemptEnded(at=1010.0, job="r1/train", attempt=1, ending=ending, say="so", outputs=outputs)
        )

    def judge(self, at: float) -> Event:
        state = self.hall.state
        return judge_run(
            state,
            state.runs["r1"],
            home=self.home,
            objects=self.objects,
            goods=self.goods,
            decisions=None,
            at=at,
        )

    def release(self, at: float) -> list[Event]:
        state = self.hall.state
        return release_run(
            state,
            state.runs["r1"],
            home=self.home,
            objects=self.objects,
            goods=self.goods,
            shelf=self.shelf,
            at=at,
        )

    def conclude(self) -> tuple[str, str]:
        self.hall.fold(self.judge(1020.0))
        self.hall.fold(*self.release(1021.0))
        run = self.hall.state.runs["r1"]
        return run.status, run.say


_RELEASE = {"name": "p", "to": "staging"}
_GOOD = {"model.bin": "weights", "metrics.json": '{"loss": 1}'}


def test_a_crash_between_judging_and_releasing_leads_to_one_release(tmp_path: Path) -> None:
    ended = Ended(tmp_path, _GOOD, Ending.SUCCEEDED, gates=["loss <= 2"], release=_RELEASE)
    state = ended.hall.state
    assert is_ready(state, state.runs["r1"])
    ended.hall.fold(ended.judge(1020.0))
    ended.release(1021.0)  # and then the lights go out: nothing of it was journaled
    again = ended.release(2000.0)
    ended.hall.fold(*again)
    ended.hall.fold(*again)
    released, concluded = again
    assert isinstance(released, Released)
    assert isinstance(concluded, RunConcluded)
    assert (released.number, concluded.status) == (1, "succeeded")
    assert [move.number for move in ended.shelf.history("p", "staging")] == [1]
    assert list(state.releases) == ["p:staging"]
    assert not is_ready(state, state.runs["r1"])


def test_a_crash_before_the_judgement_was_journaled_leads_to_the_same_manifest(tmp_path: Path) -> None:
    ended = Ended(tmp_path, _GOOD, Ending.SUCCEEDED, gates=["loss <= 2"])
    ended.hall.fold(ended.judge(1020.0))
    first = ended.hall.state.runs["r1"].manifest
    ended.hall.fold(ended.judge(2000.0))
    assert ended.hall.state.runs["r1"].manifest == first
    subjects = load_manifest(first, ended.objects).subject
    assert {subject.name for subject in subjects} == set(_GOOD)


@pytest.mark.parametrize(
    ("results", "ending", "status", "said"),
    [
        (_GOOD | {"metrics.json": '{"loss": 3}'}, Ending.SUCCEEDED, "gates failed", "loss <= 2: loss = 3"),
        ({"model.bin": "w"}, Ending.SUCCEEDED, "gates unknown", "loss <= 2: no phase wrote out/metrics.json"),
        (_GOOD, Ending.FAILED, "failed", "train: so"),
        (_GOOD, Ending.TIMED_OUT, "failed", "train: so"),
    ],
)
def test_only_what_passed_is_released(
    tmp_path: Path, results: dict[str, str], ending: Ending, status: str, said: str
) -> None:
    ended = Ended(tmp_path, results, ending, gates=["loss <= 2"], release=_RELEASE)
    assert ended.conclude() == (status, said)
    assert ended.shelf.current("p", "staging") is None
    assert ended.hall.state.runs["r1"].manifest


def test_what_needs_approval_waits_for_it(tmp_path: Path) -> None:
    ended = Ended(tmp_path, _GOOD, Ending.SUCCEEDED, release=_RELEASE | {"approval": "required"})
    assert ended.conclude() == (
        "awaiting approval",
        "`wattline promote r1 --approved-by NAME` releases it",
    )
    assert ended.shelf.current("p", "staging") is None


def test_a_run_that_made_nothing_cannot_be_released_and_says_so(tmp_path: Path) -> None:
    ended = Ended(tmp_path, {}, Ending.SUCCEEDED, release=_RELEASE)
    status, said = ended.conclude()
    assert status == "not released"
    assert "the run made no artifacts" in said
