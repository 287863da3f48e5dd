"""A policy is tried before it is in force: on what was recorded, and where things break."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import NOBODY, end, start, submit, three_in_line, write_policy
from cli.looking import Wattline, Writing

ONLY_HISTORY = ("--scenario", "none")


def test_the_policy_that_was_in_force_does_what_was_done(writing: Writing, wattline: Wattline) -> None:
    three_in_line(writing)
    told = wattline("policy", "test", "default", *ONLY_HISTORY, "--output", "json")
    assert told.code == 0
    history = told.json["history"]
    assert history["jobs"] == 3
    assert history["recorded"] == history["would"]
    assert (history["would"]["started"], history["would"]["refused"]) == (3, 0)
    assert told.json["verdict"] == "pass"


def test_a_policy_that_would_refuse_everything_is_said_loudly(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    strict = write_policy(tmp_path, **NOBODY)
    told = wattline("policy", "test", strict, *ONLY_HISTORY, "--output", "json")
    assert told.code == 1
    assert told.json["history"]["refuses_everything"]
    assert told.json["history"]["refused_by"] == {"rule.nobody": 3}
    (rule,) = told.json["rules"]
    assert (rule["rule"], rule["mode"], rule["holds"], rule["failed"]) == ("nobody", "block", 3, 0)
    text = wattline("policy", "test", strict, *ONLY_HISTORY)
    assert text.out.splitlines()[0].startswith("✗ it would REFUSE EVERYTHING")
    assert "refused by rule.nobody: 3 jobs" in text.out


def test_what_speaks_of_another_facility_is_told_and_passes(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    hold = {"name": "dso", "site": "elsewhere", "at": "2026-05-01T14:00Z", "lasts": "3h", "watts": "5kW"}
    policy = write_policy(tmp_path, "held", power_sharing={"by": "caps", "holds": [hold]})
    told = wattline("policy", "test", policy, *ONLY_HISTORY)
    assert told.code == 0
    assert "! power_sharing.holds: dso is about site elsewhere" in told.out.replace("\n", " ")
    assert wattline("policy", "test", policy, *ONLY_HISTORY, "-o", "json").json["warnings"]


def test_a_rule_that_cannot_be_evaluated_fails_the_test_even_if_it_only_warns(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    three_in_line(writing)
    rule = {"name": "first-gpu", "when": "job.gpu[0] == 'A100'", "say": "an A100", "mode": "report"}
    broken = write_policy(tmp_path, "broken", rules=[rule])
    told = wattline("policy", "test", broken, *ONLY_HISTORY, "--output", "json")
    assert told.code == 1
    (tried,) = told.json["rules"]
    assert (tried["failed"], tried["failed_for"]) == (3, "first/train")
    assert told.json["complaints"]
    assert not told.json["history"]["refuses_everything"]


def test_only_what_was_recorded_since_counts(writing: Writing, wattline: Wattline) -> None:
    submit(writing, "old")
    start(writing, "old")
    end(writing, "old")
    writing.now += 100
    since = writing.now
    submit(writing, "new")
    told = wattline("policy", "test", "default", *ONLY_HISTORY, "--since", _iso(since), "--output", "json")
    assert told.json["history"]["jobs"] == 1
    assert told.json["history"]["would"]["started"] == 1


def test_scenarios_are_tried_where_nothing_was_recorded(
    home: Path, wattline: Wattline, tmp_path: Path
) -> None:
    told = wattline("policy", "test", "default", "--scenario", "site-loss", "--output", "json")
    assert told.code == 0, told.err
    assert told.json["history"] is None
    assert told.json["not_estimated"] == ["history"]
    (played,) = told.json["scenarios"]
    assert played["jobs"]["submitted"] == played["would"]["started"] > 0
    assert not home.exists(), "looking makes no state folder"
    strict = write_policy(tmp_path, **NOBODY)
    told = wattline("policy", "test", strict, "--scenario", "site-loss")
    assert told.code == 1
    assert "it would REFUSE EVERYTHING in site-loss" in told.out


@pytest.mark.usefixtures("home")
def test_a_document_that_is_wrong_and_one_that_is_missing_have_their_codes(
    wattline: Wattline, tmp_path: Path
) -> None:
    wrong = write_policy(tmp_path, "wrong", ruels=[])
    told = wattline("policy", "test", wrong)
    assert (told.code, "did you mean 'rules'?" in told.err) == (2, True)
    assert wattline("policy", "test", tmp_path / "missing.yaml").code == 3
    assert wattline("policy", "test", "default", "--scenario", "no-such").code in (2, 3)
    nothing = wattline("policy", "test", "default", *ONLY_HISTORY)
    assert (nothing.code, "tried on nothing" in nothing.err) == (3, True)
    assert wattline("policy", "test", "default", "--since", "tomorrow").code == 2


def _iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()
