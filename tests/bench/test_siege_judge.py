"""The judge of a siege sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.siege_judge import Diary, Findings, judge_overlaps

from wattline.state import CheckpointSaved

pytestmark = pytest.mark.needs("initdb", "slurmctld")


def a_diary(folder: Path, *lines: tuple[str, int, dict[str, int]]) -> Diary:
    whole = [
        {"what": what, "run": "r", "phase": "p", "attempt": attempt, "pid": 1, "at": float(number), **more}
        for number, (what, attempt, more) in enumerate(lines)
    ]
    path = folder / "diary.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    return Diary(path)


def overlaps(diary: Diary, winner: int, *saved: CheckpointSaved) -> list[str]:
    findings = Findings()
    judge_overlaps(findings, diary, {("r/p", winner)}, list(saved))
    return findings.wrong["two attempts of a job lived at once, both able to publish"]


def test_an_attempt_that_began_twice_is_counted(tmp_path: Path) -> None:
    assert a_diary(tmp_path, ("began", 1, {}), ("began", 1, {})).began == {("r/p", 1): 2}


def test_an_old_attempt_beside_the_next_is_fenced_unless_it_counts_or_saves(tmp_path: Path) -> None:
    diary = a_diary(tmp_path, ("began", 1, {}), ("began", 2, {}), ("beside", 2, {"other": 1}))
    late = CheckpointSaved(at=1.5, job="r/p", attempt=1, step=3, site="oslo")
    early = CheckpointSaved(at=0.5, job="r/p", attempt=1, step=3, site="oslo")
    assert overlaps(diary, 2, early) == []
    assert overlaps(diary, 1) == ["r/p: attempts 1 and 2"]
    assert overlaps(diary, 2, late) == ["r/p: attempts 1 and 2"]
