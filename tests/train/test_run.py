"""How does a training loop pause, shrink, save and continue without knowing who asked?"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoint.damage import alter, manifest, packs
from wattline import checkpoint, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny-lm"
DEADLINE_SECONDS = 60

SCRIPT = """
import sys, time
import numpy as np
from wattline import train

total, nap = int(sys.argv[1]), float(sys.argv[2])
rng = np.random.default_rng(1)
model = {"w": rng.standard_normal(16)}
run = train.start(model=model, rng=rng)
for step in run.steps(total):
    noise = [rng.standard_normal(16) for _ in range(4)]
    for result in run.map(lambda x: x * 0.1, noise):
        model["w"] += result
    time.sleep(nap)
    run.log(loss=float("nan") if step == total - 1 else step, spread=float(model["w"].std()))
np.save(run.out / "w.npy", model["w"])
run.report(spread=model["w"].std())
"""


class Attempt:
    """One real process of a training script, with the mailbox a supervisor would give it."""

    def __init__(
        self, home: Path, command: list[str], *, epoch: int, cwd: Path | None = None, **environment: str
    ) -> None:
        self.directory = home / f"attempt-{epoch}"
        self.directory.mkdir(parents=True)
        self.serial = 0
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd or home,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "WATTLINE_ATTEMPT": str(self.directory),
                "WATTLINE_EPOCH": str(epoch),
                "WATTLINE_CHECKPOINTS": str(home / "checkpoints"),
                "WATTLINE_CPUS": "2",
                "WATTLINE_RUN": "r-1",
                "WATTLINE_PHASE": "train",
                **environment,
            },
        )

    def want(self, **desired: Any) -> None:
        self.serial += 1
        fresh = self.directory / "desired.new"
        fresh.write_text(json.dumps({"serial": self.serial, **desired}))
        fresh.replace(self.directory / "desired.json")

    def reports(self, kind: str | None = None) -> list[dict[str, Any]]:
        path = self.directory / "reports.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line, parse_constant=refuse_constant) for line in lines]
        return [line for line in found if kind in (None, line["kind"])]

    def wait_for(
        self, kind: str, matches: Callable[[dict[str, Any]], bool] = lambda line: True
    ) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            has_ended = self.process.poll() is not None
            for line in self.reports(kind):
                if matches(line):
                    return line
            if has_ended:
                break
            time.sleep(0.01)
        self.process.kill()
        raise AssertionError(f"no such {kind}: {self.reports()}\n{self.process.communicate()[1]}")

    def finish(self) -> tuple[int, str]:
        stderr = self.process.communicate(timeout=DEADLINE_SECONDS)[1]
        return self.process.returncode, stderr


def refuse_constant(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Attempt]]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started: list[Attempt] = []

    def start_attempt(total: int, nap_seconds: float, *, epoch: int = 1, **environment: str) -> Attempt:
        command = [str(script), str(total), str(nap_seconds)]
        started.append(Attempt(tmp_path, command, epoch=epoch, cwd=tmp_path, **environment))
        return started[-1]

    yield start_attempt
    for attempt in started:
        if attempt.process.poll() is None:
            attempt.process.kill()
            attempt.finish()


def test_an_undisturbed_run_reports_its_steps_its_last_checkpoint_and_its_metrics(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    attempt = start(20, 0)
    assert attempt.finish() == (0, "")
    *_, last = attempt.reports("step")
    assert (last["step"], last["total"], last["in_flight"]) == (20, 20, 2)
    assert last["loss"] is None
    assert last["not_finite"] == ["loss"]
    assert list(last["metrics"]) == ["spread"]
    [final] = attempt.reports("checkpoint")
    assert (final["step"], final["reason"]) == (20, "final")
    restored = checkpoint.restore(checkpoint.LocalStore(tmp_path / "checkpoints"))
    assert restored is not None
    assert final["digest"] == restored.digest
    assert final["bytes"] > restored.raw_bytes
    assert 0.0 <= final["stopped_seconds"] <= final["seconds"]
    assert restored.lineage == {"run": "r-1", "phase": "train"}
    kinds = [line["kind"] for line in attempt.reports() if line["kind"] != "step"]
    assert kinds == ["checkpoint", "finished", "metrics"]
    [metrics] = attempt.reports("metrics")
    assert metrics["values"] == json.loads((tmp_path / "out" / "metrics.json").read_text())


def test_steps_are_reported_a_few_times_a_second_at_most(start: Callable[..., Attempt]) -> None:
    attempt = start(400, 0.001)
    begun = time.monotonic()
    assert attempt.finish() == (0, "")
    assert len(attempt.reports("step")) <= 2 + (time.monotonic() - begun) / 0.2


def test_a_pause_saves_and_leaves_and_the_next_attempt_continues_there(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    first = start(100_000, 0.005)
    first.wait_for("step", lambda line: line["step"] >= 3)
    first.want(pause=True)
    assert first.finish() == (train.PAUSED_EXIT_CODE, "")
    [saved] = first.reports("checkpoint")
    [paused] = first.reports("paused")
    assert saved["reason"] == "pause"
    assert saved["step"] == paused["step"] >= 3

    second = start(paused["step"] + 5, 0, epoch=2)
    assert second.finish() == (0, "")
    [resumed] = second.reports("resumed")
    assert resumed == {"kind": "resumed", "step": paused["step"], "from": saved["path"], "rejected": []}
    assert second.reports("finished") == [{"kind": "finished", "step": paused["step"] + 5}]


def test_a_polite_stop_loses_nothing(start: Callable[..., Attempt]) -> None:
    attempt = start(100_000, 0.005)
    attempt.wait_for("step", lambda line: line["step"] >= 3)
    attempt.process.terminate()
    assert attempt.finish() == (train.PAUSED_EXIT_CODE, "")
    assert attempt.reports("checkpoint")[-1]["step"] == attempt.reports("paused")[0]["step"] >= 3


def test_each_checkpoint_asked_for_is_saved_once(start: Callable[..., Attempt]) -> None:
    attempt = start(100_000, 0.005)
    attempt.want(checkpoint=1)
    attempt.wait_for("checkpoint", lambda line: line["reason"] == "requested")
    attempt.want(checkpoint=1, in_flight=0.5)
    attempt.wait_for("step", lambda line: line["serial"] == 2)
    attempt.want(checkpoint=3)
    attempt.wait_for("step", lambda line: line["serial"] == 3)
    attempt.want(checkpoint=3, pause=True)
    assert attempt.finish()[0] == train.PAUSED_EXIT_CODE
    assert [line["reason"] for line in attempt.reports("checkpoint")] == ["requested", "requested", "pause"]


def test_a_cadence_by_steps_saves_at_those_steps_and_keeps_as_many_as_told(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    attempt = start(20, 0.05, WATTLINE_CHECKPOINT_EVERY="steps:6", WATTLINE_CHECKPOINT_KEEP="2")
    assert attempt.finish() == (0, "")
    assert [line["step"] for line in attempt.reports("checkpoint")] == [6, 12, 18, 20]
    assert [
        entry.step for entry in checkpoint.list_checkpoints(checkpoint.LocalStore(tmp_path / "checkpoints"))
    ] == [20, 18]


def test_shrinking_lowers_what_is_in_flight_and_then_the_duty(start: Callable[..., Attempt]) -> None:
    attempt = start(100_000, 0.005)
    attempt.wait_for("step", lambda line: line["in_flight"] == 2)
    attempt.want(in_flight=0.5)
    attempt.wait_for("step", lambda line: line["in_flight"] == 1)
    attempt.want(in_flight=0.05)
    attempt.wait_for("step", lambda line: line["serial"] == 2)
    started = time.monotonic()
    begun = attempt.reports("step")[-1]  # looked up after the clock began: who looks late gains no steps
    ended = attempt.wait_for("step", lambda line: line["step"] >= begun["step"] + 6)
    worked_seconds = 0.005 * (ended["step"] - begun["step"])
    assert time.monotonic() - started > 4 * worked_seconds
    attempt.want(pause=True)
    assert attempt.finish()[0] == train.PAUSED_EXIT_CODE


def test_a_pause_does_not_wait_for_the_end_of_a_rest(start: Callable[..., Attempt]) -> None:
    attempt = start(100_000, 0.5, WATTLINE_CPUS="1")
    attempt.want(in_flight=0.01)
    attempt.wait_for("step", lambda line: line["serial"] == 1)
    started = time.monotonic()
    attempt.want(in_flight=0.01, pause=True)
    assert attempt.finish()[0] == train.PAUSED_EXIT_CODE
    assert time.monotonic() - started < 30


def test_an_attempt_that_was_fenced_off_stops_with_a_clear_message(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    attempt = start(100_000, 0.005)
    attempt.wait_for("step")
    checkpoint.fence(checkpoint.LocalStore(tmp_path / "checkpoints"), 2)
    attempt.want(checkpoint=1)
    code, stderr = attempt.finish()
    assert code == train.FENCED_EXIT_CODE
    assert "epoch 1 is stale: the repository belongs to epoch 2" in stderr
    assert "Traceback" not in stderr
    assert len(attempt.reports("fenced")) == 1
    assert checkpoint.list_checkpoints(checkpoint.LocalStore(tmp_path / "checkpoints")) == ()


def test_starting_an_attempt_fences_off_the_one_before(start: Callable[..., Attempt]) -> None:
    old = start(100_000, 0.005, epoch=1)
    old.wait_for("step")
    new = start(5, 0, epoch=2)
    assert new.finish() == (0, "")
    old.want(pause=True)
    assert old.finish()[0] == train.FENCED_EXIT_CODE
    late = start(5, 0, epoch=0)
    assert late.finish()[0] == train.FENCED_EXIT_CODE


def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_resumed(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    assert start(12, 0.05, WATTLINE_CHECKPOINT_EVERY="steps:5").finish() == (0, "")
    store = checkpoint.LocalStore(tmp_path / "checkpoints")
    for pack in packs(store, "step-00000012.e1"):
        if "step-00000012" in pack.name:
            alter(pack, 0)
    attempt = start(12, 0, epoch=2)
    assert attempt.finish() == (0, "")
    [resumed] = attempt.reports("resumed")
    assert resumed["step"] == 10
    assert [line["path"] for line in resumed["rejected"]] == ["step-00000012.e1"]
    assert "altered" in resumed["rejected"][0]["why"]


def test_when_every_checkpoint_is_damaged_the_run_starts_again_and_says_so(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    assert start(5, 0).finish() == (0, "")
    expected = (tmp_path / "out" / "w.npy").read_bytes()
    manifest(checkpoint.LocalStore(tmp_path / "checkpoints"), "step-00000005.e1").write_bytes(b"")
    attempt = start(5, 0, epoch=2)
    code, stderr = attempt.finish()
    assert code == 0
    assert "starting from the beginning" in stderr
    [resumed] = attempt.reports("resumed")
    assert (resumed["step"], resumed["from"], len(resumed["rejected"])) == (0, None, 1)
    assert (tmp_path / "out" / "w.npy").read_bytes() == expected


def test_a_disk_that_is_full_at_a_save_does_not_end_the_training(
    start: Callable[..., Attempt], tmp_path: Path
) -> None:
    attempt = start(100_000, 0.005, WATTLINE_CHECKPOINT_EVERY="steps:3")
    attempt.wait_for("checkpoint")
    root = tmp_path / "checkpoints"
    root.rename(tmp_path / "unmounted")
    root.touch()
    failed = attempt.wait_for("checkpoint_failed")
    assert str(root) in failed["why"]  # whichever step of a save met it
    root.unlink()
    (tmp_path / "unmounted").rename(root)
    attempt.wait_for("checkpoint", lambda line: line["step"] > failed["step"])
    attempt.want(pause=True)
    assert attempt.finish()[0] == train.PAUSED_EXIT_CODE


def test_without_a_control_plane_a_script_just_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("WATTLINE_")}
    done = subprocess.run(
        [sys.executable, "script.py", "5", "0"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"script.py", "out"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"metrics.json", "w.npy"}


def test_a_script_may_ask_for_checkpoints_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = {"count": 0}
    run = train.start(model=model, checkpoints="checkpoints")
    for _ in run.steps(3):
        model["count"] += 1
    again = {"count": 0}
    run = train.start(model=again, checkpoints="checkpoints")
    assert again == {"count": 3}
    assert list(run.steps(5)) == [3, 4]


def test_sigterm_is_the_scripts_own_again_after_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WATTLINE_ATTEMPT", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = signal.getsignal(signal.SIGTERM)
    run = train.start()
    for _ in run.steps(2):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


BLOCKED_IMPORTS = """
import sys

