"""The policy diff command: which recorded decisions would have differed, and what does that cost?

Both policies are asked about every recorded state, by the code as it is now, so that nothing but the policy
makes a difference. What it costs is another question: both are played forward on the twin from what arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from wattline.cli.command_explain_past import say_difference
from wattline.cli.policy_costs import Costs, weigh_costs
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.cli.twin_progress import TwinProgress
from wattline.cli.twin_text import print_comparison
from wattline.control import Opinion, Sides, Tally
from wattline.errors import UnavailableError
from wattline.plane.explaining_past import describe_difference
from wattline.plane.finding import open_view
from wattline.plane.moments import clock, iso
from wattline.plane.past import read_moment, turns_since
from wattline.plane.policy_in_force import policy_in_force
from wattline.plane.session import Session
from wattline.spec import Policy, read_policy
from wattline.twin.wording import say_count

_MOST_SHOWN = 10
IN_FORCE = "in force"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Two policies over the same recorded states."""

    tally: Tally
    decisions: int
    since: float
    until: float


def diff_policies(first: str, second: str | None, *, since: str | None, seeds: int, as_json: bool) -> int:
    """With one file: against the policy that is in force."""
    begins_at = None if since is None else read_moment(since, option="--since")
    new = read_policy(first if second is None else second)
    old = None if second is None else read_policy(first)
    say_here()
    with open_view() as view, TwinProgress() as progress:
        base = old or policy_in_force(view)
        asked = _ask(view.session, base, new, begins_at, progress)
        names = _names(base, new, first, second)
        costs = None
        if seeds:
            policies = dict(zip(names, (base, new), strict=True))
            costs = weigh_costs(view.session, policies, since=begins_at, seeds=seeds, progress=progress)
    if as_json:
        print_json(_describe(names, asked, costs))
    else:
        _show(stdout_console(), names, asked, costs)
    return 0


def _names(base: Policy, new: Policy, first: str, second: str | None) -> tuple[str, str]:
    """What each is called: its own name, or that of its file where both have the same."""
    if second is None:
        return (f"{base.policy} ({IN_FORCE})", new.policy)
    if base.policy != new.policy:
        return (base.policy, new.policy)
    names = (Path(first).name, Path(second).name)
    return names if names[0] != names[1] else (first, f"{second} (2)" if first == second else second)


def _ask(session: Session, base: Policy, new: Policy, since: float | None, progress: TwinProgress) -> _Asked:
    tally, decisions, first, last = Tally(), 0, None, 0.0
    ours, theirs = Opinion(base), Opinion(new)
    for turn in turns_since(session, since, progress.say):
        last = turn.record.decision.at
        first = last if first is None else first
        decisions += 1
        sides = Sides(ours.ask(turn.state, last), theirs.ask(turn.state, last), base, new)
        tally.take(turn.state, sides, turn.seq)
    if first is None:
        raise UnavailableError(
            "nothing was decided here since then", hint="name an earlier time with --since"
        )
    return _Asked(tally=tally, decisions=decisions, since=first, until=last)


def _describe(names: tuple[str, str], asked: _Asked, costs: Costs | None) -> dict[str, object]:
    tally = asked.tally
    comparison = None if costs is None else costs.comparison
    return {
        "base": names[0],
        "policy": names[1],
        "since": iso(asked.since),
        "until": iso(asked.until),
        "decisions": asked.decisions,
        "differences": {
            "count": tally.count,
            "jobs": len(tally.jobs),
            "by_kind": tally.by_kind,
            "by_rule": tally.by_rule,
            "first": [describe_difference(difference) for difference in tally.first],
        },
        "costs": comparison,
        "jobs_played": None if costs is None else costs.jobs,
        "jobs_left_out": None if costs is None else costs.left_out,
        "doubts": () if costs is None else costs.doubts,
        "not_estimated": ["costs"] if comparison is None else [],
    }


def _show(console: Console, names: tuple[str, str], asked: _Asked, costs: Costs | None) -> None:
    tally = asked.tally
    span = f"{say_count(asked.decisions)} decisions from {clock(asked.since)} to {clock(asked.until)}"
    console.print(plain(f"{names[0]} → {names[1]}: {span}"), style="bold")
    if not tally.count:
        console.print("not one of them would have differed")
    else:
        jobs = "1 job" if len(tally.jobs) == 1 else f"{say_count(len(tally.jobs))} jobs"
        console.print(f"{say_count(tally.count)} would have differed, of {jobs}")
        table = columns("what", "how often", last_ratio=False)
        for kind, count in tally.by_kind.most_common():
            table.add_row(kind, say_count(count))
        console.print(table)
        console.print()
        for difference in tally.first[:_MOST_SHOWN]:
            console.print(plain(say_difference(difference)))
        console.print(
            "each asked about the state as it was recorded; what follows from a difference is not in it",
            style="dim",
        )
    if costs is not None:
        _show_costs(console, costs)


def _show_costs(console: Console, costs: Costs) -> None:
    console.print()
    for doubt in costs.doubts:
        console.print(plain(doubt), style="yellow")
    if costs.comparison is None:
        console.print("what it costs is not known", style="yellow")
        return
    if costs.left_out:
        left_out = f"{say_count(costs.left_out)} that never ran, had not ended or ask for no GPU are left out"
        console.print(f"{say_count(costs.jobs)} recorded jobs are played; {left_out}", style="dim")
    print_comparison(costs.comparison)
