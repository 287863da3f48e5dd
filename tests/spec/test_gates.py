from __future__ import annotations

import pytest

from wattline.spec import compile_gate, gate_metrics
from wattline.spec.gates import check_gate


def test_a_gate_is_judged_by_the_metrics_it_names() -> None:
    gate = "accuracy >= 0.92 && latency_p95_ms <= 40"
    assert gate_metrics(gate) == ("accuracy", "latency_p95_ms")
    assert compile_gate(gate).holds({"accuracy": 0.92, "latency_p95_ms": 40})
    assert not compile_gate(gate).holds({"accuracy": 0.9199, "latency_p95_ms": 40})


def test_a_gate_may_speak_of_nested_metrics() -> None:
    assert compile_gate("eval.accuracy > 90%").holds({"eval.accuracy": 0.91})


@pytest.mark.parametrize("gate", ["true", "1 > 2", "accuracy", "accuracy >=", ""])
def test_a_gate_that_measures_nothing_is_refused(gate: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_gate(gate)
