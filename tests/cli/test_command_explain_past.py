"""What was decided then is told as it was then, and where another policy would have decided otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.deciding import NOBODY, end, start, submit, three_in_line, write_policy
from cli.looking import Wattline, Writing
from wattline.errors import UsageError
from wattline.plane.past import read_moment
from wattline.state import Expected, Forecasted


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def a_wait(writing: Writing) -> float:
    """A time at which the third job waited; it has ended since."""
    for run in ("first", "second", "third"):
        submit(writing, run)
    for run in ("first", "second"):
        start(writing, run)
    at = writing.now + 0.5
    end(writing, "first")
    start(writing, "third")
    end(writing, "third")
    return at


def test_a_job_is_explained_as_it_stood_then(writing: Writing, wattline: Wattline) -> None:
    at = a_wait(writing)
    now = wattline("explain", "third/train", "--output", "json").json
    then = wattline("explain", "third/train", "--at", stamp(at), "--output", "json").json
    assert (now["state"], then["state"]) == ("succeeded", "waiting")
    assert then["blocked_by"]["short_by"] == 1
    assert then["decided"]["what"] == "waits"
    assert then["policy"] == "default"
    assert then["record"] < writing.session.store.journal.last_seq()
    assert {entry["what"] for entry in then["history"]} == {"submitted", "waits"}
    assert then["if"] is None
    text = wattline("explain", "third/train", "--at", stamp(at)).out
    assert "third/train waits for" in text
    assert f"(record {then['record']}), by policy default" in text
    assert "nobody conducts" not in text


def test_a_snapshot_in_between_changes_nothing(writing: Writing, wattline: Wattline) -> None:
    for run in ("first", "second"):
        submit(writing, run)
    writing.session.save_snapshot()
    submit(writing, "third")
    at = writing.now + 0.5
    start(writing, "first")
    end(writing, "first")
    writing.session.save_snapshot()
    then = wattline("explain", "third/train", "--at", stamp(at), "--output", "json").json
    assert then["state"] == "waiting"
    early = wattline("explain", "first/train", "--at", stamp(at), "--output", "json").json
    assert early["state"] == "starting"


def test_the_eta_is_the_one_that_was_told_then(writing: Writing, wattline: Wattline) -> None:
    for run in ("first", "second", "third"):
        submit(writing, run)
    starts = (Expected("third/train", writing.now + 3600.0, writing.now + 4000.0),)
    writing.step(Forecasted(at=writing.now, starts=starts, samples=9, horizon_seconds=86400.0))
    at = writing.now
    end(writing, "first")
    then = wattline("explain", "third/train", "--at", stamp(at + 0.5), "--output", "json").json
    assert then["eta"]["samples"] == 9
    text = " ".join(wattline("explain", "third/train", "--at", stamp(at + 0.5)).out.split())
    assert "(p50), " in text
    assert "(p90)." in text
    assert "goes on" not in text


def test_another_policy_names_the_first_decision_that_differs_and_its_rule(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    strict = write_policy(tmp_path, **NOBODY)
    asked = wattline("explain", "second/train", "--at", "-0s", "--if", f"policy={strict}", "-o", "json")
    other = asked.json["if"]
    assert other["policy"] == "strict"
    first = other["first_difference"]
    assert (first["kind"], first["rule"], first["job"]) == ("start → refuse", "rule.nobody", "second/train")
    assert first["decided"]["place"]
    assert "not today" in first["say"]
    assert other["first_difference_of_any_job"]["record"] == first["record"], "asked from its submission on"
    text = wattline("explain", "second/train", "--if", f"policy={strict}").out
    assert "first differs at" in text
    assert "rule.nobody" in text


def test_a_policy_that_agrees_says_so(writing: Writing, wattline: Wattline, tmp_path: Path) -> None:
    three_in_line(writing)
    same = write_policy(tmp_path, "same")
    other = wattline("explain", "third/train", "--if", f"policy={same}", "-o", "json").json["if"]
    assert (other["differs"], other["first_difference"], other["differences"]) == (False, None, 0)
    assert "would have been the same" in wattline("explain", "third/train", "--if", f"policy={same}").out


def test_a_time_before_the_job_says_when_it_came(writing: Writing, wattline: Wattline) -> None:
    submit(writing, "first")
    at = writing.now + 0.5
    writing.now += 10
    submit(writing, "later")
    told = wattline("explain", "later/train", "--at", stamp(at))
    assert told.code == 2
    assert "later/train did not exist at" in told.err
    assert "it was submitted at" in told.err


def test_a_time_before_the_journal_and_an_unknown_job_are_wrong_usage(
    writing: Writing, wattline: Wattline
) -> None:
    submit(writing, "first")
    told = wattline("explain", "first/train", "--at", "2020-01-01T00:00Z")
    assert (told.code, "nothing was recorded here yet" in told.err) == (2, True)
    told = wattline("explain", "frist/train", "--at", "-1s")
    assert (told.code, "did you mean first/train?" in told.err) == (2, True)


def test_a_journal_whose_beginning_is_gone_says_so(writing: Writing, wattline: Wattline) -> None:
    from sqlalchemy import create_engine, text

    for run in ("first", "second", "third"):
        submit(writing, run)
    at = writing.now + 0.5
    end(writing, "first")
    writing.session.save_snapshot()
    engine = create_engine(f"sqlite:///{writing.session.home.root / 'wattline.db'}")
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM journal WHERE seq <= 2"))
    engine.dispose()
    told = wattline("explain", "third/train", "--at", stamp(at))
    assert told.code == 3
    assert "what came before was trimmed" in told.err
    later = stamp(writing.now + 0.5)
    assert wattline("explain", "third/train", "--at", later).code == 0, "a snapshot is kept"


@pytest.mark.parametrize("text", ["yesterday", "-2", "-many", "", "2026-13-01", "-2h2"])
def test_what_is_no_time_is_told_with_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        read_moment(text)


def test_times_are_absolute_or_counted_back() -> None:
    assert read_moment("-2h", 10_000.0) == 2800.0
    assert read_moment("1970-01-01T01:00Z", 10_000.0) == 3600.0
    with pytest.raises(UsageError, match="has not come yet"):
        read_moment("1970-01-01T05:00Z", 10_000.0)


def test_only_a_policy_can_be_another(writing: Writing, wattline: Wattline) -> None:
    submit(writing, "first")
    told = wattline("explain", "--if", "facility=x")
    assert (told.code, "policy=FILE" in told.err) == (2, True)
    assert wattline("explain", "--if", "policy=missing.yaml").code == 3
