"""Concluding: what does all that was seen come to? The losses, the biggest first, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from wattline.observing.asking import ReadOnly
from wattline.observing.losses import Tally, tally
from wattline.observing.observing import Seen, Wanted
from wattline.observing.occupancy import Occupied, find_occupied
from wattline.observing.report import Loss, Report, State, Weighed
from wattline.observing.throttling import (
    Condition,
    Held,
    Throttled,
    covered,
    find_conditions,
    find_held,
    sum_held,
    watts_of,
)
from wattline.observing.weighing import weigh
from wattline.observing.window import iso
from wattline.spec import find_facility
from wattline.units import SECONDS_PER_HOUR

_ACCOUNTS = "sacct"


def conclude(
    seen: Seen, wanted: Wanted, ask: ReadOnly, *, replays: bool, tell: Callable[[str], None]
) -> Report:
    window, meters = seen.window, seen.meters
    counted = None if seen.accounts is None else tally(seen.spells, window, seen.cluster.pending)
    watts = watts_of(meters, window.step_seconds)
    occupied = find_occupied(meters, seen.held, seen.nodes, seen.of_labels, watts, window.step_seconds)
    held = find_held(meters, window.step_seconds)
    states = None if held is None else find_conditions(meters, held, window.step_seconds)
    replay = _replay(seen, wanted, counted, tell) if replays else None
    losses = _losses(seen, counted, occupied, held)
    return Report(
        cluster=seen.cluster.settings.cluster,
        begins_at=iso(window.begins_at),
        ends_at=iso(window.ends_at),
        hours=window.seconds / SECONDS_PER_HOUR,
        step_seconds=window.step_seconds,
        nodes=len(seen.nodes),
        gpus=seen.gpus,
        models=seen.models,
        partitions=seen.cluster.partitions,
        licenses={one.name: f"{one.used} of {one.total}" for one in seen.cluster.licenses},
        jobs=None if counted is None else counted.jobs,
        available_gpu_hours=seen.gpus * window.seconds / SECONDS_PER_HOUR,
        allocated_gpu_hours=None if counted is None else counted.allocated_gpu_hours,
        busy_fraction=occupied.busy_fraction,
        energy_kwh=occupied.energy_kwh,
        coverage={
            "utilisation": occupied.busy_coverage,
            "power": occupied.watts_coverage,
            "throttling": 0.0 if held is None else covered(held, seen.gpus),
        },
        losses=losses,
        free_while_waiting_gpu_hours=_free_while_waiting(seen),
        cancelled_gpu_hours=None if counted is None else counted.cancelled.gpu_hours,
        normal=None if states is None else _state(states[0]),
        degraded=None if states is None else _state(states[1]),
        limits=seen.limits,
        replay=replay,
        assumed=() if seen.proposal is None else seen.proposal.assumed,
        remarks=tuple(seen.remarks),
        not_estimated=tuple(_not_estimated(seen, losses, occupied, replay)),
        next_steps=tuple(_next_steps(losses, seen)),
        asked=tuple(ask.asked),
    )


def _losses(seen: Seen, counted: Tally | None, occupied: Occupied, held: Held | None) -> tuple[Loss, ...]:
    known, gpus = None if seen.accounts is None else seen.accounts.covered, seen.gpus
    losses = [] if counted is None else _accounted(counted, known)
    total = None if counted is None else counted.allocated_gpu_hours

    def share(hours: float | None) -> float | None:
        return hours / total if hours is not None and total else None

    if held is not None:
        throttled = sum_held(held, gpus)
        hours = _lost(throttled)
        losses.append(
            Loss(
                name="throttling",
                gpu_hours=hours,
                share=share(hours),
                by={
                    "held back by power": throttled.held_by_power,
                    "held back by heat": throttled.held_by_heat,
                    **_lost_by(throttled),
                },
                detail=_say_throttled(throttled),
                source="DCGM clocks, draw, heat" if held.is_estimated else "DCGM violations, clocks",
                coverage=throttled.coverage,
                is_estimated=held.is_estimated,
            )
        )
    if occupied.idle_gpu_hours is not None and counted is not None:
        losses.append(
            Loss(
                name="idle in allocations",
                gpu_hours=occupied.idle_gpu_hours,
                share=share(occupied.idle_gpu_hours),
                by={},
                detail="held by jobs while utilisation was below 5 %",
                source="sacct and DCGM, by node",
                coverage=occupied.busy_coverage,
            )
        )
    return tuple(sorted(losses, key=lambda loss: -(loss.gpu_hours or 0.0)))


def _accounted(counted: Tally, coverage: float | None) -> list[Loss]:
    total = counted.allocated_gpu_hours
    sums = (
        ("queueing", counted.waited, "work that could have run and waited"),
        ("failed jobs", counted.failed, "run by jobs that ended badly"),
        ("retries", counted.retried, "run by attempts that were begun again"),
    )
    return [
        Loss(
            name=name,
            gpu_hours=added.gpu_hours,
            share=added.gpu_hours / total if total else None,
            by=added.by,
            detail=f"{what}: {added.spells:,} times",
            source=_ACCOUNTS,
            coverage=coverage,
        )
        for name, added, what in sums
    ]


def _lost(throttled: Throttled) -> float | None:
    if throttled.lost_to_power is None or throttled.lost_to_heat is None:
        return None
    return throttled.lost_to_power + throttled.lost_to_heat


def _lost_by(throttled: Throttled) -> dict[str, float]:
    if throttled.lost_to_power is None or throttled.lost_to_heat is None:
        return {}
    return {"lost to power": throttled.lost_to_power, "lost to heat": throttled.lost_to_heat}


def _say_throttled(throttled: Throttled) -> str:
    held = f"held back {throttled.held_by_power:,.3g} h by power, {throttled.held_by_heat:,.3g} h by heat"
    if throttled.lost_to_power is None or throttled.lost_to_heat is None:
        return f"{held}; no clocks, so what work that cost is not known"
    return f"power {throttled.lost_to_power:,.3g}, heat {throttled.lost_to_heat:,.3g}; {held}"


def _free_while_waiting(seen: Seen) -> float | None:
    """GPUs that nobody held while somebody waited for some: fragments, limits and reservations."""
    if seen.accounts is None or not seen.nodes:
        return None
    free = np.clip(seen.gpus - seen.held.sum(axis=0), 0.0, None)
    return float(np.minimum(free, seen.waiting).sum()) * seen.window.step_seconds / SECONDS_PER_HOUR


def _state(condition: Condition) -> State:
    work, watts = condition.work, condition.watts
    return State(
        gpu_hours=condition.gpu_hours,
        busy=condition.busy,
        clock=condition.clock,
        watts=watts,
        work=work,
        joules_per_work=watts / work if work and watts is not None else None,
    )


def _replay(seen: Seen, wanted: Wanted, counted: Tally | None, tell: Callable[[str], None]) -> Weighed | None:
    if counted is None:
        return None
    facility: Path | str
    if wanted.facility is not None:
        facility = Path(find_facility(wanted.facility))
    elif seen.proposal is not None:
        facility = seen.proposal.text
    else:
        return None
    assumed = () if wanted.facility is not None or seen.proposal is None else seen.proposal.assumed
    return weigh(
        seen.spells,
        seen.window,
        counted.waits_seconds,
        facility,
        is_assumed="rack caps" in assumed,
        tell=tell,
    )


def _not_estimated(
    seen: Seen, losses: Sequence[Loss], occupied: Occupied, replay: Weighed | None
) -> list[str]:
    told = {loss.name for loss in losses}
    everything = ("queueing", "failed jobs", "retries", "throttling", "idle in allocations")
    missing = [f"losses: {name}" for name in everything if name not in told]
    missing += [f"losses: {loss.name}: gpu_hours" for loss in losses if loss.gpu_hours is None]
    if occupied.energy_kwh is None:
        missing.append("energy_kwh")
    if replay is None:
        missing.append("replay")
    missing += ["cost", "carbon"]
    if seen.proposal is not None:
        missing += [f"facility: {what}" for what in seen.proposal.assumed]
    return missing


_STEPS = {
    "queueing": "jobs wait: play `wattline twin plan` on the facility for what more racks would buy",
    "failed jobs": "jobs fail: put `wattline check` in front, and they fail before they run",
    "retries": "attempts are lost: save checkpoints (`wattline.train`), so that a requeue costs minutes",
    "throttling": "GPUs are held back: give the facility true caps, then let a rule warn",
    "idle in allocations": "held GPUs idle: a rule in mode `report` names who holds them",
}


def _next_steps(losses: Sequence[Loss], seen: Seen) -> list[str]:
    steps = [_STEPS[loss.name] for loss in losses if loss.gpu_hours][:1]
    if seen.proposal is not None:
        steps.append(
            "correct the lines of the proposed facility that say `assumed`, then `wattline facility check`"
        )
    steps.append("observe (this) → report (rules that only tell) → warn → block → enforce: one at a time")
    return steps
