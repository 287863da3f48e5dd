from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from cli.looking import COMMAND, Wattline
from cli.replayed import FACILITY, write_jobs
from cli.running import end, wait_until
from wattline.twin.comparison import METRICS, Comparison


@pytest.fixture
def asked(tmp_path: Path) -> tuple[object, ...]:
    """Jobs that sixteen GPUs cannot do as fast as they come."""
    (tmp_path / "small.yaml").write_text(FACILITY)
    trace = write_jobs(tmp_path / "jobs.csv", 120, gap_seconds=200.0)
    return ("twin", "compare", trace, "--facility", tmp_path / "small.yaml")


def children_of(pid: int) -> list[int]:
    """Processes whose parent this is, that run a part of the comparison."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:  # gone meanwhile
                continue
            if parent == pid and b"spawn_main" in command:
                found.append(int(entry.name))
    return found


def test_policies_are_set_side_by_side_seed_by_seed(asked: tuple[object, ...], wattline: Wattline) -> None:
    policies = ("--policy", "fifo", "--policy", "default", "--policy", "easy")
    done = wattline(*asked, *policies, "--seeds", 3, "--output", "json")
    assert done.code == 0, done.err
    compared = msgspec.json.decode(done.out, type=Comparison)
    assert compared.policies == ("fifo", "default", "easy")
    assert compared.seeds == (0, 1, 2)
    assert [contest.metric for contest in compared.metrics] == list(METRICS)
    waits = {each.policy: each for contest in compared.metrics for each in contest.standings}
    assert waits["fifo"].difference is None
    assert waits["easy"].difference is not None
    runs = done.json["runs"]
    assert sorted((run["policy"], run["seed"]) for run in runs) == [
        (policy, seed) for policy in ("default", "easy", "fifo") for seed in range(3)
    ]
    assert len({run["digest"] for run in runs}) == 9
    assert "9 of 9 runs: easy, seed 2, " in done.err


def test_backfilling_waits_less_than_first_come_first_served(
    asked: tuple[object, ...], wattline: Wattline
) -> None:
    done = wattline(*asked, "--policy", "fifo", "--policy", "easy", "--seeds", 2, "--output", "json")
    wait = next(each for each in done.json["metrics"] if each["metric"] == "wait_minutes.mean")
    fifo, easy = wait["standings"]
    assert fifo["mean"] > 0
    assert easy["difference"] < 0


def test_runs_side_by_side_come_to_the_same(asked: tuple[object, ...], wattline: Wattline) -> None:
    more = ("--policy", "easy", "--policy", "default", "--seeds", 2, "--seed", 7, "--output", "json")
    one, two = wattline(*asked, *more), wattline(*asked, *more, "--jobs", 2)
    assert two.code == 0, two.err
    told = [(run["policy"], run["seed"], run["digest"]) for run in one.json["runs"]]
    assert [(run["policy"], run["seed"], run["digest"]) for run in two.json["runs"]] == told
    assert {seed for _, seed, _ in told} == {7, 8}
    assert one.json["metrics"] == two.json["metrics"]


def test_the_text_names_the_base_and_how_sure_it_is(asked: tuple[object, ...], wattline: Wattline) -> None:
    done = wattline(*asked, "--policy", "fifo", "--policy", "easy", "--seeds", 2)
    assert done.code == 0
    assert "jobs on small from 2024-01-01, 2 seeds" in done.out
    assert "differences are against fifo" in done.out
    assert "95 % confidence interval over seeds" in done.out
    assert "wait, mean" in done.out
    alone = wattline(*asked, "--policy", "fifo", "--policy", "easy", "--seeds", 1)
    assert "one seed: nothing says whether another would give the same" in alone.out


def test_two_documents_of_one_name_go_by_their_paths(
    asked: tuple[object, ...], tmp_path: Path, wattline: Wattline
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("policy: default\n")
    more = ("--policy", "default", "--policy", mine, "--seeds", 1, "--most-jobs", 10, "--output", "json")
    assert wattline(*asked, *more).json["policies"] == ["default", str(mine)]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "--policy"),
        (["--policy", "easy"], 2, "nothing to compare with one policy"),
        (["--policy", "easy", "--policy", "easy"], 2, "policy easy is named twice"),
        (["--policy", "easy", "--policy", "esay"], 3, "did you mean 'easy'?"),
        (["--policy", "easy", "--policy", "fifo", "--seeds", "0"], 2, "--seeds"),
        (["--policy", "easy", "--policy", "fifo", "--jobs", "0"], 2, "--jobs"),
        (["--policy", "easy", "--policy", "fifo", "--skip-days", "9"], 2, "skip fewer days"),
    ],
)
def test_what_cannot_be_compared_is_told(
    options: list[str], code: int, said: str, asked: tuple[object, ...], wattline: Wattline
) -> None:
    done = wattline(*asked, *options)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


@pytest.fixture
def at_length(asked: tuple[object, ...], tmp_path: Path) -> subprocess.Popen[str]:
    """A comparison that takes its time, in two processes, which are there."""
    write_jobs(tmp_path / "jobs.csv", 20_000)
    process = subprocess.Popen(
        [*COMMAND, *map(str, asked), "--policy", "default", "--policy", "fifo", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(children_of(process.pid)) == 2, process)
    return process


def test_ctrl_c_ends_all_of_it_with_a_sentence(at_length: subprocess.Popen[str]) -> None:
    children = children_of(at_length.pid)
    done = end(at_length, signal.SIGINT)
    assert (done.code, done.out) == (130, "")
    assert "wattline: interrupted" in done.err
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_run_that_is_killed_is_told(at_length: subprocess.Popen[str]) -> None:
    os.kill(children_of(at_length.pid)[0], signal.SIGKILL)
    done = end(at_length)
    assert (done.code, done.out) == (3, "")
    assert "with seed 0 ended without an answer (exit code -9)" in done.err
    assert "hint: if memory ran out, run fewer at once" in done.err


def test_runs_that_nobody_waits_for_any_more_end_by_themselves(at_length: subprocess.Popen[str]) -> None:
    children = children_of(at_length.pid)
    at_length.kill()
    at_length.communicate()
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
