"""Marginal: what did the last runs of a model buy, and is another worth it?

The rule. Of four runs or more, the newest three are set against all: what they cost for each hundredth of
the gate's number by which they moved the best. Where they moved it by less than a thousandth, or for over
four times the price of all runs together, more of the same is not worth it: stop where the gate holds,
redesign where it does not. Also redesign where the way left to the gate costs more, at the newest price, than
all runs so far.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wattline.checks.report import Marginal
from wattline.state import State

_NEWEST = 3
_LEAST_RUNS = 4
_DEARER = 4.0
_HUNDREDTH, _LEAST_GAIN = 0.01, 0.001
_SIMPLE_GATE = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|>|<=|<)\s*([-+]?[0-9.]+(?:[eE][-+]?\d+)?)\s*")
_LONGEST_GATE = 200


@dataclass(frozen=True, slots=True)
class Goal:
    """A metric, which way is better, and where it is good enough."""

    metric: str
    higher_is_better: bool
    target: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: what it measured and what it cost."""

    value: float
    usd: float


def goal_of(gates: Sequence[str]) -> Goal | None:
    """The first gate that holds one metric against one number; None where there is none."""
    for gate in gates:
        found = _SIMPLE_GATE.fullmatch(gate) if len(gate) <= _LONGEST_GATE else None
        if found is not None:
            try:
                return Goal(found[1], found[2].startswith(">"), float(found[3]))
            except ValueError:  # such as 1.2.3
                continue
    return None


def trials_of(state: State, model: str, metric: str) -> list[Trial]:
    """All runs of a model whose gates measured the metric, in the order in which they ended."""
    found = []
    for run in state.runs.values():
        jobs = [state.jobs[job] for job in run.jobs]
        value = _measured(run.gates, metric)
        if run.ended_at is not None and value is not None and any(job.request.model == model for job in jobs):
            found.append((run.ended_at, run.run, Trial(value, sum(job.usage.usd for job in jobs))))
    return [trial for _, _, trial in sorted(found, key=lambda one: one[:2])]


def _measured(gates: Sequence[dict[str, object]], metric: str) -> float | None:
    for gate in gates:
        values = gate.get("values")
        value = values.get(metric) if isinstance(values, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def weigh_runs(goal: Goal, trials: Sequence[Trial]) -> Marginal:
    """In the order in which they ran."""
    if len(trials) < _LEAST_RUNS:
        say = f"{len(trials)} of {_LEAST_RUNS} runs that measured {goal.metric}"
        return Marginal(metric=goal.metric, runs=len(trials), say=say)
    sign = 1.0 if goal.higher_is_better else -1.0
    values = [sign * trial.value for trial in trials]
    best, before = max(values), max(values[:-_NEWEST])
    hundredth = _HUNDREDTH * (abs(goal.target) or 1.0)
    newest_usd, all_usd = (sum(one.usd for one in part) for part in (trials[-_NEWEST:], trials))
    newest = _price(newest_usd, best - before, hundredth)
    overall = _price(all_usd, best - values[0], hundredth)
    advice, why = _advise(
        newest, overall, missing=max(0.0, sign * goal.target - best) / hundredth, all_usd=all_usd
    )
    bought = (
        f"cost {newest_usd:.2f} USD and did not improve {goal.metric}"
        if newest is None
        else f"bought each hundredth of {goal.metric} for {newest:.2f} USD"
    )
    return Marginal(
        metric=goal.metric,
        runs=len(trials),
        usd_per_improvement=newest,
        advice=advice,
        say=f"the last {_NEWEST} runs {bought}; {why}",
    )


def _price(usd: float, gain: float, hundredth: float) -> float | None:
    """Of one hundredth; None where next to nothing was gained."""
    return usd / (gain / hundredth) if gain >= hundredth * _LEAST_GAIN / _HUNDREDTH else None


def _advise(
    newest: float | None, overall: float | None, *, missing: float, all_usd: float
) -> tuple[Literal["continue", "stop", "redesign"], str]:
    spent = newest is None or (overall is not None and newest > _DEARER * overall)
    if spent and not missing:
        return "stop", "its gate holds"
    if spent:
        return "redesign", "its gate does not hold, and more of the same does not help"
    if newest is not None and newest * missing > all_usd:
        return "redesign", f"its gate is {newest * missing:.2f} USD away, more than all runs so far cost"
    return "continue", "it still improves at a price like before"