BLOCKED = {"alembic", "cel_expr_python", "msgspec", "pydantic", "rich", "sqlalchemy", "typer"}
BLOCKED |= {"yaml"}

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not in a training image")

sys.meta_path.insert(0, Block())
"""


def test_a_training_image_needs_nothing_of_the_control_plane(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(BLOCKED_IMPORTS + SCRIPT)
    attempt = Attempt(tmp_path, ["script.py", "5", "0"], epoch=1)
    assert attempt.finish() == (0, "")
    assert len(attempt.reports("finished")) == 1
    (tmp_path / "blocked.py").write_text(BLOCKED_IMPORTS + "import pydantic")
    assert "not in a training image" in Attempt(tmp_path, ["blocked.py"], epoch=2).finish()[1]


DISTURBANCES = 8
SMALL = {
    "seed": 3,
    "context": 8,
    "embedding": 8,
    "hidden": 48,
    "steps": 150,
    "micro_batches": 4,
    "micro_batch_size": 48,
    "learning_rate": 0.006,
    "forget": 0.05,
    "held_out": 0.1,
}


@pytest.fixture
def tiny_lm(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-lm"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out", "__pycache__"))
    (folder / "params.json").write_text(json.dumps(SMALL))
    subprocess.run([sys.executable, "prepare.py"], cwd=folder, check=True, timeout=60, capture_output=True)
    return folder


def model_hash(folder: Path) -> str:
    return hashlib.sha256((folder / "out" / "model.npz").read_bytes()).hexdigest()


# train.py, taking no more steps than the file `leave` says: however busy the machine, no disturbance is late.
PACED = """
import os, runpy, time
from pathlib import Path
from wattline import train

