"""Losses by accounting: what did waiting, failing and running again come to, in GPU-hours?

Pure: from spells to figures. Only what lies inside the window counts. A spell that was followed by another of
the same job was in vain: a retry. A last one that ended badly is a failure. None counts twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wattline.observing.accounting import Spell
from wattline.observing.window import Window
from wattline.units import SECONDS_PER_HOUR

FAILED = frozenset(
    {"BOOT_FAIL", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "LAUNCH_FAILED"}
)
RETRIED = frozenset({"REQUEUED", "PREEMPTED", "REVOKED", "REQUEUE_HOLD", "REQUEUE_FED"})
NOT_SAID = "not said"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """GPU-hours, of how many spells, and by what."""

    gpu_hours: float
    spells: int
    by: dict[str, float]  # the most first


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What accounting says of the window."""

    jobs: int
    allocated_gpu_hours: float
    waited: Sum  # by reason
    retried: Sum  # by state
    failed: Sum  # by state
    cancelled: Sum  # while they ran, by account; said, not counted as a loss
    waits_seconds: tuple[float, ...]  # of each spell that started in the window


def tally(spells: Iterable[Spell], window: Window, pending: dict[str, str]) -> Tally:
    """`pending` is what jobs that wait now wait for."""
    by_job: dict[str, list[Spell]] = defaultdict(list)
    for spell in spells:
        by_job[spell.job].append(spell)
    sums = {name: _Adding() for name in ("waited", "retried", "failed", "cancelled")}
    allocated, waits = 0.0, []
    for job, own in by_job.items():
        own.sort(key=lambda spell: (spell.submitted_at, spell.started_at or np.inf))
        for spell in own:
            ran = run_hours(spell, window)
            allocated += ran
            sums["waited"].add(wait_hours(spell, window), spell.reason or pending.get(job, "") or NOT_SAID)
            if spell.started_at is not None and window.begins_at <= spell.started_at < window.ends_at:
                waits.append(spell.started_at - spell.eligible_at)
            if spell is not own[-1] or spell.state in RETRIED:
                sums["retried"].add(ran, spell.state)
            elif spell.state in FAILED:
                sums["failed"].add(ran, _ending(spell))
            elif spell.state.startswith("CANCELLED"):
                sums["cancelled"].add(ran, spell.account)
    return Tally(
        jobs=len(by_job),
        allocated_gpu_hours=allocated,
        waits_seconds=tuple(max(0.0, wait) for wait in waits),
        **{name: adding.sum() for name, adding in sums.items()},
    )


def wait_hours(spell: Spell, window: Window) -> float:
    """From when it could have run to when it did, left, or the window ends."""
    until = spell.started_at if spell.started_at is not None else spell.ended_at
    until = window.ends_at if until is None else until
    return spell.all_gpus * window.overlap_seconds(spell.eligible_at, until) / SECONDS_PER_HOUR


def run_hours(spell: Spell, window: Window) -> float:
    if spell.started_at is None:
        return 0.0
    until = window.ends_at if spell.ended_at is None else spell.ended_at
    return spell.gpus * window.overlap_seconds(spell.started_at, until) / SECONDS_PER_HOUR


def allocated_by_node(spells: Iterable[Spell], window: Window, nodes: Sequence[str]) -> NDArray[np.float64]:
    """GPUs that jobs held on each node, on average of each step; a job's GPUs are spread evenly."""
    rows = {name: number for number, name in enumerate(nodes)}
    held = np.zeros((len(nodes), window.steps))
    for spell in spells:
        if spell.started_at is None or not spell.hosts:
            continue
        until = window.ends_at if spell.ended_at is None else spell.ended_at
        steps, shares = window.spread(spell.started_at, until)
        each = spell.gpus / len(spell.hosts)
        for host in spell.hosts:
            if host in rows:
                held[rows[host], steps] += each * shares
    return held


def waiting_by_step(spells: Iterable[Spell], window: Window) -> NDArray[np.float64]:
    """GPUs that were waited for, on average of each step."""
    waiting = np.zeros(window.steps)
    for spell in spells:
        until = spell.started_at if spell.started_at is not None else spell.ended_at
        steps, shares = window.spread(spell.eligible_at, window.ends_at if until is None else until)
        waiting[steps] += spell.all_gpus * shares
    return waiting


def _ending(spell: Spell) -> str:
    """Of jobs that failed by themselves, how: an exit code says more than a word that fits all."""
    told = spell.state == "FAILED" and spell.exit_code not in ("", "0:0")
    return f"FAILED {spell.exit_code}" if told else spell.state


class _Adding:
    def __init__(self) -> None:
        self._by: dict[str, float] = defaultdict(float)
        self._spells = 0

    def add(self, gpu_hours: float, what: str) -> None:
        if gpu_hours > 0:
            self._by[what] += gpu_hours
            self._spells += 1

    def sum(self) -> Sum:
        by = dict(sorted(self._by.items(), key=lambda item: (-item[1], item[0])))
        return Sum(gpu_hours=sum(by.values()), spells=self._spells, by=by)
