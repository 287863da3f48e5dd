"""Reports to look at: a change that is blocked, one that passes, and one whose names mean harm."""

from __future__ import annotations

import msgspec

from wattline.checks.report import (
    Base,
    Check,
    Confidence,
    Cost,
    Difference,
    Effect,
    Estimate,
    Left,
    Marginal,
    Option,
    PhaseReport,
    Report,
    Said,
    Span,
)

BASE = Estimate(
    gpu_hours=41.0,
    wall_hours=5.1,
    energy_kwh=31.0,
    carbon_kg=11.8,
    cost_usd=Cost(compute=160.0, energy=6.2, transfer=0.4, storage=1.9, total=168.5),
    peak_watts=5600.0,
    queue_minutes=Span(p50=9.0, p90=31.0),
)
HEAD = Estimate(
    gpu_hours=50.0,
    wall_hours=6.25,
    wall=Span(p50=6.25, p90=7.4),
    energy_kwh=82.0,
    carbon_kg=30.8,
    cost_usd=Cost(compute=195.0, energy=9.4, transfer=None, storage=2.1, total=206.5),
    peak_watts=6500.0,
    queue_minutes=Span(p50=14.0, p90=40.0),
    quota_left=Left(gpu_hours=312.0, gpu_hours_of=500.0),
    confidence=Confidence(runs=12, cost_mape=0.08, covered=0.92),
    not_estimated={"cost_usd.transfer": "no link of `oslo` has a price"},
)


def difference(base: float, head: float) -> Difference:
    return Difference(
        base=base, head=head, delta=head - base, fraction=(head - base) / base if base else None
    )


BLOCKED = Report(
    pipeline="tiny-lm",
    file="examples/tiny-lm/wattline.yaml",
    commit="4f2c9d1a8b7e6f5d4c3b2a190807060504030201",
    at="2026-11-16T08:40:00Z",
    against="three-sites, 41 jobs in its queue",
    policy_name="research",
    verdict="block",
    reasons=(
        "data.schema corpus: column score has 3.1 % nulls, the profile has none",
        "rule.nightly: more than 48 GPU-hours start after 20:00 only",
    ),
    preflight=(
        Check(check="metadata", outcome="pass", message="model, owner given"),
        Check(
            check="data.schema",
            subject="corpus",
            outcome="fail",
            message="column score has 3.1 % nulls, the profile has none",
            fix="restore the file, or record the new profile with `wattline data pin data/corpus.csv`",
            file="data/corpus.csv",
            line=1204,
        ),
        Check(
            check="lock",
            outcome="warn",
            message="requirements.txt is newer than its lock file",
            fix="`uv lock` writes it anew",
            file="requirements.txt",
        ),
        Check(check="data.hash", subject="corpus", outcome="pass", message="sha256 d68cea6d03ce… as pinned"),
        Check(check="entry", subject="train", outcome="pass", message="train.py is there"),
        Check(check="image", outcome="skip", message="the pipeline names no image"),
    ),
    estimate=HEAD,
    phases=(
        PhaseReport(
            phase="train",
            say="waits for 8 GPUs in one node",
            starts_p50="2026-11-16T08:54:00Z",
            starts_p90="2026-11-16T09:20:00Z",
            wall_hours=Span(p50=6.25, p90=7.4),
            wall_from="12 recorded runs",
            peak_watts=6500.0,
            gpu_hours=50.0,
            cost_usd=206.5,
        ),
        PhaseReport(phase="evaluate", say="follows train", wall_hours=Span(p50=0.02), gpu_hours=0.0),
    ),
    base=Base(name="main", commit="90ab12cd34ef", pipeline="examples/tiny-lm/wattline.yaml", estimate=BASE),
    diff={
        "gpu_hours": difference(41.0, 50.0),
        "cost_usd": difference(168.5, 206.5),
        "carbon_kg": difference(11.8, 30.8),
        "energy_kwh": difference(31.0, 82.0),
        "wall_hours": difference(5.1, 6.25),
        "peak_watts": difference(5600.0, 6500.0),
        "queue_minutes": difference(9.0, 14.0),
    },
    policy=(
        Said(
            phase="train",
            rule="rule.nightly",
            mode="block",
            outcome="refuse",
            message="more than 48 GPU-hours start after 20:00 only",
            fix="submit after 20:00, or stay below 48 GPU-hours",
        ),
        Said(
            phase="train", rule="quota.gpu_hours", mode="enforce", outcome="allow", message="262 of 500 stay"
        ),
        Said(
            phase="train", rule="rule.big", mode="warn", outcome="warn", message="8 GPUs for one experiment"
        ),
    ),
    options=(
        Option(
            phase="train",
            change="run at 70 % power (`cap_power: 70%`)",
            effect=Effect(starts_minutes=0.0, cost_usd_delta=-11.0, carbon_kg_delta=-6.2),
        ),
        Option(
            phase="train",
            change="allow A100 as well as H100",
            effect=Effect(starts_minutes=4.0, cost_usd_delta=3.5, gpu_hours_delta=6.0),
        ),
    ),
    marginal=Marginal(
        metric="accuracy",
        runs=6,
        usd_per_improvement=410.0,
        advice="redesign",
        say="The last three runs gained 0.002.",
    ),
    emulated=True,
)

PASSED = msgspec.structs.replace(
    BLOCKED,
    verdict="pass",
    reasons=(),
    preflight=tuple(check for check in BLOCKED.preflight if check.outcome in {"pass", "skip"}),
    policy=BLOCKED.policy[1:2],
    options=(),
    marginal=None,
    estimate=msgspec.structs.replace(HEAD, not_estimated={}),
)

HARM = (
    "@team/all <img src=x onerror=alert(1)> **b** | [x](http://evil) #12 `c` \u202etxt.exe --> ]]> "
    "\x00\ud800 :smile: $x$ www.evil.io a@b.c"
)
HOSTILE = msgspec.structs.replace(
    BLOCKED,
    pipeline=HARM,
    file=f"a/{HARM}/wattline.yaml",
    against=HARM,
    policy_name=HARM,
    reasons=(HARM,),
    preflight=(Check(check=HARM, subject=HARM, outcome="fail", message=HARM, fix=HARM, file=HARM, line=-4),),
    policy=(Said(phase=HARM, rule=HARM, mode="block", outcome="refuse", message=HARM, fix=HARM),),
    options=(Option(phase=HARM, change=HARM),),
    phases=(PhaseReport(phase=HARM, say=HARM, wall_from=HARM, starts_p50=HARM),),
    base=Base(name=HARM, say=HARM),
    not_estimated=(HARM,),
)
