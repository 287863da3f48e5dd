"""Any report at all: strings that mean harm, numbers that are none, and lists of any length."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from checks.rendering.sample import HARM
from wattline.checks import report as r

_HARMFUL = st.sampled_from(
    [
        HARM,
        "@all",
        "</details>",
        "<!--",
        "-->",
        "`",
        "``",
        "|",
        "\\",
        "\n/close",
        "a\r\n::error::b",
        "%0A",
        "\u202e",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=40), _HARMFUL, st.builds(lambda a, b: a + b, _HARMFUL, st.text(max_size=9))
)
NUMBERS = st.none() | st.floats()


def _built(kind: Any, **fields: Any) -> st.SearchStrategy[Any]:
    return st.builds(kind, **fields)


CHECKED = _built(
    r.Check,
    check=TEXTS,
    outcome=st.sampled_from(["pass", "warn", "fail", "skip"]),
    message=TEXTS,
    subject=TEXTS,
    fix=TEXTS,
    file=st.none() | TEXTS,
    line=st.none() | st.integers(-5, 10**9),
)
SAID = _built(
    r.Said,
    phase=TEXTS,
    rule=TEXTS,
    mode=st.sampled_from(["report", "warn", "block", "enforce"]),
    outcome=st.sampled_from(["allow", "warn", "wait", "refuse"]),
    message=TEXTS,
    fix=TEXTS,
)
ESTIMATES = _built(
    r.Estimate,
    gpu_hours=NUMBERS,
    wall_hours=NUMBERS,
    wall=_built(r.Span, p50=NUMBERS, p90=NUMBERS),
    energy_kwh=NUMBERS,
    carbon_kg=NUMBERS,
    cost_usd=_built(r.Cost, compute=NUMBERS, energy=NUMBERS, total=NUMBERS),
    peak_watts=NUMBERS,
    queue_minutes=_built(r.Span, p50=NUMBERS, p90=NUMBERS),
    quota_left=st.none()
    | _built(r.Left, gpu_hours=NUMBERS, gpu_hours_of=NUMBERS, usd=NUMBERS, usd_of=NUMBERS),
    confidence=st.none() | _built(r.Confidence, runs=st.integers(0, 9), cost_mape=NUMBERS, covered=NUMBERS),
    not_estimated=st.dictionaries(TEXTS, TEXTS, max_size=4),
)
DIFFERENCES = _built(r.Difference, base=NUMBERS, head=NUMBERS, delta=NUMBERS, fraction=NUMBERS)
EFFECTS = _built(r.Effect, starts_minutes=NUMBERS, cost_usd_delta=NUMBERS, gpu_hours_delta=NUMBERS)
PHASES = _built(
    r.PhaseReport,
    phase=TEXTS,
    say=TEXTS,
    starts_p50=st.none() | TEXTS,
    starts_p90=st.none() | TEXTS,
    wall_hours=_built(r.Span, p50=NUMBERS, p90=NUMBERS),
    wall_from=TEXTS,
    peak_watts=NUMBERS,
)
REPORTS: st.SearchStrategy[r.Report] = _built(
    r.Report,
    pipeline=TEXTS,
    file=TEXTS,
    commit=st.none() | TEXTS,
    dirty=st.booleans(),
    at=TEXTS,
    against=TEXTS,
    policy_name=TEXTS,
    verdict=st.sampled_from(["pass", "warn", "block"]),
    reasons=st.lists(TEXTS, max_size=7).map(tuple),
    preflight=st.lists(CHECKED, max_size=14).map(tuple),
    estimate=ESTIMATES,
    phases=st.lists(PHASES, max_size=3).map(tuple),
    base=st.none() | _built(r.Base, name=TEXTS, commit=st.none() | TEXTS, say=TEXTS),
    diff=st.dictionaries(st.sampled_from(["gpu_hours", "cost_usd", "carbon_kg", "peak_watts"]), DIFFERENCES),
    policy=st.lists(SAID, max_size=7).map(tuple),
    options=st.lists(_built(r.Option, phase=TEXTS, change=TEXTS, effect=EFFECTS), max_size=7).map(tuple),
    marginal=st.none()
    | _built(r.Marginal, metric=TEXTS, runs=st.integers(0, 9), usd_per_improvement=NUMBERS, say=TEXTS),
    not_estimated=st.lists(TEXTS, max_size=7).map(tuple),
)
