"""`wattline run` of a phase that may run on fewer GPUs: another run makes it narrower, and it grows back."""

from __future__ import annotations

from pathlib import Path

from cli.running import POLICY, TRAIN, Desk, assert_nothing_is_left, end, model_of, wait_until

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
    telemetry: {source: emulated}
"""
_TELLS_WIDTH = TRAIN.replace(
    "for step in", 'import pathlib\npathlib.Path("width.txt").write_text(str(run.gpus))\nfor step in'
)


def widths(desk: Desk) -> list[int]:
    """What each attempt was told, the first first."""
    found = sorted(desk.home.glob("runs/small-*/train/*/work/width.txt"), key=lambda path: path.parts[-3])
    return [int(path.read_text()) for path in found]


def test_a_second_run_makes_the_first_narrower_it_grows_back_and_ends_as_if_nothing_was(
    desk: Desk, tmp_path: Path
) -> None:
    resources = {"gpus": 8, "elastic": {"min": 4, "max": 8}}
    desk.training(steps=1200, seconds=0.1, train={"resources": resources})
    desk.write("train.py", _TELLS_WIDTH)
    resizing = {"least_time": "1s", "restart": "1s", "least_gain": 1}
    desk.write("policy.yaml", POLICY | {"resizing": resizing, "classes": {"urgent": {"priority": 10}}})
    other = Desk(tmp_path / "other")
    other.home = desk.home
    other.write("train.py", "import time; time.sleep(1)")
    urgent = {"run": "python train.py", "class": "urgent", "resources": {"gpus": 4}}
    other.pipeline({"train": urgent}, pipeline="other")

    first = desk.start("--facility", str(desk.write("one-node.yaml", _ONE_NODE)))
    wait_until(lambda: desk.found("runs/small-*/train/1/work/width.txt"), first)
    second = other.run()
    wait_until(lambda: desk.found("runs/small-*/train/3/work/width.txt"), first)
    desk.hurry()
    ran = end(first)

    assert (second.code, second.json["status"]) == (0, "succeeded"), second.err
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert widths(desk) == [8, 4, 8]
    assert model_of(ran.json) == desk.by_hand()
    said = [verdict.rule for step in desk.steps() for verdict in step.decision.verdicts]
    assert said.count("resizing.shrink") == said.count("resizing.grow") == 1
    (account,) = desk.state().accounts.values()
    assert account.share.gpus == 0
    assert_nothing_is_left(desk)
