"""Weighing: what would Wattline have decided, and how sure is that?

The jobs of the window are replayed in the twin under EASY, which is what Slurm's backfill does, and under the
default policy, with the same seeds. How far EASY is from what was measured says how much to believe.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from wattline.errors import DocumentError
from wattline.observing.accounting import Spell
from wattline.observing.report import Arm, Gain, Weighed
from wattline.observing.window import Window
from wattline.twin.comparison import Comparison, compare
from wattline.twin.lanes import Lap, run_laps
from wattline.twin.replaying import Question, read_material
from wattline.twin.report import Report
from wattline.twin.wording import say_added
from wattline.units import SECONDS_PER_HOUR, format_seconds

EASY, WATTLINE = "easy", "default"
_SEEDS = 3
_MOST_JOBS = 50_000
GAINS = ("wait_minutes.mean", "wait_minutes.p95", "energy_kwh", "throttle_gpu_seconds")
_NEAR = 0.25  # of what was measured: the twin may be believed
_NEAR_MINUTES = 1.0
_COLUMNS = "JobID|Submit|ElapsedRaw|AllocTRES|TimelimitRaw|Account|State|AllocCPUS"


def weigh(
    spells: Iterable[Spell],
    window: Window,
    waits_seconds: Sequence[float],
    facility: Path | str,
    *,
    is_assumed: bool,
    tell: Callable[[str], None],
) -> Weighed | None:
    """None where no job ran; `facility` is a document, or the text of one that is nowhere yet."""
    rows = trace_rows(spells, window)[-_MOST_JOBS:]
    if not rows:
        return None
    laps = [Lap(policy, seed) for seed in range(_SEEDS) for policy in (EASY, WATTLINE)]
    with tempfile.TemporaryDirectory(prefix="wattline-observe-") as folder:
        trace, document = Path(folder, "window.txt"), Path(folder, "facility.yaml")
        trace.write_text("\n".join((_COLUMNS, *rows)) + "\n")
        if isinstance(facility, Path):
            document = facility  # where the series that it names lie
        else:
            document.write_text(facility)
        try:
            material = read_material(Question(trace=trace, facility=str(document)))
        except DocumentError:
            return None  # not one of the rows is a job that ran
        tell(f"twin: {len(material.trace.jobs):,} jobs, {len(laps)} runs")
        reports = run_laps(material, laps, lanes=1, tell=lambda *_: None)
    arms = {
        name: [one for one in reports if one.policy == name]
        for name in dict.fromkeys(r.policy for r in reports)
    }
    easy, wattline = (_arm(own) for own in arms.values())
    measured = np.asarray(waits_seconds, dtype=float) / 60.0
    mean = float(measured.mean()) if len(measured) else None
    gains = tuple(_gains(compare(reports)))
    return Weighed(
        jobs=len(material.trace.jobs),
        seeds=_SEEDS,
        measured_wait_minutes_mean=mean,
        measured_wait_minutes_p95=float(np.percentile(measured, 95)) if len(measured) else None,
        easy=easy,
        wattline=wattline,
        gains=gains,
        say=_say(gains[0], len(material.trace.jobs), easy, wattline),
        how_sure=_how_sure(mean, easy.wait_minutes_mean, is_assumed=is_assumed),
        left_out=(
            "which partitions, GPU models and licenses a job asked for",
            "what jobs had waited before the window began",
            "what each job truly draws: drawn by lot",
        ),
    )


def trace_rows(spells: Iterable[Spell], window: Window) -> list[str]:
    """One row for each job: from when it could first have run, for as long as it ran the last time.

    Who ran already when the window begins comes then, with what was left of it."""
    by_job: dict[str, list[Spell]] = defaultdict(list)
    for spell in spells:
        by_job[spell.job].append(spell)
    rows = []
    for job, own in by_job.items():
        ran = [spell for spell in own if spell.started_at is not None]
        if not ran:
            continue
        last = max(ran, key=lambda spell: spell.started_at or 0.0)
        started = max(last.started_at or 0.0, window.begins_at)
        until = window.ends_at if last.ended_at is None else last.ended_at
        begun = max(min(spell.eligible_at for spell in own), window.begins_at)
        seconds = round(until - started)
        limit = "" if last.limit_minutes is None else f"{last.limit_minutes:.0f}"
        if seconds > 0:
            tail = f"gres/gpu={last.gpus}|{limit}|{last.account.replace('|', ' ')}|COMPLETED|{last.cpus:g}"
            rows.append((begun, started, f"{job}|{begun:.0f}|{seconds}|{tail}"))
    return [row for *_, row in sorted(rows)]


def _arm(reports: list[Report]) -> Arm:
    waits = [one.wait_minutes for one in reports]
    return Arm(
        policy=reports[0].policy,
        wait_minutes_mean=_mean([wait.mean for wait in waits]),
        wait_minutes_p95=_mean([wait.p95 for wait in waits]),
        energy_kwh=_mean([one.energy_kwh for one in reports]),
        throttle_gpu_hours=_mean([one.throttle_gpu_seconds / SECONDS_PER_HOUR for one in reports]),
        over_caps_seconds=fmean(one.cap_violation_seconds for one in reports),
        refused=max(one.jobs.refused for one in reports),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _gains(comparison: Comparison) -> Iterable[Gain]:
    contests = {contest.metric: contest for contest in comparison.metrics}
    for metric in GAINS:
        standing = contests[metric].standings[1]
        yield Gain(
            metric=metric,
            difference=standing.difference,
            low=standing.low,
            high=standing.high,
            is_clear=standing.is_clear,
        )


def _say(wait: Gain, jobs: int, easy: Arm, wattline: Arm) -> str:
    said = _say_wait(wait, jobs)
    if max(easy.over_caps_seconds, wattline.over_caps_seconds) < 1.0:
        return said
    over = [say_added(arm.over_caps_seconds) for arm in (easy, wattline)]
    drawn = f"{over[0]} under EASY, {over[1]} here, added up"
    return f"{said}; racks would have drawn more than their caps for {drawn}"


def _say_wait(wait: Gain, jobs: int) -> str:
    if wait.difference is None:
        return "no job of the replay waited or ran"
    minutes = abs(wait.difference)
    if minutes < 0.05:
        return "jobs would have waited as long as under EASY"
    word = "less" if wait.difference < 0 else "longer"
    in_all = format_seconds(60 * minutes * jobs)
    said = f"jobs would have waited {format_seconds(60 * minutes)} {word} on average, {in_all} in all"
    return said if wait.is_clear else f"{said}, which is not clear of chance"


def _how_sure(measured: float | None, easy: float | None, *, is_assumed: bool) -> str:
    if measured is None or easy is None:
        return "there is nothing to hold the twin against: take it as a hint"
    apart = abs(easy - measured)
    beside = (
        f"EASY in the twin waits {format_seconds(60 * easy)}, measured were {format_seconds(60 * measured)}"
    )
    if apart <= max(_NEAR_MINUTES, _NEAR * measured):
        sure = f"{beside}: the twin is near enough to be believed"
    else:
        sure = f"{beside}: something else kept jobs waiting here, so take it as a hint"
    if is_assumed:
        sure += "; caps are assumed, so what power limits would cost is not in it"
    return sure
