"""Waiting, failing and running again: each GPU-hour once, and only what is inside the window."""

import pytest

from cluster_history import a_history
from wattline.observing.accounting import Accounts, Spell
from wattline.observing.losses import allocated_by_node, tally, waiting_by_step
from wattline.observing.weighing import trace_rows
from wattline.observing.window import Window, window_before

WINDOW = Window(begins_at=10_000.0, step_seconds=600.0, steps=6)


def a_spell(
    job: str, state: str, eligible_at: float, started_at: float | None, ended_at: float | None
) -> Spell:
    return Spell(
        job=job,
        account="lab",
        partition="main",
        state=state,
        reason="",
        submitted_at=eligible_at,
        eligible_at=eligible_at,
        started_at=started_at,
        ended_at=ended_at,
        gpus=4,
        hosts=("n1", "n2"),
    )


@pytest.mark.parametrize("seed", range(1, 9))
def test_what_was_put_into_an_hour_is_found_again(seed: int) -> None:
    history = a_history(1_800_000_000, seed=seed)
    accounts = Accounts()
    accounts.read(history.sacct().splitlines(), "sacct")
    counted = tally(accounts.spells.values(), window_before(float(history.ends_at), 3600.0), {})
    found = {
        "queueing": counted.waited.gpu_hours,
        "failed jobs": counted.failed.gpu_hours,
        "retries": counted.retried.gpu_hours,
    }
    for what, hours in found.items():
        assert hours == pytest.approx(history.truth.lost.get(what, 0.0) / 3600, rel=1e-6), (what, seed)


def test_a_spell_counts_once_and_only_inside_the_window() -> None:
    spells = [
        a_spell("1", "NODE_FAIL", 9_000, 9_400, 10_900),  # was begun again: a retry, 900 s inside
        a_spell("1", "FAILED", 10_900, 11_800, 20_000),  # waits 900 s, fails after 1,800 s inside
        a_spell("2", "PENDING", 13_000, None, None),  # waits 600 s to the end
        a_spell("3", "CANCELLED", 10_000, None, 10_900),  # left while it waited 900 s
        a_spell("4", "COMPLETED", 5_000, 6_000, 7_000),  # before
    ]
    counted = tally(spells, WINDOW, {"2": "Licenses"})
    assert counted.retried.by == {"NODE_FAIL": pytest.approx(1.0)}
    assert counted.failed.by == {"FAILED": pytest.approx(2.0)}
    assert counted.waited.by == {
        "not said": pytest.approx(2.0),
        "Licenses": pytest.approx(4 * 600 / 3600),
    }
    assert counted.cancelled.gpu_hours == 0
    assert counted.allocated_gpu_hours == pytest.approx(3.0)


def test_held_and_waiting_gpus_are_spread_over_steps() -> None:
    spells = [a_spell("1", "RUNNING", 10_000, 10_900, None)]
    held = allocated_by_node(spells, WINDOW, ["n1", "n2", "n3"])
    assert held[0].tolist() == pytest.approx([0, 1, 2, 2, 2, 2])
    assert held[2].tolist() == [0] * 6
    assert waiting_by_step(spells, WINDOW).tolist() == pytest.approx([4, 2, 0, 0, 0, 0])


def test_an_empty_window_has_no_losses() -> None:
    counted = tally([], WINDOW, {})
    assert (counted.jobs, counted.waited.gpu_hours, counted.waits_seconds) == (0, 0, ())
    assert trace_rows([], WINDOW) == []


def test_a_replay_gets_each_job_once_and_who_ran_already_comes_first() -> None:
    spells = [
        a_spell("1", "REQUEUED", 10_100, 10_200, 10_300),
        a_spell("1", "COMPLETED", 10_300, 10_400, 11_400),
        a_spell("2", "RUNNING", 8_000, 9_000, None),
        a_spell("3", "PENDING", 10_000, None, None),
    ]
    rows = [row.split("|")[:3] for row in trace_rows(spells, WINDOW)]
    assert rows == [["2", "10000", "3600"], ["1", "10100", "1000"]]
