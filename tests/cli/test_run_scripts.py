"""`wattline run` with scripts that crash, hang, lie, shout and leave things behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.running import POLICY, Desk, assert_nothing_is_left

_METRICS = "import pathlib; pathlib.Path('out/metrics.json').write_text({!r})"
_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("trained")
"""
_SHOUTS = r"""
import sys
sys.stdout.write("\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\n")
line = "x" * 1023 + "\n"
for _ in range(100 * 1024):
    sys.stdout.write(line)
"""
# What the runtime never says: each of these once ended the control process, or made its journal unreadable.
_LIES = r"""
import os, pathlib
lies = [
    '{"kind": "checkpoint", "step": 1, "seconds": NaN, "bytes": 1e999, "digest": "\\ud800\\u001b[2J"}',
    '{"kind": "checkpoint", "step": %s, "seconds": -5, "digest": ["x"]}' % ("9" * 30),
    '{"kind": "step", "step": 2, "total": -1, "loss": %s}' % ("9" * 400),
    '{"kind": "step", "step": true, "loss": Infinity}',
    '{"kind": "resumed", "step": 1, "rejected": "\\u001b[31m\\udfff"}',
    '{"kind": 7}',
    'not json at all',
    '[' * 50000,
]
with open(pathlib.Path(os.environ["WATTLINE_ATTEMPT"]) / "reports.jsonl", "a") as file:
    file.write("\n".join(lies) + "\n")
"""


def one_phase(desk: Desk, script: str, *, gates: tuple[str, ...] = (), **phase: Any) -> None:
    desk.write("train.py", script)
    document = {"run": "python train.py", "restart": {"max": 0}} | phase
    desk.pipeline({"train": document}, gates=gates)
    desk.write("policy.yaml", POLICY)


@pytest.mark.parametrize(
    ("script", "phase", "said", "attempts"),
    [
        ("raise SystemExit(7)", {"restart": {"max": 2}}, "train: exit code 7", 3),
        ("import os; os.kill(os.getpid(), 9)", {}, "killed by signal 9 (SIGKILL)", 1),
        (
            "import time; time.sleep(600)",
            {"constraints": {"max_duration": "1s"}, "restart": {"max": 2}},
            "train: ran past its max_duration, 1 s",
            1,
        ),
        ("", {"run": "exec nonesuch-command"}, "train: exit code 127", 1),
        (
            "import os; f = open('out/huge', 'w'); os.truncate('out/huge', 65 * 2**30)",
            {},
            "train: its results could not be kept: ",
            1,
        ),
    ],
    ids=["crash", "signal", "hang", "no such command", "huge results"],
)
def test_a_script_that_fails_is_told_with_how_it_ended(
    desk: Desk, script: str, phase: dict[str, Any], said: str, attempts: int
) -> None:
    one_phase(desk, script, **phase)
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert said in ran.json["say"]
    assert ran.json["say"] in ran.err
    (train,) = ran.json["phases"]
    assert len(train["attempts"]) == attempts
    assert ran.json["manifest"]["sha256"]
    assert_nothing_is_left(desk)


@pytest.mark.parametrize(
    ("script", "code", "status", "said"),
    [
        ("pass", 3, "gates unknown", "no phase wrote out/metrics.json"),
        (_METRICS.format('{"loss": NaN}'), 1, "gates failed", "loss is not a number (NaN)"),
        (_METRICS.format("\x00 \x1b[2J rubbish"), 3, "gates unknown", "not JSON"),
    ],
    ids=["nothing", "nan", "rubbish"],
)
def test_a_gate_that_is_not_passed_releases_nothing(
    desk: Desk, script: str, code: int, status: str, said: str
) -> None:
    one_phase(desk, script, gates=("loss <= 2",))
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (code, status)
    assert said in ran.json["say"]
    assert ran.json["say"].startswith("loss <= 2: ")
    assert ran.json["release"] is None
    assert "\x1b" not in ran.err
    assert_nothing_is_left(desk)


def test_a_daemon_ends_with_the_script_that_left_it(desk: Desk) -> None:
    one_phase(desk, _DAEMON)
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (0, "succeeded")
    assert_nothing_is_left(desk)


def test_a_script_that_shouts_reaches_its_log_and_no_terminal(desk: Desk) -> None:
    one_phase(desk, _SHOUTS)
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (0, "succeeded")
    assert "\x1b" not in ran.err + ran.out
    (log,) = desk.home.glob("runs/*/train/1/output.log")
    assert 64 * 2**20 <= log.stat().st_size <= 64 * 2**20 + 200
    with log.open("rb") as file:
        file.seek(-100, 2)
        assert b"the rest is dropped" in file.read()


def test_reports_that_are_lies_neither_end_the_run_nor_spoil_its_journal(desk: Desk) -> None:
    one_phase(desk, _LIES)
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (0, "succeeded")
    assert "\x1b" not in ran.err + ran.out
    assert_nothing_is_left(desk)
    assert desk.run("--resume").json == ran.json  # it has ended: shown, and not run again


def test_results_that_became_a_link_are_not_taken(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "private").write_text("not a result")
    one_phase(desk, f"import os; os.rmdir('out'); os.symlink({str(elsewhere)!r}, 'out')")
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert "has become a link" in ran.json["say"]
