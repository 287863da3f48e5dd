"""Two `wattline run` in one state folder: one queue, one writer, and nobody's run is lost."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from cli.running import POLICY, Desk, assert_nothing_is_left, end, held_by, kill, wait_until

_SLEEP = "import time; time.sleep({})"
_ONE_NODE = """\
facility: one-node
sites:
  here:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 20kW}}
    loops: {room: {kind: air, capacity: 20kW, supply: 22C}}
    racks: {r1: {cap: 10kW, power: [wall], loop: room, nodes: {gpu: A100, gpus: 8, cpus: 8, other: 100W}}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
"""


def two_desks(tmp_path: Path, desk: Desk) -> Desk:
    other = Desk(tmp_path / "other")
    other.home = desk.home
    return other


def test_the_second_joins_the_queue_of_the_first_and_both_end_well(desk: Desk, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    desk.pipeline({"train": held_by(gate)})
    other = two_desks(tmp_path, desk)
    other.pipeline({"train": held_by(gate)}, pipeline="other")
    first = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), first)
    joining = other.start()
    wait_until(lambda: desk.found("runs/other-*/train/1/started.json"), joining)
    gate.touch()
    second = end(joining)
    ended = end(first)
    assert (ended.code, ended.json["status"]) == (0, "succeeded")
    assert (second.code, second.json["status"]) == (0, "succeeded")
    assert f"joined    the queue that process {first.pid} conducts" in second.err
    assert len(desk.state().runs) == 2
    assert_nothing_is_left(desk)


def test_the_second_takes_over_when_the_first_is_killed(desk: Desk, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    desk.pipeline({"train": _SLEEP.format(600)})
    other = two_desks(tmp_path, desk)
    other.pipeline({"train": held_by(gate)}, pipeline="other")
    first = desk.start()
    wait_until(lambda: desk.found("runs/small-*/train/1/started.json"), first)
    second = other.start()
    wait_until(lambda: desk.found("runs/other-*/train/1/started.json"), second)
    kill(first)
    gate.touch()
    ran = end(second)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    state = desk.state()
    (small,) = (run for run in state.runs.values() if run.pipeline == "small")
    assert small.ended_at is None
    assert [state.jobs[job].state for job in small.jobs] == ["paused"]
    desk.write("train.py", _SLEEP.format(0))
    assert_nothing_is_left(desk)


def test_who_comes_to_a_queue_that_is_too_long_is_refused_at_once_and_told_what_would_start(
    desk: Desk, tmp_path: Path
) -> None:
    asked = {"resources": {"gpus": 8}, "constraints": {"max_duration": "1h"}}
    desk.write("train.py", _SLEEP.format(600))
    desk.pipeline({"train": {"run": "python train.py", **asked, "resources": {"gpus": 6}}})
    desk.write("policy.yaml", POLICY | {"queue": {"max_wait": "1min"}})
    other = two_desks(tmp_path, desk)
    other.write("train.py", _SLEEP.format(600))
    other.pipeline({"train": {"run": "python train.py", **asked}}, pipeline="other")
    first = desk.start("--facility", str(desk.write("one-node.yaml", _ONE_NODE)))
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), first)
    second = other.run()
    assert (second.code, second.json["status"]) == (1, "refused"), second.err
    assert "queue.wait of fleet refuses it: wait p50 " in second.json["say"]
    assert "UTC, by this forecast. Starts now with 2 GPUs" in second.json["say"]
    assert second.json["say"] in second.err
    assert end(first, signal.SIGINT).code == 130
    assert_nothing_is_left(desk)


def test_a_run_that_joins_cannot_bring_another_facility(desk: Desk, tmp_path: Path) -> None:
    desk.pipeline({"train": _SLEEP.format(600)})
    other = two_desks(tmp_path, desk)
    other.pipeline({"train": _SLEEP.format(0)}, pipeline="other")
    first = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), first)
    second = other.run("--facility", "three-sites")
    assert second.code == 2
    assert "runs with the facility 'lab', not with 'three-sites'" in second.err
    assert "leave --facility out" in second.err
    assert end(first, signal.SIGINT).code == 130
    assert [run.pipeline for run in desk.state().runs.values()] == ["small"]


def test_a_follower_that_is_interrupted_pauses_its_own_run_alone(desk: Desk, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    desk.pipeline({"train": held_by(gate)})
    other = two_desks(tmp_path, desk)
    other.training(steps=600, seconds=0.1)
    first = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), first)
    (other.folder / "policy.yaml").unlink()  # what is in force where it joins
    second = other.start()
    wait_until(lambda: any(_steps(path) for path in desk.home.glob("runs/*/train/1/reports.jsonl")), second)
    paused = end(second, signal.SIGINT)
    assert paused.code == 130
    gate.touch()
    ended = end(first)
    assert (ended.code, ended.json["status"]) == (0, "succeeded")
    assert_nothing_is_left(desk)


def _steps(path: Path) -> int:
    return sum(json.loads(line)["kind"] == "step" for line in path.read_text().splitlines())
