"""Ramps, starts, swings, modes and throttling as people write them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from wattline import units
from wattline.errors import DocumentError
from wattline.facility import Starts
from wattline.spec import FacilityDocument, Pipeline, build_facility, parse_document, read_facility
from wattline.spec.facility_write import write_facility
from wattline.spec.policy import Policy
from wattline.spec.site import FeedDocument
from wattline.state import requests_of

HEAD = {"pipeline": "p", "model": "m", "owner": "o", "project": "p"}


def a_pipeline(phases: dict[str, Any], **more: Any) -> Pipeline:
    return Pipeline.model_validate(HEAD | {"phases": phases} | more)


def test_nothing_is_limited_chosen_or_weighed_unless_said() -> None:
    policy = Policy()
    assert not policy.starts.is_on
    assert not policy.throttling.is_on
    assert (policy.modes.budget_below, policy.modes.cost_above) == (None, None)
    feed = FeedDocument.model_validate({"rating": "10kW"})
    assert (feed.ramp, feed.swing) == (None, None)


@pytest.mark.parametrize(
    ("written", "watts_per_minute"), [("30kW/min", 30e3), ("0.5kW/s", 30e3), ("1MW/min", 1e6)]
)
def test_a_ramp_is_written_in_watts_by_the_minute_or_the_second(
    written: str, watts_per_minute: float
) -> None:
    assert units.RAMP.parse(written) == watts_per_minute
    assert FeedDocument.model_validate({"rating": "10kW", "ramp": written}).ramp == watts_per_minute


@pytest.mark.parametrize("ramp", ["30kW", "0kW/min", "-3kW/min", 30, "soon"])
def test_a_ramp_without_its_time_is_refused(ramp: object) -> None:
    with pytest.raises(ValidationError):
        FeedDocument.model_validate({"rating": "10kW", "ramp": ramp})


@pytest.mark.parametrize(
    "document",
    [
        {"starts": {"at_once": 0}},
        {"starts": {"within": "0s"}},
        {"modes": {"canonical_above": 2}},
        {"modes": {"cost_above": -1}},
        {"throttling": {"priority": -1}},
        {"thresholds": {"swing_factor": 0.5}},
    ],
)
def test_what_cannot_be_meant_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(document)


def test_auto_without_two_ways_says_what_to_write() -> None:
    source = b"""
pipeline: p
model: m
owner: o
project: p
phases:
  train: {run: python train.py, mode: auto}
"""
    with pytest.raises(
        DocumentError, match=r"modes: \{approximate: \{run: .*max_duration: 10min\}\}"
    ) as caught:
        parse_document(source, Pipeline, file="wattline.yaml")
    assert "wattline.yaml:7" in str(caught.value)


def test_a_release_rests_on_the_last_phase_and_on_what_led_to_it() -> None:
    phases = {
        "prepare": {"run": "a"},
        "explore": {"run": "b", "after": ["prepare"]},
        "train": {"run": "c", "after": ["prepare"]},
        "evaluate": {"run": "d", "after": ["train"]},
    }
    pipeline = a_pipeline(phases, release={"name": "m", "to": "production", "change": "small"})
    assert pipeline.rests_on() == {"prepare", "train", "evaluate"}
    asked = {request.phase: (request.channel, request.change) for request in requests_of(pipeline, "r1")}
    assert asked["train"] == ("production", "small")
    assert asked["explore"] == ("", "small")


@pytest.mark.parametrize(
    ("mode", "seconds"), [("canonical", 7200.0), ("approximate", 60.0), ("auto", 7200.0)]
)
def test_each_way_has_its_own_end(mode: str, seconds: float) -> None:
    modes = {"canonical": {"max_duration": "2h"}, "approximate": {"max_duration": "1min"}}
    train = {"run": "a", "mode": mode, "modes": modes, "constraints": {"max_duration": "1h"}}
    (request,) = requests_of(a_pipeline({"train": train}), "r1")
    assert (request.max_duration_seconds, request.approximate_seconds) == (seconds, 60.0)


def test_a_floor_takes_the_place_of_what_gpus_draw_while_they_communicate() -> None:
    train = {"run": "a", "swing": {"communicating": "120W", "step": "2s", "floor": "300W"}}
    (request,) = requests_of(a_pipeline({"train": train}), "r1")
    assert (request.communicating_watts, request.step_seconds) == (300.0, 2.0)


def test_what_a_feed_bears_and_how_many_may_start_are_written_back() -> None:
    facility = read_facility("lab")
    bears: dict[str, Any] = {"ramp_watts_per_minute": 5e3, "swing_watts": 4e3, "swing_seconds": 0.2}
    sites = [
        replace(
            site,
            supplies=tuple(replace(supply, **bears) for supply in site.supplies),
            starts=Starts(at_once=3, within_seconds=20.0, spacing_seconds=1.0, loads_at_once=2),
        )
        for site in facility.sites
    ]
    changed = replace(facility, sites=tuple(sites))
    assert build_facility(FacilityDocument.model_validate(write_facility(changed))) == changed
