from __future__ import annotations

from typing import Any

import pytest

from wattline.engines import Result
from wattline.live.endings import ending_of, say_of
from wattline.state import Ending
from wattline.train import FENCED_EXIT_CODE, PAUSED_EXIT_CODE


def a_result(reason: Any, code: int | None = None, number: int | None = None) -> Result:
    return Result(
        epoch=1,
        reason=reason,
        code=code,
        signal=number,
        cpu_seconds=1.0,
        wall_seconds=90.0,
        started_at=0.0,
        ended_at=90.0,
        message=f"it was {reason}",
    )


def ending(result: Result, **asked: bool) -> Ending:
    nothing = {"pausing": False, "stopping": False, "by_signals": False, "recovered": False}
    return ending_of(result, **(nothing | asked))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (a_result("exited", 0), Ending.SUCCEEDED),
        (a_result("exited", 1), Ending.FAILED),
        (a_result("signaled", number=9), Ending.FAILED),
        (a_result("timeout", 0), Ending.TIMED_OUT),
        (a_result("lease-lost", number=9), Ending.LOST),
        (a_result("not-started"), Ending.NOT_STARTED),
    ],
)
def test_what_nobody_asked_for_is_told_by_how_the_process_ended(result: Result, expected: Ending) -> None:
    assert ending(result) is expected


def test_a_script_that_was_asked_to_pause_and_saved_is_paused() -> None:
    assert ending(a_result("exited", PAUSED_EXIT_CODE), pausing=True) is Ending.PAUSED


def test_a_script_that_saved_because_it_was_stopped_is_stopped() -> None:
    assert ending(a_result("exited", PAUSED_EXIT_CODE), stopping=True) is Ending.STOPPED


def test_a_script_that_finishes_while_it_is_asked_to_pause_has_finished() -> None:
    assert ending(a_result("exited", 0), pausing=True) is Ending.SUCCEEDED


@pytest.mark.parametrize("code", [PAUSED_EXIT_CODE, FENCED_EXIT_CODE])
def test_a_script_that_leaves_unasked_has_failed_so_that_it_cannot_go_on_for_ever(code: int) -> None:
    assert ending(a_result("exited", code)) is Ending.FAILED


def test_what_saved_and_left_while_nobody_looked_on_is_paused() -> None:
    assert ending(a_result("exited", PAUSED_EXIT_CODE), recovered=True) is Ending.PAUSED


def test_a_lost_supervisor_is_nobodys_fault_only_when_its_control_process_was_lost_too() -> None:
    assert ending(a_result("lost"), recovered=True) is Ending.LOST
    assert ending(a_result("lost")) is Ending.FAILED


def test_a_supervisor_that_somebody_else_stopped_does_not_end_its_job() -> None:
    assert ending(a_result("stopped", 0), stopping=True) is Ending.STOPPED
    assert ending(a_result("stopped", 0)) is Ending.LOST


@pytest.mark.parametrize(
    "result", [a_result("exited", 0), a_result("exited", 3), a_result("signaled", number=15)]
)
def test_a_script_that_knows_only_signals_is_paused_however_it_ends(result: Result) -> None:
    assert ending(result, pausing=True, by_signals=True) is Ending.PAUSED
    assert ending(result, by_signals=True) is not Ending.PAUSED


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (a_result("exited", 0), "finished"),
        (a_result("exited", 7), "exit code 7"),
        (a_result("exited", 137), "exit code 137, killed by signal 9 (SIGKILL)"),
        (a_result("exited", 255), "exit code 255"),
        (a_result("exited", PAUSED_EXIT_CODE), "exit code 75, saved and left"),
        (a_result("signaled", number=11), "killed by signal 11 (SIGSEGV)"),
        (a_result("timeout"), "ran past its max_duration, 90 s"),
        (a_result("lost"), "it was lost"),
    ],
)
def test_how_it_ended_is_said_in_words(result: Result, said: str) -> None:
    assert say_of(result) == said
