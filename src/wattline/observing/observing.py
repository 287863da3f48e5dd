"""Observing: what do a cluster, its accounts and its meters say of a window? What is missing is named."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from wattline.errors import DocumentError, UnavailableError, UsageError
from wattline.facility import Facility
from wattline.observing.accounting import Accounts, Spell
from wattline.observing.asking import ReadOnly
from wattline.observing.limits import read_limits
from wattline.observing.losses import allocated_by_node, waiting_by_step
from wattline.observing.occupancy import node_of_labels, strangers
from wattline.observing.proposing import Known, Proposal, propose
from wattline.observing.racks import Standing, read_racks
from wattline.observing.reading import (
    Cluster,
    read_accounting,
    read_cluster,
    read_dump,
    read_saved_accounting,
)
from wattline.observing.remarks import Remarks, named
from wattline.observing.report import Limit
from wattline.observing.series import Matrix, Meters, SeriesReader, read_clock
from wattline.observing.window import Window, iso, window_before
from wattline.spec import read_facility
from wattline.telemetry.asking import MeterError

_SKEW_SECONDS = 5.0
_QUIET_SECONDS = 3600.0  # a cluster may be as still as this; beyond, a file is likely old


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asks for."""

    since_seconds: float
    until: float | None = None  # now, unless said
    sacct: Path | None = None  # instead of asking
    scontrol: Path | None = None  # instead of asking
    racks: Path | None = None
    facility: str | None = None  # instead of proposing one
    gpu: str = ""
    match: str = ""  # labels that narrow every series: cluster="a"
    prometheus: str = ""


@dataclass(slots=True, kw_only=True)
class Seen:
    """All that was read of one window."""

    window: Window
    cluster: Cluster
    accounts: Accounts | None
    meters: Meters
    remarks: Remarks
    nodes: list[str]  # those with GPUs
    gpu: str = ""  # their model, as whoever asks says
    of_labels: Mapping[str, str] = field(default_factory=dict)
    ahead_seconds: float = 0.0  # of Prometheus's clock, beside Slurm's
    limits: tuple[Limit, ...] = ()
    proposal: Proposal | None = None
    held: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # GPUs allocated, by node and step
    waiting: Matrix = field(default_factory=lambda: np.zeros(0))

    @property
    def gpus(self) -> int:
        return sum(self.cluster.machines[name].gpus for name in self.nodes)

    @property
    def spells(self) -> list[Spell]:
        return [] if self.accounts is None else list(self.accounts.spells.values())

    @property
    def models(self) -> dict[str, int]:
        """How many GPUs of each model, by what is told of them."""
        counted: Counter[str] = Counter()
        by_node = models_by_node(self.meters, self.of_labels)
        for name in self.nodes:
            machine = self.cluster.machines[name]
            model = self.gpu or machine.model or by_node.get(name, "") or "model not known"
            counted[model] += machine.gpus
        return dict(counted.most_common())


def see(wanted: Wanted, ask: ReadOnly, tell: Callable[[str], None]) -> Seen:
    """Read the cluster, its accounts and its meters."""
    remarks = Remarks()
    # What people wrote comes first: nobody should wait minutes to hear of a wrong line.
    standings = {} if wanted.racks is None else read_racks(wanted.racks)
    facility = None if wanted.facility is None else read_facility(wanted.facility)
    tell("Slurm: nodes")
    if wanted.scontrol is not None:
        cluster = read_dump(wanted.scontrol)
    elif ask.has_slurm:
        cluster = read_cluster(ask, remarks)
    else:
        raise UsageError(
            "there is no cluster to look at", hint="--slurm, or --scontrol FILE and --sacct FILE"
        )
    now = time.time()
    clock_at = cluster.settings.clock_at if wanted.scontrol is None else None
    if clock_at is not None and abs(clock_at - now) > _SKEW_SECONDS:
        remarks.note(f"Slurm's clock is {clock_at - now:+.0f} s beside ours; the window goes by Slurm's")
        now = clock_at
    saved = None if wanted.sacct is None else read_saved_accounting(wanted.sacct, remarks)
    window = window_before(_end(wanted, saved, now, remarks), wanted.since_seconds)
    accounts = saved or _accounts(ask, cluster, window, remarks, tell)
    nodes = [name for name, machine in cluster.machines.items() if machine.gpus]
    if not nodes:
        remarks.note("no node has GPUs by Slurm's GRES: shares of GPU-hours are not known")
    gpus = sum(cluster.machines[name].gpus for name in nodes)
    seen = Seen(
        window=window,
        cluster=cluster,
        accounts=accounts,
        meters=Meters(),
        remarks=remarks,
        nodes=nodes,
        gpu=wanted.gpu,
    )
    seen.held = allocated_by_node(seen.spells, window, nodes)
    seen.waiting = waiting_by_step(seen.spells, window)
    _read_meters(seen, ask, wanted, gpus, now, tell)
    if facility is not None and ask.has_prometheus:
        tell("Prometheus: racks, supplies and loops")
        seen.limits = read_limits(ask, facility, window, seen.ahead_seconds, remarks)
    _note_standings(standings, cluster, remarks)
    if facility is None:
        seen.proposal = _propose(seen, standings, wanted)
    else:
        _note_contradictions(facility, seen)
    return seen


