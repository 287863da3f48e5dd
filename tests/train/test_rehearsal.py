from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wattline import train
from wattline.train import ScriptError


@pytest.fixture(autouse=True)
def rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WATTLINE_REHEARSE", "2")


def test_a_rehearsal_ends_after_the_steps_it_was_given() -> None:
    run = train.start(model={"w": np.zeros(2)})
    assert list(run.steps(10_000_000)) == [0, 1]


def test_a_loop_that_is_shorter_ends_as_always() -> None:
    run = train.start(model={"w": np.zeros(2)})
    assert list(run.steps(1)) == [0]


def test_a_rehearsal_that_resumes_counts_from_there(tmp_path: Path) -> None:
    for expected in ([0, 1], [2, 3]):
        run = train.start(model={"w": np.zeros(2)}, checkpoints=tmp_path / "checkpoints")
        assert list(run.steps(10)) == expected


def test_a_number_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTLINE_REHEARSE", "all")
    with pytest.raises(ScriptError, match="WATTLINE_REHEARSE is 'all'"):
        train.start(model={"w": np.zeros(2)})
