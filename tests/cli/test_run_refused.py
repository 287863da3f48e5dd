"""`wattline run` when the answer is no: it comes before anything runs, and says what would change it."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from cli.running import POLICY, Desk, assert_nothing_is_left

_TRAIN = "print('trained')"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"resources": {"gpus": 5000}}, r"gpus.*short by 4968 GPUs, asked 5000 GPUs"),
        ({"resources": {"gpus": 16}, "constraints": {"locality": "rack"}}, r"power\.rack.*short by .*kW"),
        ({"resources": {"gpus": 8, "gpu": "H100"}}, r"instance\.type.*H100"),
        ({"resources": {"gpus": 8}, "constraints": {"residency": ["antarctica"]}}, r"residency.*antarctica"),
    ],
    ids=["gpus", "power", "instance type", "residency"],
)
def test_what_could_never_fit_is_refused_and_never_queued(
    desk: Desk, asked: dict[str, Any], said: str
) -> None:
    desk.write("train.py", _TRAIN)
    desk.pipeline({"train": {"run": "python train.py"} | asked, "check": {"run": "true", "after": ["train"]}})
    ran = desk.run()
    assert ran.code == 1, ran.err
    assert ran.json["status"] == "refused"
    assert [phase["state"] for phase in ran.json["phases"]] == ["refused", "cancelled"]
    assert re.search(said, ran.json["say"]), ran.json["say"]
    assert ran.json["say"] in ran.err
    assert not desk.found("runs/*")
    assert_nothing_is_left(desk)


def test_a_rule_that_blocks_refuses_in_its_own_words(desk: Desk) -> None:
    desk.pipeline({"train": _TRAIN})
    say = "an experiment without an intended use is not run here; add intended_use"
    rule = {"name": "purpose", "when": "job.intended_use == ''", "say": say, "mode": "block"}
    desk.write("policy.yaml", POLICY | {"rules": [rule]})
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (1, "refused")
    assert "rule.purpose" in ran.json["say"]
    assert say in ran.json["say"]
    assert_nothing_is_left(desk)


def test_everything_that_preflight_finds_is_told_at_once_and_nothing_runs(desk: Desk) -> None:
    desk.write("words.txt", "other words\n")
    desk.write("check.py", _TRAIN)
    pinned = hashlib.sha256(b"words\n").hexdigest()
    desk.pipeline(
        {"train": {"run": "python train.py"}, "check": {"run": "python check.py"}},
        params="params.json",
        data=[
            {"name": "words", "path": "words.txt", "sha256": pinned},
            {"name": "more", "path": "more.txt"},
        ],
    )
    desk.write("policy.yaml", POLICY | {"required_metadata": ["model", "intended_use", "image"]})
    ran = desk.run()
    assert ran.code == 1
    assert ran.out == ""
    found = hashlib.sha256(b"other words\n").hexdigest()
    for said in (
        "metadata: policy quick requires intended_use, image",
        "preflight of small failed: metadata, data.hash words, data.there more, params, entry train\n",
        f"data.hash words: words.txt has sha256 {found}, the pipeline says {pinned}; restore",
        f"{desk.folder / 'more.txt'} does not exist",
        f"{desk.folder / 'params.json'} does not exist",
        f"'python train.py' names train.py, which is not in {desk.folder}",
    ):
        assert said in ran.err, ran.err
    assert "entry check:" not in ran.err.rpartition("preflight of small failed")[2]
    assert not desk.found("runs/*")
    with desk.session() as session:
        assert session.state is None


def test_a_document_that_is_wrong_is_told_with_its_line(desk: Desk) -> None:
    desk.write("wattline.yaml", "pipeline: small\nmodel: small\nowner: ada\nprojet: lab\n")
    ran = desk.run()
    assert ran.code == 2
    assert "wattline.yaml:4" in ran.err
    assert "did you mean 'project'?" in ran.err


def test_a_faults_file_that_names_nothing_of_the_facility_is_wrong(desk: Desk) -> None:
    desk.pipeline({"train": _TRAIN})
    fault = {"name": "f", "at": {"after": "1s"}, "loop": "atlantis/pump", "flow": "5%"}
    ran = desk.run("--faults", str(desk.write("faults.yaml", {"faults": [fault]})))
    assert ran.code == 2
    assert "atlantis/pump" in ran.err
    assert "zurich/crah" in ran.err
    assert not desk.found("runs/*")


def test_data_that_changes_after_it_was_admitted_starts_nothing(desk: Desk) -> None:
    desk.write("words.txt", "words\n")
    desk.pipeline(
        {
            "prepare": {"run": f"echo tampered > {desk.folder / 'words.txt'}"},
            "train": {"run": "cat words.txt", "after": ["prepare"], "restart": {"max": 0}},
        },
        data=[{"name": "words", "path": "words.txt"}],
    )
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert f"data words: {desk.folder / 'words.txt'} has sha256" in ran.json["say"]
    assert "the run was admitted with" in ran.json["say"]
    assert not desk.found("runs/*/train/*/started.json")
    assert_nothing_is_left(desk)
