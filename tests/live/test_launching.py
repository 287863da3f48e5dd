from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from wattline.checkpoint import LocalStore, StaleEpochError, list_checkpoints, save
from wattline.checkpoint.stores.below import BelowStore
from wattline.engines import Launch
from wattline.errors import RefusedError, UnavailableError
from wattline.live import Home, hash_data
from wattline.live.launching import UnreachedError, bring_checkpoint, prepare
from wattline.release import KeptGoods, bundle_source, describe_source
from wattline.spec import read_pipeline
from wattline.state import (
    Action,
    ActionKind,
    Ending,
    Job,
    JobState,
    Outcome,
    Past,
    Place,
    Verdict,
    requests_of,
)
from wattline.store import ObjectStore


class Site:
    """A home with a pipeline of one phase in it, ready to be laid out."""

    def __init__(self, root: Path, phase: dict[str, Any], **more: Any) -> None:
        self.home = Home(root / "home").ensure()
        self.folder = root / "pipeline"
        self.folder.mkdir(exist_ok=True)
        head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q"}
        document = head | {"phases": {"train": {"run": "python train.py"} | phase}} | more
        (self.folder / "wattline.yaml").write_text(json.dumps(document))
        (self.folder / "train.py").write_text("print('trained')")
        self.objects = ObjectStore(self.home.objects)
        self.goods = KeptGoods(self.objects)
        pipeline = read_pipeline(self.folder / "wattline.yaml")
        data = {one.path: hash_data(self.folder / one.path) for one in pipeline.data}
        bundle = bundle_source(self.folder, self.objects, exclude=list(data))
        kept = self.objects.put_file(self.folder / "wattline.yaml")
        self.documents = describe_source(str(kept), str(bundle.digest), self.folder, data)
        (request,) = requests_of(pipeline, "r1")
        self.job = Job(request=request, state=JobState.STARTING, submitted_at=0.0, since=0.0)

    def lay_out(
        self, attempt: int = 1, *, site: str = "here", from_site: str = "", inputs: tuple[str, ...] = ()
    ) -> Launch:
        place = Place(site, ((f"{site}/n1", 0),))
        kind = ActionKind.MIGRATE if from_site else ActionKind.START
        action = Action(
            id=f"a{attempt}", kind=kind, job=self.job.id, attempt=attempt, place=place, from_site=from_site
        )
        source = self.goods.source(self.documents)
        return prepare(self.home, self.goods, source, self.job, action, inputs, None)


def test_a_command_gets_what_it_needs_and_nothing_of_its_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOO_TOKEN", "secret")
    monkeypatch.setenv("NEEDED", "told")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("WATTLINE_TOKEN", "secret")
    monkeypatch.setenv("TZ", "Europe/Zurich")
    checkpoint = {"every": "5s", "keep": 2}
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "params.json").write_text("{}")
    phase = {"checkpoint": checkpoint, "profile": {"cpus": 2.5}}
    launch = Site(tmp_path, phase, params="params.json", secrets=["NEEDED", "ABSENT"]).lay_out(3)
    environment = launch.environment
    assert "secret" not in environment.values()
    assert environment["NEEDED"] == "told"
    assert environment["OMP_NUM_THREADS"] == environment["NUMEXPR_NUM_THREADS"] == "1"
    assert environment["TZ"] == "Europe/Zurich"
    assert (environment["WATTLINE_RUN"], environment["WATTLINE_PHASE"]) == ("r1", "train")
    assert (environment["WATTLINE_EPOCH"], environment["WATTLINE_CPUS"]) == ("3", "2")
    assert environment["WATTLINE_CHECKPOINT_EVERY"] == "seconds:5"
    assert environment["WATTLINE_CHECKPOINT_KEEP"] == "2"
    assert Path(environment["WATTLINE_PARAMS"]).read_text() == "{}"
    assert Path(environment["WATTLINE_OUT"]) == launch.working_directory / "out"
    assert Path(environment["TMPDIR"]).is_relative_to(launch.directory)


