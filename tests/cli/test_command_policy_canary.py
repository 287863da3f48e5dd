"""A candidate decides in shadow beside a run that really runs: it is seen, and nothing of it is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import NOBODY, write_policy
from cli.looking import Wattline
from cli.running import Desk
from wattline.live import Home
from wattline.plane.policy_shadow import CanaryFiles


@pytest.fixture
def shadowed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("WATTLINE_HOME", str(desk.home))
    desk.pipeline({"train": {"run": "true", "resources": {"gpus": 1}}})
    return desk


def test_a_candidate_that_would_refuse_everything_says_so_and_stops_nothing(
    shadowed: Desk, wattline: Wattline, tmp_path: Path
) -> None:
    strict = write_policy(tmp_path, **NOBODY)
    begun = wattline("policy", "canary", strict)
    assert (begun.code, "with the next run" in begun.out) == (0, True)
    waiting = wattline("policy", "canary", "status")
    assert (waiting.code, "nothing was seen of it yet" in waiting.out) == (0, True)
    assert shadowed.run().json["status"] == "succeeded"
    told = wattline("policy", "canary", "status", "--output", "json")
    assert told.code == 1
    assert told.json["active"]
    assert told.json["differences"]["by_kind"] == {"start → refuse": 1}
    assert told.json["differences"]["first"][0]["rule"] == "rule.nobody"
    assert told.json["would"]["started"] == 0
    assert told.json["turns"] > 1
    assert "it would REFUSE EVERYTHING: not one of 1 job" in wattline("policy", "canary", "status").out
    assert "in shadow: strict" in wattline("policy", "show").out
    stopped = wattline("policy", "canary", "stop", "-o", "json")
    assert stopped.json == {"stopped": True, "policy": "strict"}
    turns = told.json["turns"]
    assert shadowed.run().json["status"] == "succeeded"
    after = wattline("policy", "canary", "status", "-o", "json").json
    assert (after["active"], after["turns"]) == (False, turns), "nobody asked it any more"


def test_a_candidate_that_cannot_be_read_costs_nobody_a_run(
    shadowed: Desk, wattline: Wattline, tmp_path: Path
) -> None:
    assert wattline("policy", "canary", write_policy(tmp_path, "gone")).code == 0
    files = CanaryFiles(Home(shadowed.home))
    candidate = files.candidate()
    assert candidate is not None
    hexes = candidate.sha256.removeprefix("sha256:")
    (shadowed.home / "objects" / "sha256" / hexes[:2] / hexes[2:]).unlink()
    assert shadowed.run().json["status"] == "succeeded"
    told = wattline("policy", "canary", "status")
    assert (told.code, "it failed 1 times" in told.out) == (1, True)
    (shadowed.home / "policies" / "canary.json").write_text("{]")
    assert shadowed.run().json["status"] == "succeeded"
    assert wattline("policy", "canary", "stop").code == 0


def test_what_is_no_candidate_is_told(wattline: Wattline, home: Path, tmp_path: Path) -> None:
    assert wattline("policy", "canary", "status").code == 3
    assert wattline("policy", "canary", "stop").code == 0
    assert wattline("policy", "canary", write_policy(tmp_path, "wrong", ruels=[])).code == 2
    assert wattline("policy", "canary", "missing.yaml").code == 3
    assert not (home / "policies").exists()