mailbox = Path(os.environ["WATTLINE_ATTEMPT"])
begin = train.start

def leave():
    return float((mailbox / "leave").read_text()) if (mailbox / "leave").exists() else 0

def start(**parts):
    run = begin(**parts)
    take = run.steps

    def steps(total):
        for taken, step in enumerate(take(total)):
            while taken >= leave():
                (mailbox / "held").touch()
                time.sleep(0.002)
            yield step

    run.steps = steps
    return run

train.start = start
runpy.run_path("train.py", run_name="__main__")
"""


def give_leave(attempt: Attempt, steps: float) -> None:
    fresh = attempt.directory / "leave.new"
    fresh.write_text(str(steps))
    fresh.replace(attempt.directory / "leave")


def disturb(attempt: Attempt, draw: random.Random) -> None:
    """Let it take a few more steps, then do to it what a bad day would, between any two of the next ones."""
    more = draw.randrange(1, 20)
    attempt.want(in_flight=draw.choice([1.0, 0.75, 0.5, 0.3]))
    give_leave(attempt, more)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (attempt.directory / "held").exists() and attempt.process.poll() is None:
        assert time.monotonic() < deadline, f"it never came to its step {more}"
        time.sleep(0.002)
    give_leave(attempt, more + 8)
    time.sleep(draw.uniform(0, 0.03))
    match draw.choice(["kill", "kill", "pause", "terminate"]):
        case "kill":
            attempt.process.kill()
        case "pause":
            attempt.want(pause=True)
        case "terminate":
            attempt.process.terminate()
    give_leave(attempt, math.inf)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pauses_kills_and_shrinks_end_in_the_same_bytes_as_an_undisturbed_run(
    tiny_lm: Path, tmp_path: Path, seed: int
) -> None:
    calm = Attempt(tmp_path / "calm", ["train.py"], epoch=1, cwd=tiny_lm)
    assert calm.finish() == (0, "")
    expected = model_hash(tiny_lm)
    (tiny_lm / "out" / "model.npz").unlink()

    (tiny_lm / "paced.py").write_text(PACED)
    draw = random.Random(seed)
    codes = []
    for epoch in range(1, DISTURBANCES + 2):
        attempt = Attempt(
            tmp_path / "rough",
            ["paced.py"],
            epoch=epoch,
            cwd=tiny_lm,
            WATTLINE_CHECKPOINT_EVERY="steps:7",
            WATTLINE_CHECKPOINT_KEEP="2",
            WATTLINE_CPUS=str(draw.choice([1, 2])),
        )
        if epoch <= DISTURBANCES:
            disturb(attempt, draw)
        else:
            give_leave(attempt, math.inf)
        code, stderr = attempt.finish()
        assert code in (0, train.PAUSED_EXIT_CODE, -signal.SIGKILL, -signal.SIGTERM), stderr
        codes.append(code)
        if code == 0:
            break
    assert codes[-1] == 0, f"seed {seed}: {codes}"
    assert len(codes) > 2, f"seed {seed}: hardly disturbed: {codes}"
    assert model_hash(tiny_lm) == expected, f"seed {seed}: {codes}"


def test_the_example_learns_and_its_metrics_are_there_for_the_gates(tiny_lm: Path) -> None:
    for script in ("train.py", "evaluate.py"):
        done = subprocess.run(
            [sys.executable, script],
            cwd=tiny_lm,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    metrics = json.loads((tiny_lm / "out" / "metrics.json").read_text())
    assert metrics["bits_per_byte_gain"] > 1.5
    assert metrics["accuracy"] > 0.4
    assert metrics["latency_p95_ms"] > 0
    assert 0 <= metrics["fairness_gap"] < 0.5


def test_the_corpus_is_what_its_grammar_writes(tiny_lm: Path) -> None:
    shipped = (EXAMPLE / "data" / "corpus.txt").read_bytes()
    (tiny_lm / "data" / "corpus.txt").unlink()
    subprocess.run(
        [sys.executable, "make_corpus.py"], cwd=tiny_lm, check=True, timeout=60, capture_output=True
    )
    assert (tiny_lm / "data" / "corpus.txt").read_bytes() == shipped
