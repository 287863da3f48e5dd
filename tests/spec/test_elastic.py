"""`elastic` and `resizing` as people write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wattline.errors import WattlineError
from wattline.spec.pipeline import Pipeline
from wattline.spec.policy import Policy
from wattline.spec.reader import parse_document
from wattline.state import requests_of


def a_pipeline(resources: dict[str, Any], **train: Any) -> Pipeline:
    phase = {"run": "python train.py", "resources": resources, **train}
    document = {"pipeline": "p", "model": "m", "owner": "o", "project": "q", "phases": {"train": phase}}
    return parse_document(json.dumps(document).encode(), Pipeline, file="wattline.yaml")


def test_a_phase_that_says_its_widths_asks_for_them() -> None:
    limits = {"peak_power": "3.2kW", "max_duration": "4h"}
    pipeline = a_pipeline({"gpus": 8, "elastic": {"min": 4, "max": 16, "step": 2}}, constraints=limits)
    (request,) = requests_of(pipeline, "r1")
    assert request.gpus == 8
    wide = request.at_width(16)
    assert (wide.gpus, wide.peak_watts) == (16, 6400.0)
    assert wide.max_duration_seconds == pytest.approx(4 * 3600 / 2**0.9)
    assert wide.at_width(4).as_asked == request
    assert wide.each_watts == request.each_watts


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({"gpus": 8, "elastic": {"min": 10, "max": 16}}, "gpus (8) is from elastic.min (10)"),
        ({"gpus": 8, "elastic": {"min": 2, "max": 4}}, "to elastic.max (4)"),
        ({"gpus": 8, "elastic": {"min": 3, "max": 8, "step": 2}}, "so many times elastic.step (2) more"),
        ({"gpus": 8, "elastic": {"min": 4, "max": 8, "alpha": 1.5}}, "alpha"),
    ],
)
def test_widths_that_do_not_meet_are_told_with_their_numbers(resources: dict[str, Any], said: str) -> None:
    with pytest.raises(WattlineError) as told:
        a_pipeline(resources)
    assert said in str(told.value)


def test_a_policy_resizes_nobody_unless_it_says_so() -> None:
    assert Policy().resizing is None
    asked = parse_document(b"resizing: {least_time: 5min}", Policy, file="policy.yaml").resizing
    assert asked is not None
    assert (asked.least_time, asked.restart, asked.least_gain) == (300.0, 60.0, 2.0)
