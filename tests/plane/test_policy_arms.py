"""A candidate that decides for a share of nodes under the embedded run: begun, seen, stopped by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import NOBODY, write_policy
from cli.looking import Wattline
from cli.running import Desk, assert_nothing_is_left
from wattline.state import Adopted, Noticed

TWO_RACKS = """\
facility: two-racks
sites:
  here:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 40kW}}
    loops: {room: {kind: air, capacity: 40kW, supply: 22C}}
    racks:
      old: {cap: 15kW, power: [wall], loop: room, nodes: {gpu: A100, gpus: 8, cpus: 8, other: 100W}}
      new: {cap: 15kW, power: [wall], loop: room, nodes: {gpu: H100, gpus: 8, cpus: 8, other: 100W}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
"""
PHASE = {"run": "true", "resources": {"gpus": 1, "gpu": "H100"}}


@pytest.fixture
def known(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A state folder in which something ran on two racks."""
    monkeypatch.setenv("WATTLINE_HOME", str(desk.home))
    desk.write("two-racks.yaml", TWO_RACKS)
    desk.pipeline({"train": {"run": "true", "resources": {"gpus": 1, "gpu": "A100"}}})
    assert run(desk)["status"] == "succeeded"
    return desk


def run(desk: Desk) -> dict[str, object]:
    return desk.run("--facility", str(desk.folder / "two-racks.yaml")).json


def test_both_sides_are_seen_and_the_journal_says_who_decided_what(
    known: Desk, wattline: Wattline, tmp_path: Path
) -> None:
    begun = wattline(
        "policy", "canary", write_policy(tmp_path, "gentle"), "--nodes", "here/new", "-o", "json"
    )
    assert (begun.code, begun.json["on"], begun.json["share"]) == (0, ["here/new"], 0.5), begun.err
    assert "nothing was seen of it yet" in wattline("policy", "canary", "status").out
    known.pipeline({"one": PHASE, "two": {"run": "true", "resources": {"gpus": 1, "gpu": "A100"}}})
    assert run(known)["status"] == "succeeded"
    told = wattline("policy", "canary", "status", "-o", "json")
    assert told.code == 0, told.out
    assert told.json["active"]
    sides = {side: told.json[side] for side in ("in_force", "candidate")}
    assert {side: figures["started"] for side, figures in sides.items()} == {"in_force": 1, "candidate": 1}
    assert all(figures["gpus"] == 8 for figures in sides.values())
    assert all(figures["useful_gpu_hours"] > 0.0 for figures in sides.values())
    by = {
        action.job.partition("/")[2]: action.by
        for record in known.steps()
        for action in record.decision.actions
    }
    assert (by["one"], by["two"]) == ("gentle", "")
    text = wattline("policy", "canary", "status").out
    assert "gentle decides for here/new (50 % of the GPUs)" in text
    assert "useful GPU-hours" in text
    assert wattline("policy", "canary", "stop").out.startswith("gentle no longer decides for here/new")
    assert run(known)["status"] == "succeeded"
    adopted = [event for event in known.events() if isinstance(event, Adopted)]
    assert [bool(event.canary) for event in adopted[-1:]] == [False]
    assert_nothing_is_left(known)


def test_a_candidate_that_refuses_everything_stops_itself(
    known: Desk, wattline: Wattline, tmp_path: Path
) -> None:
    assert wattline("policy", "canary", write_policy(tmp_path, **NOBODY), "--site", "here").code == 1
    assert wattline("policy", "canary", write_policy(tmp_path, **NOBODY), "--nodes", "here/new").code == 0
    known.pipeline({f"p{number}": PHASE for number in range(3)})
    assert "strict decides for here/new (" in wattline("policy", "show").out, "it is no shadow"
    assert wattline("policy", "show", "-o", "json").json["canary"]["on"] == ["here/new"]
    assert run(known)["status"] == "refused"
    told = wattline("policy", "canary", "status", "-o", "json")
    assert (told.code, told.json["active"]) == (1, False)
    assert told.json["stopped"] == "it refuses everything: 3 jobs, and not one started"
    assert "it was stopped: it refuses everything" in wattline("policy", "canary", "status").out
    said = [event.say for event in known.events() if isinstance(event, Noticed) and event.subject == "policy"]
    assert said == ["canary strict stopped: it refuses everything: 3 jobs, and not one started"]
    assert run(known)["status"] == "succeeded", "the policy in force decides for all again"
    assert_nothing_is_left(known)


def test_a_share_that_is_none_is_told(known: Desk, wattline: Wattline, tmp_path: Path) -> None:
    gentle = write_policy(tmp_path, "gentle")
    greedy = write_policy(tmp_path, "greedy", power_sharing={"by": "caps"})
    wrong = {
        (gentle, "--share", "10%", "--site", "here"): "give one of them",
        (gentle, "--share", "0%"): "more than none",
        (gentle, "--share", "much"): "--share",
        (gentle, "--nodes", "here/nothing"): "the facility has no here/nothing",
        (gentle, "--site", "here"): "not all",
        (greedy, "--nodes", "here/new"): "power_sharing, which looks at all nodes at once",
        ("status", "--share", "10%"): "name a file",
    }
    for asked, said in wrong.items():
        told = wattline("policy", "canary", *asked)
        assert told.code in (1, 2), asked
        assert said in told.err


def test_where_nothing_ran_there_is_nothing_to_take_a_share_of(
    home: Path, wattline: Wattline, tmp_path: Path
) -> None:
    told = wattline("policy", "canary", write_policy(tmp_path, "gentle"), "--share", "10%")
    assert told.code == 3
    assert "nothing ran here yet" in told.err
