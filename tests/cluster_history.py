"""An hour of a cluster's life that never was, with losses put in on purpose: does a test find them?

    history = a_history(ends_at, seed=1)
    history.write_accounting(cluster)     rows of slurmdbd's own tables, which a real sacct reads
    history.write_series(folder)          blocks that a real Prometheus is started on

Jobs follow each other on each node; while one runs its GPUs are busy, now and then idle, held back by power
or by heat. The truth is summed up as it is made up, in seconds, by nothing that `observe` uses.
"""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from slurm_cluster import SlurmCluster

HOUR = 3600.0
GPUS = 8
HIGHEST_MHZ = 1980.0
EVERY_SECONDS = 15
MODEL = "NVIDIA H100 80GB HBM3"
_STATES = {
    "PENDING": 0,
    "RUNNING": 1,
    "COMPLETED": 3,
    "CANCELLED": 4,
    "FAILED": 5,
    "TIMEOUT": 6,
    "NODE_FAIL": 7,
    "PREEMPTED": 8,
    "OUT_OF_MEMORY": 11,
    "REQUEUED": 1024,
}
_REASONS = {"None": 0, "Priority": 1, "Resources": 3, "Licenses": 10}
_FAILING = ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of accounting; 0: not yet."""

    job: int
    state: str
    reason: str
    submitted_at: int
    started_at: int
    ended_at: int
    gpus: int
    nodes: tuple[str, ...]


@dataclass(kw_only=True)
class Truth:
    """In GPU-seconds."""

    lost: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_reason: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    joules: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Episode:
    begins_at: float
    ends_at: float
    kind: str  # power, heat, idle, busy
    mhz: float


@dataclass(kw_only=True)
class History:
    begins_at: int
    ends_at: int
    rows: list[Row]
    episodes: dict[tuple[str, int], list[Episode]]
    truth: Truth

    def sacct(self) -> str:
        """The rows as `sacct --parsable2` prints them."""
        lines = [
            "JobIDRaw|JobID|Account|Partition|State|Reason|Submit|Eligible|Start|End|NodeList|AllocTRES|ReqTRES"
        ]
        for row in self.rows:
            tres = f"gres/gpu={row.gpus}"
            times = [str(at) if at else "Unknown" for at in (row.started_at, row.ended_at)]
            who = (
                f"{row.job}|{row.job}|lab|main|{row.state}|{row.reason}|{row.submitted_at}|{row.submitted_at}"
            )
            held = tres if row.started_at else ""
            lines.append(f"{who}|{times[0]}|{times[1]}|{','.join(row.nodes)}|{held}|{tres}")
        return "\n".join(lines) + "\n"

    def write_accounting(self, cluster: SlurmCluster) -> None:
        """Into the table of a real slurmdbd: an hour of jobs cannot be waited for."""
        values = []
        for number, row in enumerate(self.rows, 1):
            tres = f"1={row.gpus},4={max(1, len(row.nodes))},1001={row.gpus}"
            nodes = f"'{','.join(row.nodes)}'" if row.nodes else "'None assigned'"
            at = row.ended_at or row.started_at or row.submitted_at
            values.append(
                f"({9000 + number},{at},'lab',{row.gpus},'made',4,"
                f"{row.job},0,0,0,0,0,4294967294,{_REASONS[row.reason]},{nodes},{len(row.nodes)},'main',1,"
                f"{_STATES[row.state]},60,{row.submitted_at},{row.submitted_at},{row.started_at},{row.ended_at},"
                f"'{tres if row.started_at else ''}','{tres}')"
            )
        columns = (
            "job_db_inx,mod_time,account,cpus_req,job_name,id_assoc,id_job,id_resv,id_wckey,id_user,id_group,"
            "het_job_id,het_job_offset,state_reason_prev,nodelist,nodes_alloc,`partition`,priority,state,"
            "timelimit,time_submit,time_eligible,time_start,time_end,tres_alloc,tres_req"
        )
        cluster.run(
            *("mariadb", "--no-defaults", f"--socket={cluster.folder}/database.socket", "slurm"),
            *("-e", f"insert into test_job_table ({columns}) values {','.join(values)}"),
        )

    def write_series(self, folder: Path) -> None:
        """Blocks in `folder/tsdb`, by Prometheus's own importer."""
        text = folder / "series.txt"
        text.write_text(self.open_metrics())
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", text, folder / "tsdb"],
            check=True,
            capture_output=True,
            timeout=120,
        )

    def rack_watts(self) -> dict[str, dict[int, float]]:
        """What a meter of each rack says, by moment: r1 holds the first two nodes, r2 the others."""
        told: dict[str, dict[int, float]] = {"r1": defaultdict(float), "r2": defaultdict(float)}
        for (host, _), episodes in self.episodes.items():
            rack = told["r1" if host in ("n1", "n2") else "r2"]
            at = iter(episodes)
            now = next(at)
            for moment in range(self.begins_at, self.ends_at + 1, EVERY_SECONDS):
                while now.ends_at <= moment:
                    now = next(at)
                rack[moment] += watts_of(now)
        return told

    def open_metrics(self) -> str:
        families: dict[str, list[str]] = defaultdict(list)
        for (host, gpu), episodes in self.episodes.items():
            labels = f'{{Hostname="{host}",gpu="{gpu}",modelName="{MODEL}",instance="{host}:9400"}}'
            counts: dict[str, float] = defaultdict(float)
            before = float(episodes[0].begins_at)
            at = iter(episodes)
            now = next(at)
            for moment in range(round(before), self.ends_at + 1, EVERY_SECONDS):
                while before < moment:
                    until = min(moment, now.ends_at)
                    counts[now.kind] += until - before
                    counts["mJ"] += 1000 * watts_of(now) * (until - before)
                    before = until
                    if until >= now.ends_at:
                        now = next(at, now)
                        if before >= now.ends_at:
                            break
                told = {
                    "POWER_VIOLATION": counts["power"] * 1e9,
                    "THERMAL_VIOLATION": counts["heat"] * 1e9,
                    "GPU_UTIL": 0.0 if now.kind == "idle" else 97.0,
                    "SM_CLOCK": now.mhz,
                    "POWER_USAGE": watts_of(now),
                    "GPU_TEMP": 88.0 if now.kind == "heat" else 62.0,
                    "TOTAL_ENERGY_CONSUMPTION": counts["mJ"],
                }
                for name, value in told.items():
                    families[name].append(f"DCGM_FI_DEV_{name}{labels} {value:.0f} {moment}")
        lines = []
        for name, samples in families.items():
            lines += [f"# TYPE DCGM_FI_DEV_{name} gauge", *samples]
        lines.append("# TYPE hall_rack_kilowatts gauge")
        for rack, by_moment in self.rack_watts().items():
            lines += [
                f'hall_rack_kilowatts{{rack="{rack}"}} {watts / 1000:.3f} {moment}'
                for moment, watts in by_moment.items()
            ]
        return "\n".join([*lines, "# EOF\n"])


