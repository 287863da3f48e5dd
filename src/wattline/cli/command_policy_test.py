"""The policy test command: would this policy refuse, start, cap and pause what it should?"""

from __future__ import annotations

from collections.abc import Sequence

from wattline.cli.policy_trial import (
    History,
    Played,
    Tried,
    describe_rule,
    try_in_scenario,
    try_on_history,
)
from wattline.cli.policy_trial_text import show_tried
from wattline.cli.printing import print_json, stdout_console
from wattline.cli.twin_progress import TwinProgress
from wattline.errors import UnavailableError
from wattline.plane.finding import open_if_any
from wattline.plane.moments import iso
from wattline.plane.past import read_moment
from wattline.policy.explaining.reviewing import review_policy
from wattline.spec import read_policy

# Of those that ship, the ones that take less than a second each.
USUAL_SCENARIOS = ("burst", "feed-loss", "grid-event", "pump-trip")
NO_SCENARIO = "none"


def test_policy(file: str, *, since: str | None, scenarios: Sequence[str], as_json: bool) -> int:
    policy = read_policy(file)
    begins_at = None if since is None else read_moment(since, option="--since")
    with TwinProgress() as progress:
        with open_if_any() as view:
            history = None if view is None else try_on_history(view.session, policy, begins_at, progress)
            warnings = [] if view is None else review_policy(policy, view.state.plant)
        chosen = [name for name in scenarios or USUAL_SCENARIOS if name != NO_SCENARIO]
        played = [try_in_scenario(policy, name, progress) for name in chosen]
    if history is None and not played:
        raise UnavailableError(
            f"policy {policy.policy} was tried on nothing: nothing is recorded, and no scenario is named",
            hint="name one with --scenario, or a state folder with WATTLINE_HOME",
        )
    tried = Tried(policy=policy, history=history, played=played, warnings=warnings)
    if as_json:
        print_json(_describe(tried))
    else:
        show_tried(stdout_console(), tried)
    return 1 if tried.complaints else 0


def _describe(tried: Tried) -> dict[str, object]:
    return {
        "policy": tried.policy.policy,
        "verdict": "fail" if tried.complaints else "pass",
        "complaints": tried.complaints,
        "warnings": tried.warnings,
        "history": None if tried.history is None else _describe_history(tried.history),
        "scenarios": [_describe_played(each) for each in tried.played],
        "rules": [describe_rule(rule) for rule in tried.rules],
        "not_estimated": ["history"] if tried.history is None else [],
    }


def _describe_history(history: History) -> dict[str, object]:
    would = history.would
    return {
        "since": iso(history.since),
        "until": iso(history.until),
        "decisions": would.decisions,
        "jobs": len(would.jobs),
        "recorded": history.recorded.counts,
        "would": would.counts,
        "refused_by": would.refused_by,
        "refuses_everything": would.refuses_everything,
    }


def _describe_played(played: Played) -> dict[str, object]:
    report = played.report
    return {
        "scenario": played.scenario,
        "jobs": report.jobs,
        "would": {deed: count for deed, count in played.trial.counts.items() if deed != "waiting"},
        "refused_by": played.trial.refused_by,
        "useful_gpu_hours": report.useful_gpu_hours,
        "cap_violation_seconds": report.cap_violation_seconds,
        "energy_kwh": report.energy_kwh,
    }