def _propose(seen: Seen, standings: Mapping[str, Standing], wanted: Wanted) -> Proposal | None:
    cluster, remarks = seen.cluster, seen.remarks
    try:
        proposal = propose(
            Known(
                cluster=cluster.settings.cluster,
                machines=cluster.machines,
                models=models_by_node(seen.meters, seen.of_labels),
                standings=standings,
                switches=cluster.switches,
                gpu=wanted.gpu,
                prometheus=wanted.prometheus,
            )
        )
    except DocumentError as error:  # only what the table says may be wrong in it
        caps = [problem for problem in error.problems if problem.field.endswith(".cap")]
        if wanted.racks is None or not caps:
            raise
        raise DocumentError(
            *(replace(problem, file=str(wanted.racks), line=0, column=0) for problem in caps)
        ) from None
    if proposal is None and seen.nodes:
        remarks.note(
            "no model of a GPU is known, so no facility is proposed and nothing replayed: "
            "--gpu H100 says what they are"
        )
    if proposal is not None and proposal.left_out:
        remarks.note(
            f"not in the proposed facility, since no model is known: {named(proposal.left_out)}; "
            "--gpu H100 says what they are"
        )
    return proposal


def _note_contradictions(facility: Facility, seen: Seen) -> None:
    """A facility that is not this cluster would be replayed as if it were."""
    halls = [site for site in facility.sites if site.cloud is None]
    nodes = [node for site in halls for rack in site.racks for node in rack.nodes if node.gpus]
    gpus = sum(node.gpus for node in nodes)
    if (gpus, len(nodes)) != (seen.gpus, len(seen.nodes)):
        seen.remarks.note(
            f"the facility {facility.name} has {gpus:,} GPUs in {len(nodes):,} nodes, Slurm {seen.gpus:,} "
            f"in {len(seen.nodes):,}: what is replayed there is not this cluster"
        )
    hosts = {node.host for node in nodes if node.host}
    unknown = hosts - set(seen.cluster.machines)
    if unknown:
        seen.remarks.note(f"the facility names hosts that Slurm does not know: {named(unknown)}")


def models_by_node(meters: Meters, of_labels: Mapping[str, str]) -> dict[str, str]:
    return {of_labels[host]: model for (host, _), model in meters.models.items() if host in of_labels}


def _end(wanted: Wanted, saved: Accounts | None, now: float, remarks: Remarks) -> float:
    """Never later than anybody has looked: what runs or waits would be counted on from there."""
    if wanted.until is not None:
        if wanted.until > now + _SKEW_SECONDS:
            raise UsageError(
                f"--until: lies ahead, and nobody knows yet what is lost by then, got {iso(wanted.until)}",
                hint=f"at most {iso(now)}, or leave it out",
            )
        return wanted.until
    if saved is None or not 0 < saved.newest_at < now:
        return now
    if now - saved.newest_at > _QUIET_SECONDS:
        remarks.note(
            f"{wanted.sacct} tells of nothing after {iso(saved.newest_at)}: the window ends there; "
            "--until names another end"
        )
    return saved.newest_at


def _accounts(
    ask: ReadOnly,
    cluster: Cluster,
    window: Window,
    remarks: Remarks,
    tell: Callable[[str], None],
) -> Accounts | None:
    if not ask.has_slurm:
        remarks.note("no accounting was given: --sacct FILE names it")
        return None
    if cluster.settings.accounting.endswith("/none"):
        remarks.note("Slurm keeps no accounts here (AccountingStorageType): waits and failures are not known")
        return None
    return read_accounting(ask, window, remarks, tell)


def _read_meters(
    seen: Seen, ask: ReadOnly, wanted: Wanted, gpus: int, now: float, tell: Callable[[str], None]
) -> None:
    if not ask.has_prometheus:
        seen.remarks.note("no Prometheus was named: throttling, utilisation and energy are not known")
        return
    try:
        asked_at = time.time()
        clock_at = read_clock(ask)
        skew = clock_at - (now + time.time() - asked_at)
        if abs(skew) > _SKEW_SECONDS and wanted.until is None:
            seen.remarks.note(
                f"Prometheus's clock is {skew:+.0f} s beside Slurm's: its window is moved by that"
            )
            seen.ahead_seconds = skew
    except MeterError as error:
        seen.remarks.note(f"Prometheus: {error.message}")
        return
    reader = SeriesReader(
        ask,
        seen.window,
        seen.remarks,
        gpus=gpus,
        ahead_seconds=seen.ahead_seconds,
        match=wanted.match,
        tell=tell,
    )
    seen.meters = reader.read()
    hosts = sorted({host for host, _ in seen.meters.gpus})
    seen.of_labels = node_of_labels(hosts, seen.cluster.machines)
    counts = {name: seen.cluster.machines[name].gpus for name in seen.nodes}
    only_told, only_known = strangers(seen.meters.gpus, seen.of_labels, counts)
    if only_told:
        seen.remarks.note(f"Prometheus tells of hosts that Slurm does not know: {named(only_told)}")
    if only_known and seen.of_labels:
        seen.remarks.note(f"Prometheus tells nothing of nodes that Slurm knows: {named(only_known)}")
    if not seen.meters.gpus:
        seen.remarks.note("Prometheus keeps no DCGM series of this window")
    seen.meters = seen.meters.only(seen.of_labels)


def _note_standings(standings: Mapping[str, object], cluster: Cluster, remarks: Remarks) -> None:
    if not standings:
        return
    unknown = set(standings) - set(cluster.machines)
    missing = {name for name, machine in cluster.machines.items() if machine.gpus} - set(standings)
    if unknown:
        remarks.note(f"the table of racks names nodes that Slurm does not know: {named(unknown)}")
    if missing:
        remarks.note(f"the table of racks lacks nodes that have GPUs: {named(missing)}")
    if len(unknown) == len(standings):
        raise UnavailableError(
            "the table of racks names no node that Slurm knows",
            hint="its `node` column holds Slurm's NodeName",
        )
