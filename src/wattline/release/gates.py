"""Is the result good enough to be released?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wattline.live.hearing import read_number
from wattline.spec import ExpressionError, compile_gate, gate_metrics
from wattline.spec.nearest import did_you_mean

GateOutcome = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What one gate said; `values` holds the metrics it asked for, None where there is no usable number."""

    gate: str
    outcome: GateOutcome
    values: Mapping[str, float | None]
    message: str


def judge_gates(gates: Sequence[str], metrics: Mapping[str, object]) -> tuple[GateResult, ...]:
    """Judge every gate, also after one has failed. A gate that cannot be judged is never a pass."""
    return tuple(_judge_gate(gate, metrics) for gate in gates)


def _judge_gate(gate: str, metrics: Mapping[str, object]) -> GateResult:
    try:
        names, expression = gate_metrics(gate), compile_gate(gate)
    except ValueError as error:
        return GateResult(gate=gate, outcome="unknown", values={}, message=f"cannot be read: {error}")
    values = {name: read_number(metrics.get(name)) for name in names}
    missing = [name for name in names if name not in metrics]
    if missing:
        message = "; ".join(_say_missing(name, metrics) for name in missing)
        return GateResult(gate=gate, outcome="unknown", values=values, message=message)
    unusable = [f"{name} is {_shown(metrics[name])}" for name in names if values[name] is None]
    if unusable:
        return GateResult(gate=gate, outcome="fail", values=values, message="; ".join(unusable))
    try:
        holds = expression.holds(values)
    except ExpressionError as error:
        return GateResult(gate=gate, outcome="unknown", values=values, message=error.message)
    measured = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    return GateResult(gate=gate, outcome="pass" if holds else "fail", values=values, message=measured)


def _shown(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "not a number (NaN)"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "infinite"
    return f"{str(value)[:40]!r}, which is not a number"


def _say_missing(name: str, metrics: Collection[str]) -> str:
    measured = ", ".join(sorted(metrics)[:10]) or "nothing"
    return f"{name} was not measured{did_you_mean(name, metrics) or f'; what was: {measured}'}"
