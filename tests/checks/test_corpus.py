"""Broken repositories and good ones: is every defect caught by the check that is for it, and by no other?"""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.corpus import defects_data, defects_environment
from checks.corpus.making import KINDS, Defect, asking, good
from wattline.checks import Check, preflight

DEFECTS = [*defects_data.DEFECTS, *defects_environment.DEFECTS]


def looked_at(folder: Path, *, rehearse: bool) -> list[Check]:
    checks = list(preflight(asking(folder, rehearse=rehearse)).checks)
    for check in checks:
        assert check.outcome != "fail" or check.fix, f"{check.title} fails without saying what to do"
    return checks


def alarms(checks: list[Check]) -> set[tuple[str, str]]:
    return {(check.check, check.outcome) for check in checks if check.outcome in ("fail", "warn")}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.check}: {defect.name}")
def test_a_defect_is_caught_by_the_check_that_is_for_it(tmp_path: Path, defect: Defect) -> None:
    defect.make(tmp_path)
    checks = looked_at(tmp_path, rehearse=defect.rehearse)
    assert alarms(checks) == {(defect.check, defect.outcome)}, checks


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_repository_raises_no_alarm(tmp_path: Path, kind: str) -> None:
    good(tmp_path, kind)
    checks = looked_at(tmp_path, rehearse=True)
    assert alarms(checks) == set(), checks
    assert any(check.check == "rehearsal" and check.outcome == "pass" for check in checks)


@pytest.mark.parametrize("kind", ["tabular", "text", "phases", "shell"])
def test_data_that_is_as_it_was_recorded_raises_no_alarm(tmp_path: Path, kind: str) -> None:
    good(tmp_path, kind)
    defects_data.record(tmp_path)
    checks = looked_at(tmp_path, rehearse=False)
    assert alarms(checks) == set(), checks


def test_the_corpus_is_as_large_as_it_says() -> None:
    names = [defect.name for defect in DEFECTS]
    assert len(set(names)) == len(names)
    assert len([defect for defect in DEFECTS if defect.outcome == "fail"]) >= 40
    assert len(KINDS) >= 10
