from __future__ import annotations

from cli.looking import Wattline, Writing
from wattline.state import (
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Expected,
    Forecasted,
    Noticed,
    Place,
)

_HERE, _THERE = Place("here", (("here/r1-n1", 1),)), Place("there", (("there/r1-n1", 1),))
_KEYS = {"job", "state", "blocked_by", "eta", "options", "verdicts", "not_estimated", "history"}


def test_a_run_that_ended_is_told_as_a_story(ran: str, wattline: Wattline) -> None:
    told = wattline("explain")
    assert told.code == 0
    words = [line.split()[2] for line in told.out.splitlines() if " train  " in line]
    assert words == ["admitted", "started", "saved", "finished"]
    assert f"{ran}/train: succeeded" in told.out


def test_a_job_can_be_named_in_three_ways(ran: str, wattline: Wattline) -> None:
    by_job = wattline("explain", f"{ran}/train", "--output", "json").json
    by_phase = wattline("explain", "train", "--output", "json").json
    by_run = wattline("explain", ran, "--output", "json").json
    assert by_job == by_phase
    assert by_job.keys() >= _KEYS
    assert by_job["state"] == "succeeded"
    assert [job["job"] for job in by_run["jobs"]] == [f"{ran}/prepare", f"{ran}/train"]


def test_an_unknown_job_gets_the_nearest_name(ran: str, wattline: Wattline) -> None:
    told = wattline("explain", "tarin")
    assert told.code == 2
    assert "did you mean train?" in told.err


def test_a_waiting_job_says_what_it_lacks_and_what_would_start_it(
    writing: Writing, wattline: Wattline
) -> None:
    wait_in_line(writing)
    told = wattline("explain", "third/train", "--output", "json").json
    assert told["state"] == "waiting"
    assert told["blocked_by"]["short_by"] == 1
    assert told["not_estimated"] == []
    assert told["verdicts"]
    text = wattline("explain", "third/train").out
    assert "third/train waits for" in text
    assert "outcome" in text, "the verdicts have a table"


def wait_in_line(writing: Writing) -> None:
    for run in ("first", "second", "third"):
        writing.submit(run)
    writing.decide()


def test_a_waiting_job_has_an_eta_also_where_nobody_has_forecast_it_yet(
    writing: Writing, wattline: Wattline
) -> None:
    wait_in_line(writing)
    records = writing.session.store.journal.last_seq()
    told = wattline("explain", "third/train", "--output", "json").json
    eta = told["eta"]
    assert told["as_of"] <= eta["p50"] <= eta["p90"]
    assert (eta["age_seconds"], eta["samples"]) == (0.0, 16)
    assert wattline("explain", "first/train", "--output", "json").json["eta"] is None
    assert writing.session.store.journal.last_seq() == records, "looking writes nothing"


def test_the_forecast_of_who_conducts_is_told_with_its_age(writing: Writing, wattline: Wattline) -> None:
    wait_in_line(writing)
    at = writing.now
    starts = (Expected("third/train", at + 3600.0, None),)
    writing.step(Forecasted(at=at, starts=starts, samples=3, horizon_seconds=7 * 86400.0))
    told = wattline("explain", "third/train", "--output", "json").json
    assert (told["eta"]["samples"], told["eta"]["p90"]) == (3, None)
    assert 500 < told["eta"]["age_seconds"] < 3600, "the journal is ten minutes old"
    assert told["not_estimated"] == ["eta.p90"]
    text = wattline("explain", "third/train").out
    said = " ".join(text.split())
    assert "third/train waits for" in said
    assert "short. Starts" in said, "the reason, then when"
    assert "(p50), p90 not known." in said
    assert "expected if work comes as it came lately; forecast" in said


def test_where_nobody_conducts_a_start_is_counted_from_when_somebody_does(
    writing: Writing, wattline: Wattline
) -> None:
    wait_in_line(writing)
    writing.session.close()
    text = wattline("explain", "third/train").out
    assert "(p90) after somebody goes on with it" in " ".join(text.split())
    assert "forecast" not in text, "it was made for this answer"


def test_why_a_job_moved_is_said_first(writing: Writing, wattline: Wattline) -> None:
    move(writing)
    told = wattline("explain", "train")
    (line,) = [line for line in told.out.splitlines() if line.startswith("why it moved")]
    assert "here → there" in line
    assert "too hot" in line
    assert "fan-trip" in told.out
    assert "costs 1.5 min of GPU time" in told.out


def test_moves_and_prices_are_data_too(writing: Writing, wattline: Wattline) -> None:
    move(writing)
    told = wattline("explain", "train", "--output", "json").json
    (moved,) = told["moves"]
    assert (moved["from"], moved["to"]) == ("here", "there")
    actions = [(entry["action"], entry["lost_gpu_seconds"]) for entry in told["history"] if entry["action"]]
    assert actions == [("start", 0.0), ("pause", 30.0), ("migrate", 90.0)]
    assert [entry["what"] for entry in told["history"]].count("fault") == 1
    assert "not_estimated" in told


def test_checkpoints_that_another_followed_are_left_out_of_the_text_alone(
    writing: Writing, wattline: Wattline
) -> None:
    move(writing)
    assert wattline("explain", "train").out.count("saved") == 1
    told = wattline("explain", "train", "--output", "json").json
    assert [entry["what"] for entry in told["history"]].count("saved") == 2


def test_what_a_script_had_noticed_cannot_give_orders_to_the_terminal(
    writing: Writing, wattline: Wattline
) -> None:
    writing.submit("run")
    writing.step(Noticed(at=writing.now, subject="x", say="\x1b]0;owned\x07", job="run/train"))
    assert "\x1b" not in wattline("explain").out


def move(writing: Writing) -> None:
    """A job that starts here, meets a fault, is paused, and goes on there."""
    job, writer = "run/train", writing
    writer.submit("run")
    act(writer, ActionKind.START, 1, _HERE)
    writer.step(AttemptStarted(at=writer.now, job=job, attempt=1))
    for step in (10, 20):
        writer.step(CheckpointSaved(at=writer.now, job=job, attempt=1, step=step, site="here", size_bytes=9))
    writer.step(Noticed(at=writer.now, subject="here/room", say="fault fan-trip begins", source="emulated"))
    act(writer, ActionKind.PAUSE, 1, None, because="here/room is too hot", lost_gpu_seconds=30.0)
    writer.step(AttemptEnded(at=writer.now, job=job, attempt=1, ending=Ending.PAUSED))
    act(writer, ActionKind.MIGRATE, 2, _THERE, because="from here to there", lost_gpu_seconds=90.0)
    writer.step(AttemptStarted(at=writer.now, job=job, attempt=2))


def act(
    writer: Writing,
    kind: ActionKind,
    attempt: int,
    place: Place | None,
    *,
    because: str = "",
    lost_gpu_seconds: float = 0.0,
) -> None:
    action = Action(
        id=f"run/train#{attempt}.{kind}",
        kind=kind,
        job="run/train",
        attempt=attempt,
        place=place,
        because=because,
        lost_gpu_seconds=lost_gpu_seconds,
    )
    writer.now += 1
    writer.step(decision=Decision(at=writer.now, actions=(action,)))