def test_a_phase_without_checkpoints_is_not_told_of_any(tmp_path: Path) -> None:
    environment = Site(tmp_path, {}).lay_out().environment
    assert not [name for name in environment if "CHECKPOINT" in name]
    assert "WATTLINE_PARAMS" not in environment


def test_laying_out_twice_is_laying_out_once(tmp_path: Path) -> None:
    site = Site(tmp_path, {})
    first = site.lay_out()
    assert site.lay_out() == first
    assert (first.working_directory / "train.py").read_text() == "print('trained')"


def test_what_earlier_phases_left_is_there(tmp_path: Path) -> None:
    site = Site(tmp_path, {})
    left = tmp_path / "left"
    left.mkdir()
    (left / "tokens.bin").write_bytes(b"tokens")
    launch = site.lay_out(inputs=(site.goods.pack(left),))
    assert (launch.working_directory / "out" / "tokens.bin").read_bytes() == b"tokens"


def test_data_is_linked_to_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "pipeline" / "data").mkdir(parents=True)
    (tmp_path / "pipeline" / "data" / "words.txt").write_text("words")
    site = Site(tmp_path, {}, data=[{"name": "words", "path": "data/words.txt"}])
    linked = site.lay_out().working_directory / "data" / "words.txt"
    assert linked.readlink() == site.folder / "data" / "words.txt"
    (site.folder / "data" / "words.txt").write_text("other words")
    with pytest.raises(RefusedError, match="the run was admitted with"):
        site.lay_out(2)
    (site.folder / "data" / "words.txt").unlink()
    with pytest.raises(UnavailableError, match="does not exist"):
        site.lay_out(3)


def test_a_job_that_moves_finds_its_newest_checkpoint_there_and_fences_the_old_attempt(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, {"checkpoint": {}})
    origin = LocalStore(site.home.checkpoints("there", "r1", "train"))
    for step in (1, 2):
        save(origin, {"weights": np.full(3, step)}, step=step, epoch=1)
    site.lay_out(2, site="here", from_site="there")
    target = LocalStore(site.home.checkpoints("here", "r1", "train"))
    assert [entry.step for entry in list_checkpoints(target)] == [2]
    with pytest.raises(StaleEpochError):
        save(target, {"weights": np.zeros(3)}, step=3, epoch=1)


def test_a_script_that_saves_by_signal_finds_what_it_saved(tmp_path: Path) -> None:
    signals = {"checkpoint": "SIGUSR1", "finish": "SIGINT", "saved_to": "out/state"}
    site = Site(tmp_path, {"signals": signals})
    first = site.lay_out(1)
    assert (first.checkpoint_signal, first.finish_signal) == (signal.SIGUSR1, signal.SIGINT)
    saved = first.working_directory / "out" / "state"
    saved.mkdir()
    (saved / "count").write_text("7")
    second = site.lay_out(2)
    assert (second.working_directory / "out" / "state" / "count").read_text() == "7"
    third = site.lay_out(3)  # the second never ran, but has it: nothing is lost on the way
    assert (third.working_directory / "out" / "state" / "count").read_text() == "7"


def test_what_earlier_attempts_used_of_the_longest_duration_is_gone(tmp_path: Path) -> None:
    site = Site(tmp_path, {"constraints": {"max_duration": "100s"}})
    assert site.lay_out().max_duration_seconds == 100.0
    past = Past(1, None, Ending.PAUSED, 0.0, 70.0, 5)
    site.job = msgspec.structs.replace(site.job, past=(past,))
    assert site.lay_out(2).max_duration_seconds == 30.0
    site.job = msgspec.structs.replace(site.job, past=(past, past))
    assert site.lay_out(3).max_duration_seconds == 1.0


