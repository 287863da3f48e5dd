"""How is a week told on a terminal: a table of teams, a team's quotas, sentences, and SLOs below?"""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wattline.cli.command_exception import moment, wanted
from wattline.cli.printing import columns, plain
from wattline.control import Standing
from wattline.plane.reporting import Report, Shown
from wattline.policy.explaining.week import QuotaWeek, RunTake, TeamWeek
from wattline.policy.permitting.exceptions import NAMES, format_amount
from wattline.state import Starts
from wattline.units import format_named, format_seconds, format_share

_BAR_CELLS = 20
_TIGHT, _FULL = 0.8, 1.0
_MOST_JOBS = 5


def show_text(console: Console, report: Report, *, is_one: bool) -> None:
    console.print(_head(report))
    console.print()
    if not report.teams:
        console.print("no project has used anything, and the policy names no team")
    elif is_one:
        for shown in report.teams:
            _show_team(console, report, shown)
    else:
        console.print(_teams(report))
        if any(quota.promised for shown in report.teams for quota in shown.week.quotas):
            console.print("used this week, and the most that was promised to what runs", style="dim")
    for shown in report.teams:
        for sentence in sentences(shown.week, report):
            console.print(Text.assemble(("! ", "yellow"), plain(sentence)))
    if not report.is_conducted and any(shown.week.running for shown in report.teams):
        console.print("nobody conducts now: what was running uses nothing", style="dim")
    if report.run is not None:
        _show_run(console, report, report.run)
    for warning in report.warnings:
        console.print(Text.assemble(("! ", "yellow"), plain(warning)))
    if report.starts is not None and report.starts.starts:
        console.print(_starts(report.starts))
    if report.slos:
        console.print()
        _show_slos(console, report.slos)


def _starts(starts: Starts) -> str:
    """How many found nodes awake, since these began to be counted."""
    hits = format_share((starts.starts - starts.cold) / starts.starts)
    told = f"{hits} of {starts.starts} starts found nodes awake"
    if not starts.cold:
        return told
    mean, longest = starts.cold_seconds / starts.cold, starts.longest_seconds
    return (
        f"{told}; the others waited {format_seconds(round(mean))} on average for nodes to wake, "
        f"{format_seconds(round(longest))} at most"
    )


def _head(report: Report) -> Text:
    monday = datetime.fromtimestamp(report.begins_at, UTC)
    year, week, _ = monday.isocalendar()
    gone = (report.at - report.begins_at) / (report.ends_at - report.begins_at)
    stands = "is over" if report.is_over else f"{format_share(gone)} gone"
    return Text.assemble(
        (f"week {year}-W{week:02d}", "bold"),
        f"  from {monday:%Y-%m-%d} 00:00 UTC, {stands}; policy {report.policy}",
    )


