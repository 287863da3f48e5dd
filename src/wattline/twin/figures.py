"""Which figures does a person want of a replay, in which order? The page and the terminal show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wattline.twin.report import Minutes, Report, ScalingReport
from wattline.twin.wording import (
    UNKNOWN,
    say_added,
    say_count,
    say_energy,
    say_gpu_hours,
    say_gpu_seconds,
    say_mass,
    say_minutes,
    say_money,
    say_power,
    say_ratio,
    say_share,
)
from wattline.units import format_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Figures that are read together."""

    title: str
    figures: tuple[tuple[str, str], ...]


def figures_of(report: Report) -> tuple[Group, ...]:
    figures = (_jobs(report), _gpus(report), _energy(report), _limits(report), _replay(report))
    if isinstance(report.scaling, ScalingReport):
        return (*figures, _scaling(report.scaling))
    return figures


def site_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A header, and a row for each site."""
    header = ("site", "energy", "its cost", "carbon", "peak", "PUE", "TUE", "busy")
    rows = [
        (
            name,
            say_energy(site.energy_kwh),
            say_money(site.cost_usd),
            say_mass(site.carbon_kg),
            say_power(site.peak_kw),
            say_ratio(site.pue),
            say_ratio(site.tue),
            say_share(site.utilisation),
        )
        for name, site in report.sites.items()
    ]
    return header, [tuple("–" if cell == UNKNOWN else cell for cell in row) for row in rows]


def size_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A header, and a row for each size of job: what those that started waited."""
    header = ("jobs of", "started", "wait, mean", "wait, p50", "wait, p95")
    rows = [
        (name, say_count(size.started), *[value for _, value in _spread("wait", size.wait_minutes)])
        for name, size in report.sizes.items()
    ]
    return header, rows


def wait_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A header, and a row for each of the rules that kept jobs waiting for longest."""
    header, total = ("jobs waited for", "job-hours", "share"), sum(report.waited_for.values())
    most = list(report.waited_for.items())[:_MOST_RULES]
    return header, [(rule, say_count(hours), say_share(hours / total)) for rule, hours in most if hours]


def _most_waited_for(report: Report) -> str:
    _, rows = wait_table(report)
    return f"{rows[0][0]}, {rows[0][2]}" if rows else "–"


def slo_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A header, and a row for each SLO: how it stands, what is left of its budget and what ate it."""
    header = ("SLO", "what it says", "now", "budget left", "burn 1h 6h 3d", "what ate it")
    rows = [
        (
            slo.name,
            slo.say,
            say_share(slo.share),
            UNKNOWN if slo.share is None else f"{slo.left:.4g} of {slo.allowed:.4g} {slo.unit}",
            "  ".join("–" if burn.rate is None else f"{burn.rate:.2g}" for burn in slo.burns),
            ", ".join(f"{reason} {say_share(bad / slo.bad)}" for reason, bad in slo.reasons[:3]),
        )
        for slo in report.slos.values()
    ]
    return header, [tuple("–" if cell == UNKNOWN else cell for cell in row) for row in rows]


_MOST_RULES = 5
# Left out of a scenario where no policy has any: most facilities have no cloud, and most jobs no deadline.
_ONLY_SOMETIMES = ("machines taken back", "ended after their deadline", "cost of egress")


def side_by_side(reports: Sequence[Report]) -> list[tuple[str, ...]]:
    """Rows of a scenario: what a figure is called, and what it is under each policy."""
    rows = zip(*map(_in_a_scenario, reports), strict=True)
    told = [(row[0][0], *(value for _, value in row)) for row in rows]
    nothing = {say_count(0), say_money(0.0)}
    return [row for row in told if row[0] not in _ONLY_SOMETIMES or not nothing.issuperset(row[1:])]


def _in_a_scenario(report: Report) -> Iterator[tuple[str, str]]:
    lost = report.lost_gpu_hours
    yield "useful GPU-hours", say_gpu_hours(report.useful_gpu_hours)
    yield "lost GPU-hours", say_gpu_hours(lost.total)
    yield "… to caps and heat", say_gpu_hours(lost.throttle)
    yield "… to restarts", say_gpu_hours(lost.restart)
    yield "… to preemption", say_gpu_hours(lost.preempt)
    yield "… to pauses", say_gpu_hours(lost.pause)
    yield "GPUs busy while jobs came", say_share(report.utilisation)
    yield "GPU-hours idle while jobs waited", say_gpu_hours(report.idle_gpu_hours)
    yield "jobs waited most for", _most_waited_for(report)
    yield from over_caps(report)
    yield "breakers tripped", say_count(report.trips)
    yield "nodes shut down by heat", say_count(report.shutdowns)
    yield from slowed(report)
    yield "peak", say_power(report.peak_kw)
    yield "preemptions", say_count(report.preemptions)
    yield "migrations", say_count(report.migrations)
    yield "machines taken back", say_count(report.reclaims)
    yield "ended after their deadline", say_count(report.late)
    yield "cost of egress", say_money(report.egress_usd)
    yield "energy", say_energy(report.energy_kwh)
    yield "cost with GPU time", say_money(report.cost_usd)
    yield "carbon", say_mass(report.carbon_kg)


