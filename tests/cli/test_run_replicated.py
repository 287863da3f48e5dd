"""Are a run's checkpoints at a second site before it is released?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cli.running import EVALUATE, WATTLINE, Desk, Ran, held_by, kill, wait_until
from wattline.checkpoint import LocalStore, coverage, list_checkpoints, verify
from wattline.live import Home

SITES = ("zurich", "frankfurt")


def call(desk: Desk, *arguments: str) -> Ran:
    done = subprocess.run(
        [str(WATTLINE), *arguments],
        env={**os.environ, "WATTLINE_HOME": str(desk.home), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def store(desk: Desk, site: str, run: str) -> LocalStore:
    return LocalStore(Home(desk.home).checkpoints(site, run, "train"))


def test_after_a_crash_what_was_on_its_way_still_arrives(desk: Desk, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    desk.training(steps=15, seconds=0.15, train={"checkpoint": {"every": "1s", "replicate_to": [*SITES]}})
    desk.write("evaluate.py", held_by(gate) + EVALUATE)  # what has ended would not be resumed
    first = desk.start()
    wait_until(lambda: desk.found("runs/*/evaluate/1/started.json"), first)
    kill(first)
    gate.touch()
    (origin,) = {path.parts[-5] for path in desk.home.glob("sites/*/checkpoints/*/train/fence")}
    (other,) = set(SITES) - {origin}
    shutil.rmtree(desk.home / "sites" / other, ignore_errors=True)
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    run = ran.json["run_id"]
    assert coverage(store(desk, origin, run), store(desk, other, run)).is_full


def test_a_release_waits_until_its_checkpoints_are_where_they_should_be(desk: Desk) -> None:
    desk.training(steps=15, seconds=0.15, train={"checkpoint": {"every": "1s", "replicate_to": [*SITES]}})
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert ran.json["release"] is not None
    run = ran.json["run_id"]
    saved = desk.state().jobs[f"{run}/train"].saved
    assert saved is not None
    (other,) = set(SITES) - {saved.site}
    here, there = (
        LocalStore(Home(desk.home).checkpoints(site, run, "train")) for site in (saved.site, other)
    )
    assert coverage(here, there).is_full
    assert list_checkpoints(there)[0].step == 15
    for entry in list_checkpoints(there):
        verify(there, entry.name)

    shutil.rmtree(there.address)
    refused = call(desk, "promote", run, "--to", "production")
    assert refused.code == 1
    assert f"its checkpoints are not replicated: {other} lacks" in refused.err
    assert call(desk, "checkpoint", "replicate", "--to", there.address).code == 0
    promoted = call(desk, "promote", run, "--to", "production")
    assert promoted.code == 0, promoted.err


def test_a_site_that_is_not_there_is_refused_before_anything_runs(desk: Desk) -> None:
    desk.training(steps=2, seconds=0.0, train={"checkpoint": {"replicate_to": ["frankfrut"]}})
    ran = desk.run()
    assert ran.code == 1
    assert "did you mean frankfurt?" in ran.err
