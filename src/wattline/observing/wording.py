"""Which figures does a person want of a window, in which order? The page and the terminal show the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from wattline.observing.asking import Asked
from wattline.observing.report import Arm, Loss, Report, State, Weighed
from wattline.twin.wording import say_added, say_energy, say_gpu_hours, say_minutes, say_share
from wattline.units import format_named, format_seconds, format_watts

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]

_NOTHING = "–"
_MOST_REASONS = 3
_MOST_LIMITS = 5


def say_headline(report: Report) -> str:
    cluster = f"{report.cluster}: " if report.cluster else ""
    known = [loss for loss in report.losses if loss.gpu_hours]
    span = format_seconds(3600 * report.hours)
    if not report.losses:
        return f"{cluster}nothing could be counted in {span}"
    if not known:
        return f"{cluster}no loss was found in {span}"
    hours = say_gpu_hours(known[0].gpu_hours)
    return f"{cluster}in {span} the most was lost to {known[0].name}: {hours} GPU-hours"


def say_window(report: Report) -> str:
    models = ", ".join(f"{count:,} {model}" for model, count in report.models.items())
    said = f"{report.begins_at} to {report.ends_at}; {report.nodes:,} nodes, {report.gpus:,} GPUs"
    said += f" ({models})" if models else ""
    if report.allocated_gpu_hours is not None and report.available_gpu_hours:
        held = report.allocated_gpu_hours / report.available_gpu_hours
        said += f"; jobs held {say_share(held)} of {say_gpu_hours(report.available_gpu_hours)} GPU-hours"
    if report.busy_fraction is not None:
        said += f", busy {say_share(report.busy_fraction)} (known for {_covered(report, 'utilisation')})"
    if report.energy_kwh is not None:
        said += f"; GPUs took {say_energy(report.energy_kwh)} (power known for {_covered(report, 'power')})"
    return said


def loss_rows(report: Report) -> Table:
    header = ("to", "GPU-hours", "of held", "known for", "source", "mostly")
    rows = [
        (
            loss.name + (" (estimated)" if loss.is_estimated else ""),
            say_gpu_hours(loss.gpu_hours),
            _share(loss.share),
            _share(loss.coverage),
            loss.source,
            _mostly(loss),
        )
        for loss in report.losses
    ]
    return header, rows


def state_rows(report: Report) -> Table:
    """Work and its energy beside what is normal: 100 % there."""
    header = ("GPUs at work", "GPU-hours", "busy", "clock", "draw", "work an hour", "energy for it")
    if report.normal is None or report.degraded is None:
        return header, []
    normal = report.normal
    states = (("normal", normal), ("held back", report.degraded))
    return header, [(name, *_state(state, normal)) for name, state in states]


def limit_rows(report: Report) -> Table:
    header = ("nearest to a limit", "quantity", "peak", "mean", "may carry")
    rows = [
        (
            limit.name,
            limit.quantity,
            format_named(limit.quantity, limit.peak),
            format_named(limit.quantity, limit.mean),
            _NOTHING if limit.cap is None else format_named(limit.quantity, limit.cap),
        )
        for limit in report.limits[:_MOST_LIMITS]
    ]
    return header, rows


def replay_rows(replay: Weighed) -> Table:
    header = ("the same jobs", "wait, mean", "wait, p95", "energy", "throttled GPU-hours", "over caps")
    measured = (replay.measured_wait_minutes_mean, replay.measured_wait_minutes_p95)
    return header, [
        ("as it happened", *(say_minutes(minutes) for minutes in measured), _NOTHING, _NOTHING, _NOTHING),
        ("EASY, in the twin", *_arm(replay.easy)),
        ("Wattline, in the twin", *_arm(replay.wattline)),
    ]


def asked_rows(report: Report) -> Table:
    """Pieces of one window are one question, asked several times; JSON has each of them."""
    groups: dict[str, list[Asked]] = defaultdict(list)
    for one in report.asked:
        what = re.sub(r" (-S|-E) \S+", r" \1 …", one.what)
        groups[re.sub(r" (start|end)=\S+", r" \1=…", what)].append(one)
    header = ("question", "times", "seconds", "no answer")
    rows = []
    for what, own in groups.items():
        unanswered = sum(one.outcome != "answered" for one in own)
        seconds = sum(one.seconds for one in own)
        rows.append((what, str(len(own)), f"{seconds:.2g}", str(unanswered) if unanswered else ""))
    return header, rows


def say_not_known(report: Report) -> list[str]:
    """What is missing from the figures, and what of the proposed facility nobody told."""
    missing = [what for what in report.not_estimated if not what.startswith("facility: ")]
    lines = [f"not known: {', '.join(missing)}"] if missing else []
    if report.assumed:
        lines.append(f"assumed in the proposed facility: {', '.join(report.assumed)}")
    return lines


def _arm(arm: Arm) -> tuple[str, ...]:
    return (
        say_minutes(arm.wait_minutes_mean),
        say_minutes(arm.wait_minutes_p95),
        say_energy(arm.energy_kwh),
        say_gpu_hours(arm.throttle_gpu_hours),
        say_added(arm.over_caps_seconds),
    )


def _state(state: State, normal: State) -> tuple[str, ...]:
    def beside(own: float | None, usual: float | None) -> str:
        return _share(own / usual if own is not None and usual else None)

    return (
        say_gpu_hours(state.gpu_hours),
        _share(state.busy),
        _share(state.clock),
        _NOTHING if state.watts is None else format_watts(state.watts),
        beside(state.work, normal.work),
        beside(state.joules_per_work, normal.joules_per_work),
    )


def _mostly(loss: Loss) -> str:
    if loss.name == "throttling" or not loss.by:
        return loss.detail
    most = list(loss.by.items())[:_MOST_REASONS]
    return ", ".join(f"{what} {say_gpu_hours(hours)}" for what, hours in most)


def _covered(report: Report, what: str) -> str:
    return f"{say_share(report.coverage[what])} of held GPU-hours"


def _share(value: float | None) -> str:
    return _NOTHING if value is None else say_share(value)
