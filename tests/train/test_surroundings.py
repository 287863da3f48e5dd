"""Was this script started by a control plane, and what was it given?"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from wattline.train import ScriptError
from wattline.train.surroundings import Cadence, Surroundings, warn_unless_pinned


def test_without_an_environment_a_script_is_alone() -> None:
    alone = Surroundings.read({})
    assert alone.attempt is None
    assert alone.checkpoints is None
    assert alone.keep is None
    assert alone.epoch == 0
    assert alone.cpus >= 1
    assert alone.out == Path.cwd() / "out"
    assert alone.cadence == Cadence(seconds=30.0)
    assert alone.lineage == {}


def test_everything_a_control_plane_gives_is_taken() -> None:
    given = Surroundings.read(
        {
            "WATTLINE_ATTEMPT": "/a",
            "WATTLINE_EPOCH": "3",
            "WATTLINE_CHECKPOINTS": "/c",
            "WATTLINE_CHECKPOINT_EVERY": "steps:50",
            "WATTLINE_CHECKPOINT_KEEP": "2",
            "WATTLINE_CHECKPOINT_TRAVELS": "1",
            "WATTLINE_OUT": "/o",
            "WATTLINE_CPUS": "4",
            "WATTLINE_RUN": "r-1",
            "WATTLINE_PHASE": "train",
        }
    )
    assert given == Surroundings(
        attempt=Path("/a"),
        epoch=3,
        checkpoints=Path("/c"),
        cadence=Cadence(steps=50),
        keep=2,
        travels=True,
        out=Path("/o"),
        cpus=4,
        lineage={"run": "r-1", "phase": "train"},
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WATTLINE_EPOCH", "-1"),
        ("WATTLINE_EPOCH", "1.5"),
        ("WATTLINE_EPOCH", "9" * 30),
        ("WATTLINE_CPUS", "0"),
        ("WATTLINE_CHECKPOINT_KEEP", "0"),
        ("WATTLINE_CHECKPOINT_EVERY", "50"),
        ("WATTLINE_CHECKPOINT_EVERY", "steps:0"),
        ("WATTLINE_CHECKPOINT_EVERY", "steps:2.5"),
        ("WATTLINE_CHECKPOINT_EVERY", "seconds:nan"),
        ("WATTLINE_CHECKPOINT_EVERY", "seconds:-3"),
        ("WATTLINE_CHECKPOINT_EVERY", "minutes:3"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_what_would(name: str, value: str) -> None:
    with pytest.raises(ScriptError, match=name) as caught:
        Surroundings.read({name: value})
    assert caught.value.hint is not None


def test_a_cadence_comes_round_by_steps_or_by_seconds() -> None:
    assert not Cadence(steps=5).is_due(steps=4, seconds=1e6)
    assert Cadence(steps=5).is_due(steps=5, seconds=0)
    assert not Cadence(seconds=5).is_due(steps=10**6, seconds=4.9)
    assert Cadence(seconds=5).is_due(steps=0, seconds=5)


@pytest.mark.parametrize(
    ("environment", "is_pinned"),
    [
        ({}, False),
        ({"OMP_NUM_THREADS": "1"}, True),
        ({"OMP_NUM_THREADS": "2"}, False),
        ({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "8"}, False),
        ({"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, True),
    ],
)
def test_loose_blas_threads_are_noticed(environment: dict[str, str], is_pinned: bool) -> None:
    if is_pinned:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_unless_pinned(environment)
    else:
        with pytest.warns(RuntimeWarning, match="not pinned"):
            warn_unless_pinned(environment)