def watts_of(episode: Episode) -> float:
    return {"idle": 70.0, "busy": 640.0, "power": 500.0, "heat": 390.0}[episode.kind]


def a_history(ends_at: int, seed: int, nodes: tuple[str, ...] = ("n1", "n2", "n3", "n4")) -> History:
    """The last two nodes always work together."""
    chance = random.Random(seed)
    begins_at = ends_at - round(HOUR)
    rows: list[Row] = []
    truth = Truth()
    held: dict[str, list[tuple[int, int]]] = defaultdict(list)
    job = 5000

    def lose(what: str, gpus: int, begins: float, ends: float) -> float:
        seconds = gpus * max(0.0, min(ends, ends_at) - max(begins, begins_at))
        truth.lost[what] += seconds
        return seconds

    for group in (*((node,) for node in nodes[:-2]), nodes[-2:]):
        at = begins_at - chance.randint(60, 600)
        gpus = GPUS * len(group)
        again: int | None = None
        while at < ends_at:
            job += again is None
            waited = chance.randint(0, 900)
            runs = chance.randint(200, 1200)
            state = chance.choice((*_FAILING, *["COMPLETED"] * 4, "REQUEUED", "PREEMPTED", "CANCELLED"))
            ended = at + runs
            if ended >= ends_at:
                state, ended = "RUNNING", 0
            reason = chance.choice(("Priority", "Resources", "Licenses"))
            submitted = at - waited if again is None else max(again, at - waited)
            row = Row(
                job=job if again is None else rows[-1].job,
                state=state,
                reason=reason,
                submitted_at=submitted,
                started_at=at,
                ended_at=ended,
                gpus=gpus,
                nodes=group,
            )
            rows.append(row)
            truth.by_reason[reason] += lose("queueing", gpus, submitted, at)
            kind = {**dict.fromkeys(_FAILING, "failed jobs"), "REQUEUED": "retries", "PREEMPTED": "retries"}
            if state in kind:
                lose(kind[state], gpus, at, ended)
            for node in group:
                held[node].append((at, ended or ends_at + 60))
            again = ended if state in ("REQUEUED", "PREEMPTED") else None
            at += runs + chance.randint(0, 120)
    for reason in ("Licenses", "Resources"):
        job += 1
        submitted = ends_at - chance.randint(300, 3000)
        rows.append(
            Row(
                job=job,
                state="PENDING",
                reason=reason,
                submitted_at=submitted,
                started_at=0,
                ended_at=0,
                gpus=4 * GPUS,
                nodes=(),
            )
        )
        truth.by_reason[reason] += lose("queueing", 4 * GPUS, submitted, ends_at)
    episodes = {
        (node, gpu): _episodes(held[node], begins_at - 900, ends_at + 60, chance)
        for node in nodes
        for gpu in range(GPUS)
    }
    for (node, _), own in episodes.items():
        _sum_up(own, held[node], begins_at, ends_at, truth)
    return History(begins_at=begins_at, ends_at=ends_at, rows=rows, episodes=episodes, truth=truth)


