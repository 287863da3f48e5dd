"""Node helper: a closed set of commands, limits within what a device bears, and put back whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from metering import wait_until


class Node:
    """A machine with eight GPUs at 350 W of 400 W, and helpers on it."""

    def __init__(self, driver: Path, folder: Path) -> None:
        self.limits, self.state = folder / "limits", folder / "state.json"
        self.limits.mkdir()
        for gpu in range(8):
            (self.limits / str(gpu)).write_text("350000")
        self._environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(driver),
            "FAKE_NVML_GPUS": "8",
            "FAKE_NVML_LIMITS": str(self.limits),
        }
        self.helpers: list[subprocess.Popen[str]] = []

    def start(self, **environment: str) -> subprocess.Popen[str]:
        helper = subprocess.Popen(
            [sys.executable, "-m", "wattline.actuators.node", str(self.state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self._environment, **environment},
        )
        self.helpers.append(helper)
        return helper

    def watts(self) -> list[float]:
        return [int((self.limits / str(gpu)).read_text()) / 1000 for gpu in range(8)]


@pytest.fixture
def node(driver: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(driver, tmp_path)
    yield node
    for helper in node.helpers:
        helper.kill()
        helper.wait(timeout=30)
        for pipe in (helper.stdin, helper.stdout, helper.stderr):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def ask(helper: subprocess.Popen[str], asked: object) -> dict[str, Any]:
    assert helper.stdin is not None
    assert helper.stdout is not None
    line = asked if isinstance(asked, str) else json.dumps(asked)
    helper.stdin.write(line + "\n")
    helper.stdin.flush()
    answer = json.loads(helper.stdout.readline())
    assert isinstance(answer, dict)
    return answer


def end(helper: subprocess.Popen[str]) -> int:
    assert helper.stdin is not None
    helper.stdin.close()
    return helper.wait(timeout=30)


def test_limits_are_listed_with_what_they_may_be(node: Node) -> None:
    helper = node.start()
    answer = ask(helper, {"do": "list"})
    assert len(answer["gpus"]) == 8
    assert answer["gpus"][3] == {
        "gpu": 3,
        "limit_watts": 350.0,
        "default_watts": 400.0,
        "least_watts": 100.0,
        "most_watts": 400.0,
        "capped": False,
    }
    assert end(helper) == 0


@pytest.mark.parametrize(("fraction", "watts"), [(0.5, 200.0), (0.1, 100.0), (0.9, 350.0), (0.25, 100.0)])
def test_a_cap_is_a_share_of_the_default_within_what_the_device_bears_and_had(
    node: Node, fraction: float, watts: float
) -> None:
    helper = node.start()
    answer = ask(helper, {"do": "cap", "gpus": [2, 0, 2], "fraction": fraction})
    assert answer == {"ok": True, "set": [{"gpu": 2, "watts": watts}, {"gpu": 0, "watts": watts}]}
    assert node.watts() == [watts, 350.0, watts, *[350.0] * 5]
    end(helper)


def test_what_is_capped_again_is_put_back_to_what_it_was_at_first(node: Node) -> None:
    helper = node.start()
    for fraction in (0.8, 0.5, 0.7):
        ask(helper, {"do": "cap", "gpus": [1], "fraction": fraction})
    assert ask(helper, {"do": "restore", "gpus": [0, 1]}) == {"ok": True, "set": [{"gpu": 1, "watts": 350.0}]}
    assert node.watts() == [350.0] * 8
    assert ask(helper, {"do": "cap", "gpus": [1], "fraction": 1.0}) == {"ok": True, "set": []}
    end(helper)


def test_when_its_caller_goes_away_every_limit_is_as_it_was(node: Node) -> None:
    helper = node.start()
    ask(helper, {"do": "cap", "gpus": [0, 5], "fraction": 0.5})
    assert node.watts()[5] == 200.0
    assert end(helper) == 0
    assert node.watts() == [350.0] * 8
    assert not node.state.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_told_to_leave_it_puts_limits_back_first(node: Node, number: signal.Signals) -> None:
    helper = node.start()
    ask(helper, {"do": "cap", "gpus": [0], "fraction": 0.5})
    helper.send_signal(number)
    assert helper.wait(timeout=30) == 0
    assert node.watts() == [350.0] * 8


def test_after_a_kill_the_next_helper_puts_limits_back(node: Node) -> None:
    killed = node.start()
    ask(killed, {"do": "cap", "gpus": [0, 7], "fraction": 0.5})
    killed.kill()
    killed.wait(timeout=30)
    assert node.watts()[7] == 200.0
    helper = node.start()
    ask(helper, {"do": "list"})
    assert node.watts() == [350.0] * 8
    end(helper)


@pytest.mark.parametrize("left", ["", "[]", "{", '{"x": 1}', '{"0": "much"}', "[" * 9999])
def test_a_state_file_that_makes_no_sense_does_not_keep_it_from_serving(node: Node, left: str) -> None:
    node.state.write_text(left)
    helper = node.start()
    assert ask(helper, {"do": "list"})["ok"]
    end(helper)


def test_there_is_one_helper_for_each_machine(node: Node) -> None:
    first = node.start()
    ask(first, {"do": "cap", "gpus": [0], "fraction": 0.5})
    second = node.start()
    out, _ = second.communicate(timeout=30)
    assert second.returncode == 3
    assert "another helper holds the limits of this machine" in json.loads(out)["error"]
    assert node.watts()[0] == 200.0
    end(first)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("{", "a JSON object on one line"),
        ("[]", "a JSON object on one line"),
        ("[" * 60_000, "a JSON object on one line"),
        ("x" * 200_000, "a JSON object on one line"),
        ({"do": "reboot"}, "to list, to cap or to restore"),
        ({"do": ["cap"]}, "to list, to cap or to restore"),
        ({"do": "list", "also": "this"}, "list takes nothing, and that alone"),
        ({"do": "cap", "gpus": [0]}, "cap takes fraction, gpus, and that alone"),
        ({"do": "cap", "gpus": [0], "fraction": 0}, "above 0 and up to 1"),
        ({"do": "cap", "gpus": [0], "fraction": 1.01}, "above 0 and up to 1"),
        ({"do": "cap", "gpus": [0], "fraction": True}, "above 0 and up to 1"),
        ({"do": "cap", "gpus": [0], "fraction": "0.5"}, "above 0 and up to 1"),
        ('{"do": "cap", "gpus": [0], "fraction": NaN}', "above 0 and up to 1"),
        ({"do": "cap", "gpus": [8], "fraction": 0.5}, "there is no GPU 8 here"),
        ({"do": "cap", "gpus": [-1], "fraction": 0.5}, "there is no GPU -1 here"),
        ({"do": "cap", "gpus": [], "fraction": 0.5}, "a list of 1 to 1024 numbers"),
        ({"do": "cap", "gpus": "all", "fraction": 0.5}, "a list of 1 to 1024 numbers"),
        ({"do": "cap", "gpus": [True], "fraction": 0.5}, "whole numbers"),
        ({"do": "restore", "gpus": [0.0]}, "whole numbers"),
    ],
)
def test_what_is_not_in_the_set_is_refused_and_changes_nothing(node: Node, asked: object, words: str) -> None:
    helper = node.start()
    answer = ask(helper, asked)
    assert answer["ok"] is False
    assert words in answer["error"]
    assert ask(helper, {"do": "list"})["ok"]  # it goes on
    assert node.watts() == [350.0] * 8
    end(helper)


def test_without_the_right_to_set_limits_it_says_so(node: Node) -> None:
    helper = node.start(FAKE_NVML_NO_PERMISSION="1")
    answer = ask(helper, {"do": "cap", "gpus": [0], "fraction": 0.5})
    assert answer == {"ok": False, "error": "NVML: Insufficient Permissions"}
    assert node.watts() == [350.0] * 8
    end(helper)


def test_without_a_driver_it_does_not_start_and_says_why(node: Node) -> None:
    helper = node.start(FAKE_NVML_NO_DRIVER="1")
    out, _ = helper.communicate(timeout=30)
    assert helper.returncode == 3
    assert "Driver Not Loaded" in json.loads(out)["error"]


def test_it_is_a_command_too(node: Node, driver: Path) -> None:
    code = "from wattline.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "node-helper", "--state", str(node.state)],
        input='{"do": "cap", "gpus": [4], "fraction": 0.5}\n',
        capture_output=True,
        text=True,
        timeout=60,
        env=node._environment,
        check=True,
    )
    assert json.loads(done.stdout) == {"ok": True, "set": [{"gpu": 4, "watts": 200.0}]}
    wait_until(lambda: node.watts() == [350.0] * 8)