def _teams(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("team", no_wrap=True)
    table.add_column("limit")
    for name in NAMES.values():
        table.add_column(name, justify="right")
    if not report.is_over:
        table.add_column("running", justify="right")
        table.add_column("waiting", justify="right")
    for shown in report.teams:
        week = shown.week
        cells = [_of_limit(quota) for quota in week.quotas]
        jobs = (
            []
            if report.is_over
            else [_jobs(week.running, week.running_gpus), _jobs(week.waiting, week.waiting_gpus)]
        )
        table.add_row(plain(week.team), week.limit, *cells, *jobs)
    return table


def _jobs(jobs: tuple[str, ...], gpus: int) -> str:
    return f"{len(jobs)} on {gpus}" if jobs else ""


def _of_limit(quota: QuotaWeek) -> Text:
    """What is gone of a quota, used or promised, coloured by how little is left."""
    gone = quota.used + quota.promised
    if quota.limit is None:
        return Text(format_amount(gone) if gone else "", style="dim")
    return Text(f"{format_amount(gone)} of {format_amount(quota.limit)}", style=_style(gone, quota.limit))


def _style(gone: float, limit: float) -> str:
    share = gone / limit if limit > 0 else _FULL
    return "red" if share >= _FULL else "yellow" if share >= _TIGHT else ""


def _show_team(console: Console, report: Report, shown: Shown) -> None:
    week = shown.week
    limit = "no quota" if week.limit == "none" else f"{week.limit} quota"
    console.print(Text.assemble((plain(week.team), "bold"), f"  {limit}"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for name in ("limit", "by exception", "used", "promised", "left"):
        table.add_column(name, justify="right")
    table.add_column("")
    for quota in week.quotas:
        gone = quota.used + quota.promised
        table.add_row(
            NAMES[quota.quantity],
            "" if quota.limit is None else format_amount(quota.limit - quota.granted),
            f"+{format_amount(quota.granted)}" if quota.granted else "",
            format_amount(quota.used),
            format_amount(quota.promised),
            "" if quota.left is None else format_amount(quota.left),
            Text("") if quota.limit is None else _bar(gone, quota.limit),
        )
    console.print(table)
    if not report.is_over:
        _show_jobs(console, shown)
    for exception in shown.exceptions:
        stands = exception.standing(report.at)
        told = f"{exception.id} {stands}: {wanted(exception)} until {moment(exception.until)}"
        console.print(plain(f"{told}, {exception.because}"), style="dim")


def _bar(gone: float, limit: float) -> Text:
    share = min(1.0, gone / limit) if limit > 0 else 1.0
    full = round(share * _BAR_CELLS)
    told = format_share(gone / limit) if limit > 0 else ""
    return Text.assemble(("█" * full + "░" * (_BAR_CELLS - full), _style(gone, limit) or "green"), f" {told}")


def _show_jobs(console: Console, shown: Shown) -> None:
    week = shown.week
    if week.running:
        named = ", ".join(week.running[:_MOST_JOBS])
        more = " …" if len(week.running) > _MOST_JOBS else ""
        console.print(plain(f"running: {_counted(week.running, week.running_gpus, 'on')}: {named}{more}"))
    if week.waiting:
        named = ", ".join(f"{job} ({why})" if why else job for job, why in shown.waits[:_MOST_JOBS])
        more = " …" if len(week.waiting) > _MOST_JOBS else ""
        console.print(plain(f"waiting: {_counted(week.waiting, week.waiting_gpus, 'for')}: {named}{more}"))


def _counted(jobs: tuple[str, ...], gpus: int, on: str) -> str:
    return f"{len(jobs)} {'job' if len(jobs) == 1 else 'jobs'} {on} {format_named('gpus', gpus)}"


def sentences(week: TeamWeek, report: Report) -> list[str]:
    """What is used up, or which limit what runs now reaches first; and what follows."""
    follows = "its jobs wait" if week.limit == "hard" else "its jobs start with a warning"
    reached = sorted(
        [(quota.reaches_at, quota) for quota in week.quotas if quota.reaches_at is not None],
        key=lambda one: one[0],
    )
    gone = [_limit(quota) for at, quota in reached if at <= report.at]
    if gone:
        return [f"{week.team} has used up its {' and '.join(gone)}; {follows} until the week ends"]
    if not reached:
        return []
    at, first = reached[0]
    told = f"what runs now, if it goes on at {format_amount(first.rate_per_hour)} an hour, takes {week.team}"
    by = f"{datetime.fromtimestamp(at, UTC):%a %d %b %H:%M} UTC"
    return [f"{told} to its {_limit(first)} by {by}; then {follows}"]


def _limit(quota: QuotaWeek) -> str:
    return f"{format_amount(quota.limit or 0.0)} {NAMES[quota.quantity]}"


def _show_run(console: Console, report: Report, take: RunTake) -> None:
    parts = []
    for quantity, name in NAMES.items():
        used, promised, still = (getattr(part, quantity) for part in (take.used, take.promised, take.still))
        if used + promised + still > 0:
            parts.append(
                f"{format_amount(used + promised + still)} {name}{_share_of(report, take, quantity)}"
            )
    told = ", ".join(parts) or "nothing yet"
    there = f", that in {' and '.join(take.sites)}" if take.sites else ""
    console.print(plain(f"run {take.run} takes {told}: used, promised, and at most still to come{there}"))
    if take.not_estimated:
        phases = ", ".join(take.not_estimated)
        console.print(plain(f"without {phases}: no max_duration, or no place would take it"), style="dim")


def _share_of(report: Report, take: RunTake, quantity: str) -> str:
    total = sum(getattr(part, quantity) for part in (take.used, take.promised, take.still))
    for shown in report.teams:
        for quota in shown.week.quotas if shown.week.team == take.project else ():
            if quota.quantity == quantity and quota.limit:
                return f" ({format_share(total / quota.limit)} of the week's)"
    return ""


def _show_slos(console: Console, slos: tuple[Standing, ...]) -> None:
    table = columns("slo", "what", "now", "budget left", "burn 1h 6h 3d", "what ate it")
    for slo in slos:
        style = "red" if slo.is_met is False else "yellow" if slo.alert else ""
        table.add_row(
            plain(slo.name),
            plain(slo.say),
            Text("-" if slo.share is None else f"{100 * slo.share:.4g} %", style=style),
            ""
            if slo.share is None
            else f"{format_amount(slo.left)} of {format_amount(slo.allowed)} {slo.unit}",
            "  ".join("-" if burn.rate is None else f"{burn.rate:.2g}" for burn in slo.burns),
            _reasons(slo),
        )
    console.print(table)
    for slo in slos:
        if slo.alert:
            console.print(
                Text.assemble(("! ", "red"), plain(f"{slo.name}: burns its budget too fast ({slo.alert})"))
            )


def _reasons(slo: Standing) -> str:
    return plain(", ".join(f"{reason} {format_share(bad / slo.bad)}" for reason, bad in slo.reasons[:3]))