def _episodes(
    held: list[tuple[int, int]], begins_at: int, ends_at: int, chance: random.Random
) -> list[Episode]:
    found: list[Episode] = []

    def until(end: float, kind: str, share: float = 1.0) -> None:
        begin = found[-1].ends_at if found else float(begins_at)
        if end > begin:
            found.append(Episode(begins_at=begin, ends_at=end, kind=kind, mhz=round(HIGHEST_MHZ * share)))

    for begin, end in held:
        until(begin, "idle", 0.2)
        at = float(begin)
        while at < end:
            kind = chance.choice(("busy", "busy", "busy", "power", "heat", "idle"))
            at = min(float(end), at + chance.uniform(40.0, 400.0))
            until(at, kind, {"busy": 1.0, "power": chance.uniform(0.6, 0.9), "heat": 0.5, "idle": 0.2}[kind])
    until(float(ends_at), "idle", 0.2)
    return found


def _sum_up(
    episodes: list[Episode], held: list[tuple[int, int]], begins_at: int, ends_at: int, truth: Truth
) -> None:
    for episode in episodes:
        seconds = max(0.0, min(episode.ends_at, ends_at) - max(episode.begins_at, begins_at))
        truth.joules += seconds * watts_of(episode)
        if episode.kind in ("power", "heat"):
            truth.lost[f"held back by {episode.kind}"] += seconds
            truth.lost[f"lost to {episode.kind}"] += seconds * (1 - episode.mhz / HIGHEST_MHZ)
        is_held = any(begin <= episode.begins_at and episode.ends_at <= end for begin, end in held)
        if episode.kind == "idle" and is_held:
            truth.lost["idle in allocations"] += seconds
