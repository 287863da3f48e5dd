"""Is the result good enough to be released?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.release import judge_gates

METRICS = {
    "accuracy": 0.92,
    "latency_p95_ms": 41,
    "loss": math.nan,
    "top": math.inf,
    "label": "good",
    "ok": True,
}


@pytest.mark.parametrize(
    ("gate", "outcome", "message"),
    [
        ("accuracy >= 0.92", "pass", "accuracy = 0.92"),
        ("accuracy > 0.92", "fail", "accuracy = 0.92"),
        ("accuracy >= 92%", "pass", "accuracy = 0.92"),
        ("latency_p95_ms <= 40", "fail", "latency_p95_ms = 41"),
        ("accuracy > 0.5 && latency_p95_ms < 50", "pass", "accuracy = 0.92, latency_p95_ms = 41"),
        ("acuracy >= 0.92", "unknown", "acuracy was not measured; did you mean 'accuracy'?"),
        ("fairness_gap <= 0.05", "unknown", "fairness_gap was not measured; what was: accuracy, label"),
        ("accuracy > 0.5 || fairness_gap <= 0.05", "unknown", "fairness_gap was not measured"),
        ("loss < 2", "fail", "loss is not a number (NaN)"),
        ("!(loss > 2)", "fail", "loss is not a number (NaN)"),
        ("top > 1", "fail", "top is infinite"),
        ("label > 1", "fail", "label is 'good', which is not a number"),
        ("ok > 0", "fail", "ok is 'True', which is not a number"),
        ("accuracy >=", "unknown", "cannot be read"),
        ("accuracy + 1", "unknown", "cannot be read"),
    ],
)
def test_a_gate_passes_only_by_numbers_that_are_there(gate: str, outcome: str, message: str) -> None:
    (result,) = judge_gates([gate], METRICS)
    assert (result.gate, result.outcome) == (gate, outcome)
    assert message in result.message


def test_every_gate_is_judged_also_after_one_has_failed() -> None:
    results = judge_gates(["accuracy > 1", "accuracy > 0"], METRICS)
    assert [result.outcome for result in results] == ["fail", "pass"]
    assert results[0].values == {"accuracy": 0.92}


def test_a_value_that_cannot_be_used_is_none() -> None:
    (result,) = judge_gates(["loss < accuracy + absent"], METRICS)
    assert result.values == {"loss": None, "accuracy": 0.92, "absent": None}


@given(st.text(max_size=40), st.dictionaries(st.text(max_size=5), st.floats(), max_size=3))
def test_no_text_makes_judging_fail(gate: str, metrics: dict[str, object]) -> None:
    (result,) = judge_gates([gate], metrics)
    assert result.outcome in {"pass", "fail", "unknown"}