def test_a_folder_of_data_has_one_hash_that_every_file_changes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_text("a")
    (folder / "deep" / "b").write_text("b")
    before = hash_data(folder)
    (folder / "deep" / "b").rename(folder / "deep" / "c")
    assert hash_data(folder) != before
    assert hash_data(folder / "a") == hashlib.sha256(b"a").hexdigest()


def test_a_checkpoint_comes_over_a_link_only_while_it_carries_something(tmp_path: Path) -> None:
    site = Site(tmp_path, {"checkpoint": {}})
    action = Action(
        id="a2",
        kind=ActionKind.MIGRATE,
        job=site.job.id,
        attempt=2,
        place=Place("here", (("here/n1", 0),)),
        from_site="there",
    )
    save(LocalStore(site.home.checkpoints("there", "r1", "train")), {"weights": [1, 2, 3]}, step=7, epoch=1)
    arrived = LocalStore(site.home.checkpoints("here", "r1", "train"))
    source = site.goods.source(site.documents)
    with pytest.raises(UnavailableError, match="carries nothing now"):
        prepare(site.home, site.goods, source, site.job, action, (), 0.0)
    assert list_checkpoints(arrived) == ()
    prepare(site.home, site.goods, source, site.job, action, (), 1e6)
    assert [entry.step for entry in list_checkpoints(arrived)] == [7]


@pytest.mark.parametrize("from_site", ["there", "here"])
def test_what_was_saved_and_cannot_be_had_is_not_begun_anew_without_a_word(
    tmp_path: Path, from_site: str
) -> None:
    """An agent's checkpoints do not lie in the server's home: who moved from there began at step 0 again."""
    site = Site(tmp_path, {"checkpoint": {}})
    with pytest.raises(UnreachedError, match=f"saved at {from_site}, and none can be had"):
        site.lay_out(2, from_site=from_site)
    save(LocalStore(site.home.checkpoints(from_site, "r1", "train")), {"weights": [1]}, step=7, epoch=1)
    assert site.lay_out(2, from_site=from_site).epoch == 2


def test_what_a_save_costs_in_money_is_weighed_where_nobody_said_how_often(tmp_path: Path) -> None:
    site = Site(tmp_path, {"checkpoint": {"every": "auto"}})
    action = Action(
        id="a1", kind=ActionKind.START, job=site.job.id, attempt=1, place=Place("here", (("here/n1", 0),))
    )
    source = site.goods.source(site.documents)
    launch = prepare(site.home, site.goods, source, site.job, action, (), None, 900.0)
    assert "price=900" in launch.environment["WATTLINE_CHECKPOINT_EVERY"]


def test_an_engine_can_show_why_an_attempt_begins(tmp_path: Path) -> None:
    site = Site(tmp_path, {})
    assert site.lay_out().comment == "start on here/n1: there is room"
    left = {"left_watts": 4068.0}
    room = Verdict(rule="power.rack", subject="here/r1", outcome=Outcome.ALLOW, numbers=left)
    site.job = msgspec.structs.replace(site.job, since=200.0, verdicts=(room,))
    assert site.lay_out().comment == "start on here/n1: here/r1 has 4.07 kW left; waited 3.33 min"
    save(LocalStore(site.home.checkpoints("there", "r1", "train")), {"weights": [1]}, step=7, epoch=1)
    moved = site.lay_out(2, from_site="there")
    assert moved.comment == "migrate on here/n1: here/r1 has 4.07 kW left"


def test_what_a_server_saved_before_the_site_had_an_agent_comes_from_there_once(tmp_path: Path) -> None:
    site = Site(tmp_path, {"checkpoint": {}})
    server = LocalStore(tmp_path / "server")
    save(server, {"weights": [1]}, step=7, epoch=1)
    target = site.home.checkpoints("here", "r1", "train")
    action = Action(id="a", kind=ActionKind.START, job="r1/train", place=Place("here", ()), from_site="here")
    bring_checkpoint(lambda *_: BelowStore(server, ""), site.job, action, target, None)
    assert [entry.step for entry in list_checkpoints(LocalStore(target))] == [7]