def _jobs(report: Report) -> Group:
    jobs = report.jobs
    figures = [
        ("submitted", say_count(jobs.submitted)),
        ("completed", say_count(jobs.completed)),
        ("refused", say_count(jobs.refused)),
        ("unfinished", say_count(jobs.unfinished)),
        *_spread("wait", report.wait_minutes),
        *_spread("completion", report.completion_minutes),
    ]
    if report.lines_refused:
        figures.append(("lines that are no job", say_count(report.lines_refused)))
    return Group(title="Jobs", figures=tuple(figures))


def _spread(name: str, minutes: Minutes) -> list[tuple[str, str]]:
    return [
        (f"{name}, mean", say_minutes(minutes.mean)),
        (f"{name}, p50", say_minutes(minutes.p50)),
        (f"{name}, p95", say_minutes(minutes.p95)),
    ]


def _gpus(report: Report) -> Group:
    lost = report.lost_gpu_hours
    return Group(
        title="GPUs",
        figures=(
            ("in the facility", say_count(report.gpus)),
            ("busy while jobs arrived", say_share(report.utilisation)),
            ("GPU-hours idle, jobs waiting", say_gpu_hours(report.idle_gpu_hours)),
            ("useful GPU-hours", say_gpu_hours(report.useful_gpu_hours)),
            ("lost GPU-hours", say_gpu_hours(lost.total)),
            ("… to caps and heat", say_gpu_hours(lost.throttle)),
            ("… to restarts", say_gpu_hours(lost.restart)),
            ("… to preemption", say_gpu_hours(lost.preempt)),
            ("… to pauses", say_gpu_hours(lost.pause)),
        ),
    )


def _energy(report: Report) -> Group:
    return Group(
        title="Energy",
        figures=(
            ("energy", say_energy(report.energy_kwh)),
            ("cost of energy", say_money(report.energy_usd)),
            ("cost with GPU time", say_money(report.cost_usd)),
            ("carbon", say_mass(report.carbon_kg)),
            ("PUE", say_ratio(report.pue)),
            ("TUE", say_ratio(report.tue)),
            ("peak", say_power(report.peak_kw)),
        ),
    )


def _limits(report: Report) -> Group:
    return Group(
        title="Limits",
        figures=(
            *over_caps(report),
            *slowed(report),
            ("shutdowns", say_count(report.shutdowns)),
            ("preemptions", say_count(report.preemptions)),
            ("migrations", say_count(report.migrations)),
            *_worst_of_feeds(report),
        ),
    )


def over_caps(report: Report) -> list[tuple[str, str]]:
    """Above what they may draw: of all racks and supplies together, of how many, and of the worst one."""
    over = report.cap_violations.values()
    return [
        ("caps violated, added up", say_added(report.cap_violation_seconds)),
        ("… racks and supplies", say_count(len(over))),
        ("… the worst of them", format_seconds(max(over, default=0.0))),
    ]


def slowed(report: Report) -> list[tuple[str, str]]:
    """A cap is often what was decided; heat never is."""
    return [
        ("GPU-hours slowed by caps", say_gpu_seconds(report.power_throttle_gpu_seconds)),
        ("GPU-hours slowed by heat", say_gpu_seconds(report.heat_throttle_gpu_seconds)),
    ]


def _scaling(scaling: ScalingReport) -> Group:
    waited = scaling.cold_start_seconds
    return Group(
        title="Sleeping nodes",
        figures=(
            ("node-hours asleep", say_count(scaling.asleep_node_hours)),
            ("starts that found nodes awake", say_share(scaling.hit_rate)),
            ("cold starts", say_count(scaling.cold_starts)),
            ("… waited for waking, mean", UNKNOWN if waited is None else format_seconds(round(waited))),
            ("… at most", format_seconds(round(scaling.longest_cold_start_seconds))),
            ("nodes woken", say_count(scaling.wakes)),
            ("… that did not wake", say_count(scaling.failed_wakes)),
        ),
    )


def _worst_of_feeds(report: Report) -> list[tuple[str, str]]:
    """Of the feeds that say what they bear."""
    figures = []
    for name, feed in report.feeds.items():
        if feed.worst_ramp_kw_per_minute is not None:
            bears = say_power(feed.ramp_kw_per_minute or 0.0)
            worst = say_power(feed.worst_ramp_kw_per_minute)
            figures.append((f"quickest minute of {name}", f"{worst} of {bears}"))
        if feed.worst_swing_kw is not None:
            bears = say_power(feed.swing_kw or 0.0)
            figures.append((f"widest swing of {name}", f"{say_power(feed.worst_swing_kw)} of {bears}"))
    return figures


def _replay(report: Report) -> Group:
    rate, scale = report.jobs_per_cpu_second, report.arrival_scale
    return Group(
        title="Replay",
        figures=(
            ("facility", report.truth),
            ("arrivals", "as they came" if scale == 1 else f"{scale:g} times as fast"),
            ("begins in the twin", report.begins_at[:10] or UNKNOWN),
            ("time in the twin", format_seconds(3600 * report.simulated_hours)),
            ("time it took", format_seconds(report.wall_seconds)),
            ("CPU time it took", format_seconds(report.cpu_seconds)),
            ("jobs per CPU second", UNKNOWN if rate is None else say_count(rate)),
        ),
    )
