"""A replay and a comparison as people read them in a terminal: eighty columns, units, and what is sure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

from rich.table import Table
from rich.text import Text

from wattline.cli.printing import columns, plain, stdout_console
from wattline.twin.comparison import Comparison, Contest, Standing
from wattline.twin.figures import Group, figures_of, site_table, size_table, slo_table, wait_table
from wattline.twin.findings import find_what_binds
from wattline.twin.left_out import say_never_begun
from wattline.twin.plots import FOOTER
from wattline.twin.report import Report
from wattline.twin.wording import UNKNOWN, one_line, say_count, say_difference, say_metric

_NAMES = {
    "jobs.completed": "jobs completed",
    "jobs.refused": "jobs refused",
    "wait_minutes.mean": "wait, mean",
    "wait_minutes.p95": "wait, p95",
    "completion_minutes.mean": "completion, mean",
    "completion_minutes.p95": "completion, p95",
    "utilisation": "utilisation",
    "useful_gpu_hours": "useful GPU-hours",
    "lost_gpu_hours.total": "lost GPU-hours",
    "energy_kwh": "energy",
    "cost_usd": "cost",
    "carbon_kg": "carbon",
    "peak_kw": "peak power",
    "cap_violation_seconds": "caps violated, added up",
    "throttle_gpu_seconds": "GPU-hours slowed",
    "power_throttle_gpu_seconds": "GPU-hours slowed by caps",
    "heat_throttle_gpu_seconds": "GPU-hours slowed by heat",
    "shutdowns": "shutdowns",
    "preemptions": "preemptions",
    "migrations": "migrations",
}


_WIDEST_SITE, _WIDEST_POLICY = 16, 22  # what figures leave of eighty columns


def print_report(report: Report) -> None:
    """What a replay came to: figures in two columns, then sites, refusals and what is not known."""
    console = stdout_console()
    done, asked = say_count(report.jobs.completed), say_count(report.jobs.submitted)
    console.print(plain(f"{report.trace} on {report.facility} under {report.policy}"), style="bold")
    console.print(f"{done} of {asked} jobs completed; {FOOTER}", style="dim")
    console.print()
    console.print(_figures(figures_of(report)))
    for header, rows in (site_table(report), size_table(report), wait_table(report)):
        if rows:
            console.print(_rows(header, rows))
            console.print()
    binds = find_what_binds(report)
    if binds:
        console.print(plain(binds))
        console.print()
    if report.slos:
        console.print(_slos(report))
        console.print()
    if left_out := say_never_begun(report):
        console.print(left_out)
    for rule, count in sorted(report.refused_because.items(), key=lambda item: (-item[1], item[0])):
        console.print(plain(f"refused by {rule}: {say_count(count)}"))
    if report.not_estimated:
        console.print(plain(f"not known: {', '.join(report.not_estimated)}"), style="yellow")
    console.print(plain(f"seed {report.seed}, digest {report.digest}"), style="dim", soft_wrap=True)


def print_comparison(comparison: Comparison) -> None:
    """Metric by metric; what is the same under every policy is told in one line."""
    console = stdout_console()
    seeds = f"{len(comparison.seeds)} seed{'' if len(comparison.seeds) == 1 else 's'}"
    base = comparison.policies[0]
    from_day = f"from {comparison.begins_at[:10]}"
    console.print(plain(f"{comparison.trace} on {comparison.facility} {from_day}, {seeds}"), style="bold")
    console.print(plain(f"differences are against {base}; {FOOTER}"), style="dim")
    console.print()
    same = [contest for contest in comparison.metrics if _is_same(contest)]
    fewer = _with_fewer_jobs(comparison)
    table = _table("policy", "mean", "difference", "±", "")
    for contest in comparison.metrics:
        if contest not in same:
            _add_contest(table, contest, fewer)
    if table.row_count:
        console.print(table)
    if same:
        told = (f"{_NAMES[each.metric]} {_say(each, each.standings[0].mean)}" for each in same)
        console.print(f"the same for all: {'; '.join(told)}")
    if fewer and len(comparison.seeds) > 1:
        named = ", ".join(sorted(fewer))
        console.print(
            plain(f"fewer jobs: {named} refused more, so what it waited and used is no gain"), style="yellow"
        )
    if len(comparison.seeds) == 1:
        console.print("one seed: nothing says whether another would give the same", style="yellow")
        return
    console.print("± spans a 95 % confidence interval over seeds (Student's t, paired by seed);", style="dim")
    console.print("of twenty such intervals, about one excludes zero by chance", style="dim")
    console.print("seeds change truth, meters and what jobs draw: not which jobs come, or when", style="dim")


def _figures(groups: Sequence[Group]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for left, right in zip_longest(groups[::2], groups[1::2]):
        table.add_row(
            Text(left.title, style="bold"), "", Text(right.title, style="bold") if right else "", ""
        )
        for ours, theirs in zip_longest(left.figures, right.figures if right else (), fillvalue=("", "")):
            table.add_row(*ours, *theirs)
        table.add_row()
    return table


def _rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = _table(*header)
    for name, *cells in rows:
        table.add_row(one_line(plain(name), _WIDEST_SITE), *cells)
    return table


def _slos(report: Report) -> Table:
    header, rows = slo_table(report)
    table = columns(*header)
    for (name, *cells), slo in zip(rows, report.slos.values(), strict=True):
        style = "red" if slo.is_met is False else ""
        told = f"{cells[1]} missed" if slo.is_met is False else cells[1]
        table.add_row(
            plain(name), plain(cells[0]), Text(told, style=style), *[plain(one) for one in cells[2:]]
        )
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(names):
        table.add_column(name, justify="right" if at and name else "left", no_wrap=True)
    return table


def _is_same(contest: Contest) -> bool:
    """With every seed, not only on average; also where nobody knows, and nothing can be set side by side."""
    if all(standing.mean is None for standing in contest.standings):
        return True
    return all(each.difference == 0.0 and each.low == each.high for each in contest.standings[1:])


def _with_fewer_jobs(comparison: Comparison) -> set[str]:
    """Policies that refused more than the first one: their waits and costs are of those who are left."""
    return {
        standing.policy
        for contest in comparison.metrics
        if contest.metric == "jobs.refused"
        for standing in contest.standings
        if standing.difference and standing.difference > 0 and standing.is_clear is not False
    }


def _add_contest(table: Table, contest: Contest, fewer: Collection[str]) -> None:
    table.add_row(Text(_NAMES[contest.metric], style="bold"))
    for standing in contest.standings:
        difference, half = "", ""
        if standing.difference is not None:
            sign = "+" if standing.difference > 0 else ""
            difference = sign + say_difference(contest.metric, standing.difference)
        if standing.high is not None and standing.low is not None:
            half = say_difference(contest.metric, (standing.high - standing.low) / 2)
        name = f"  {one_line(plain(standing.policy), _WIDEST_POLICY)}"
        table.add_row(
            name, _say(contest, standing.mean), difference, half, _verdict(contest, standing, fewer)
        )


def _say(contest: Contest, value: float | None) -> str:
    return UNKNOWN if value is None else say_metric(contest.metric, value)


def _verdict(contest: Contest, standing: Standing, fewer: Collection[str]) -> Text:
    if standing.is_clear is None or standing.difference is None:
        return Text("")
    if not standing.is_clear:
        return Text("unclear", style="dim")
    is_better = (standing.difference < 0) == (contest.better == "lower")
    if is_better and contest.better == "lower" and standing.policy in fewer:
        return Text("fewer jobs", style="yellow")
    return Text("better", style="green") if is_better else Text("worse", style="bold red")
