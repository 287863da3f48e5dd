"""A person lets a job that waits go to a cloud, and whoever conducts does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import DESK, Wattline, Writing

CLOUD = """\
  far:
    region: eu
    cloud: {instance: {gpu: A100, gpus: 1}, max_gpus: 1, price: 4.1, egress: 0.09}
links: [{name: wan, between: [here, far], bandwidth: 1Gbps, latency: 10ms}]
"""


@pytest.fixture
def cloudy(writing: Writing, home: Path) -> Writing:
    """Two GPUs of our own are taken, and a third job waits beside a machine that may be rented."""
    path = home.parent / "cloudy.yaml"
    path.write_text(DESK + CLOUD)
    session = writing.session
    writing.step(session.adopt(session.keep_facility(path), session.keep_policy("default"), writing.now))
    for run in ("first", "second", "third"):
        writing.submit(run)
    writing.decide()
    return writing


def test_what_explain_offers_is_taken_by_burst(cloudy: Writing, wattline: Wattline) -> None:
    offered = wattline("explain", "third/train", "--output", "json").json["options"]
    assert "let it burst to far (on demand 4.10 USD/GPU-h, egress 1 GB)" in [
        option["change"] for option in offered
    ]
    told = wattline("burst", "third/train", "--output", "json")
    assert (told.code, told.json) == (0, {"jobs": ["third/train"], "regions": ["far"]})
    cloudy.step(*cloudy.session.requests())
    cloudy.decide()
    state = cloudy.session.state
    assert state is not None
    place = state.jobs["third/train"].place
    assert place is not None
    assert place.site == "far"


def test_a_job_that_runs_has_nothing_to_burst(cloudy: Writing, wattline: Wattline) -> None:
    assert cloudy.session.state is not None
    told = wattline("burst", "first/train")
    assert told.code == 0
    assert "no job of it waits for GPUs" in told.out


def test_without_a_region_there_is_nowhere_to_go(writing: Writing, wattline: Wattline) -> None:
    writing.submit("first")
    told = wattline("burst")
    assert told.code != 0
    assert "facility desk has no cloud region" in told.err
