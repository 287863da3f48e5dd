"""Attempts: from what an engine says of its processes to what the state needs to know of jobs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wattline import engines
from wattline.engines import Launch, Result
from wattline.engines.files import REPORTS
from wattline.engines.reports import ReportTail
from wattline.errors import WattlineError
from wattline.live.clouds import CloudFiles
from wattline.live.endings import ending_of, say_of
from wattline.live.hearing import read_digest, read_number, read_whole, read_words
from wattline.live.home import Home
from wattline.live.meters import Meters, read_meter
from wattline.live.running import Goods
from wattline.state import (
    Action,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    Job,
    JobState,
    Noticed,
    Place,
    Progressed,
    State,
    Usage,
    usage_of,
)
from wattline.state.market import brought_back_bytes, egress_usd, leaving_usd
from wattline.units import JOULES_PER_KWH, SECONDS_PER_HOUR

# The state hears of progress this often; the attempt's own file has every step.
_PROGRESS_SECONDS = 1.0
# A script that saves without end would fill the journal.
_LEAST_SAVE_SECONDS = 0.2
_LASTING = frozenset({"step", "checkpoint"})
# A script that has not reported for this long may be stuck.
_TALKS_SECONDS = 120.0


@dataclass(slots=True)
class _Running:
    job: str
    attempt: int
    phase: str
    place: Place
    name: str
    moved_usd: float = 0.0  # what it cost to bring its checkpoint here
    told_at: float = -math.inf
    saved_at: float = -math.inf
    heard_at: float = -math.inf
    adopted: bool = False  # it tells again what an earlier process may have heard


class Attempts:
    """What runs here now, and how each engine event reads as a fact about a job."""

    def __init__(self, *, home: Home, state: State, meters: Meters, goods: Goods, clouds: CloudFiles) -> None:
        self._home = home
        self._clouds = clouds
        self._state = state
        self._meters = meters
        self._goods = goods
        self._running: dict[str, _Running] = {}

    def adopt(self, job: Job, directory: Path) -> None:
        """One of an earlier process goes on under this one; what its GPUs drew meanwhile is not known."""
        assert job.place is not None
        name = f"{job.id}/{job.attempt}"
        if name in self._running:  # of this very process, which let go of it for a moment
            return
        running = _Running(job.id, job.attempt, job.request.phase, job.place, name, adopted=True)
        self._attach(running, directory, job.power_fraction)

    @property
    def names(self) -> list[str]:
        """Of all that runs."""
        return list(self._running)

    def begin(self, action: Action, launch: Launch) -> None:
        """An attempt was started: what its GPUs draw, emulated or metered, is counted from now on."""
        assert action.place is not None
        job = self._state.jobs[action.job]
        size_bytes = job.saved.size_bytes if job.saved is not None else 0
        moved_usd = egress_usd(self._state.plant, action.from_site, action.place.site, size_bytes)
        self._attach(
            _Running(action.job, action.attempt, job.request.phase, action.place, launch.attempt, moved_usd),
            launch.directory,
            action.fraction,
        )

    def _attach(self, running: _Running, directory: Path, cap: float) -> None:
        self._running[running.name] = running
        nodes = dict(running.place.nodes)
        plant = self._state.plant
        site = plant.sites[running.place.site]
        if site.telemetry == "emulated":
            cpus = self._state.jobs[running.job].request.cpus
            self._meters.attach(running.name, directory, nodes, cpus, cap)
        elif site.reads_gpus:
            spots = {name: plant.spots[plant.node_number[name]] for name in nodes}
            shares = {name: gpus / max(1, spots[name].node.gpus) for name, gpus in nodes.items()}
            self._meters.attach_real(running.name, directory, shares)

    def tell(self, event: engines.EngineEvent, now: float) -> list[Event]:
        """Translate anything but an end."""
        running = self._running.get(event.attempt)
        if running is None:
            return []
        if isinstance(event, engines.Started):
            if running.adopted and self._state.jobs[running.job].state is not JobState.STARTING:
                return []  # it began under an earlier process, which told so
            return [AttemptStarted(at=now, job=running.job, attempt=running.attempt)]
        if isinstance(event, engines.Usage):
            self._meters.observe_cpu(event.attempt, event.cpu_seconds, now)
            return []
        if isinstance(event, engines.Noted):
            return [Noticed(at=now, subject=event.attempt, say=event.message, job=running.job)]
        if isinstance(event, engines.Reported):
            return self._reported(running, event.report, now)
        return []

    def last_words(self, job: Job, directory: Path, now: float) -> list[Event]:
        """What an attempt last said of its steps and checkpoints that ended while nobody looked on."""
        tail, path, more = ReportTail(directory / REPORTS), directory / REPORTS, True
        last: dict[object, dict[str, object]] = {}
        while more:
            reports, more = tail.read()
            last |= {report["kind"]: report for report in reports if report["kind"] in _LASTING}
        if not last or job.place is None:
            return []
        name = f"{job.id}/{job.attempt}"
        running = _Running(job.id, job.attempt, job.request.phase, job.place, name, adopted=True)
        said_at = min(now, path.stat().st_mtime)
        return [event for report in last.values() for event in self._reported(running, report, said_at)]

    def talks(self, attempt: str, now: float) -> bool:
        """Whether the script has reported anything lately."""
        running = self._running.get(attempt)
        return running is not None and now - running.heard_at <= _TALKS_SECONDS

    def end(
        self, attempt: str, result: Result, now: float, *, recovered: bool = False
    ) -> Callable[[], Event]:
        """What is left to do when an attempt has ended; it may take long, so the caller says where."""
        job_id, _, number = attempt.rpartition("/")
        job = self._state.jobs[job_id]
        joules = self._meters.detach(attempt)
        running = self._running.pop(attempt, None)
        folder = self._home.attempt(job.request.run, job.request.phase, int(number))
        pipeline = self._goods.source(self._state.runs[job.request.run].documents).pipeline
        signals = pipeline.phases[job.request.phase].signals
        ending = ending_of(
            result,
            pausing=job.state is JobState.PAUSING,
            stopping=job.state is JobState.STOPPING,
            by_signals=signals is not None,
            recovered=recovered,
        )
        usage = self._usage(job.place, job.request.gpus, result, joules or read_meter(folder))
        usd = running.moved_usd if running is not None else 0.0
        plant, place = self._state.plant, job.place
        if place is not None and place.site in plant.clouds:
            mean_usd = self._clouds.mean_usd(place.site, now - result.wall_seconds, now)
            usd += usage.gpu_hours * mean_usd - usage.usd
            if ending is Ending.SUCCEEDED:
                usd += leaving_usd(plant, place.site, brought_back_bytes(job.request, job.saved))
        usage = usage.plus(Usage(usd=usd))

        def gather() -> Event:
            say, outputs = say_of(result), ""
            self._goods.show(attempt, folder)
            if ending is Ending.SUCCEEDED:
                try:
                    outputs = self._goods.pack(folder / "work" / "out")
                except (WattlineError, OSError) as error:
                    say = f"its results could not be kept: {error}"
            failed = ending is Ending.SUCCEEDED and not outputs
            return AttemptEnded(
                at=now,
                job=job_id,
                attempt=int(number),
                ending=Ending.FAILED if failed else ending,
                code=result.code,
                signal=result.signal,
                say=say,
                usage=usage,
                outputs=outputs,
            )

        return gather

    def _usage(self, place: Place | None, gpus: int, result: Result, joules: float) -> Usage:
        if place is None:
            return Usage()
        seconds = result.wall_seconds
        if result.reason == "lost":  # when it ended is not known: no later than anybody last heard of it
            seconds = min(seconds, max(0.0, self._state.at - result.started_at))
        gpu_hours = gpus * seconds / SECONDS_PER_HOUR
        return usage_of(gpu_hours, joules / JOULES_PER_KWH, place, self._state.plant)

    def _is_known(self, running: _Running, kind: object, step: int) -> bool:
        """Whether the state has what a report says: it was read by whoever was here before."""
        job = self._state.jobs[running.job]
        if kind == "checkpoint":
            return job.saved is not None and job.saved.step >= step
        return job.step >= step

    def _reported(self, running: _Running, report: dict[str, object], now: float) -> list[Event]:
        running.heard_at = now
        kind = report.get("kind")
        step = read_whole(report.get("step"))
        if running.adopted and step is not None and self._is_known(running, kind, step):
            return []
        if kind == "step" and step is not None:
            self._meters.emulated.observe_step(running.phase, step)
            total = read_whole(report.get("total"))
            if now - running.told_at < _PROGRESS_SECONDS and step != total:
                return []
            running.told_at = now
            return [
                Progressed(
                    at=now,
                    job=running.job,
                    attempt=running.attempt,
                    step=step,
                    total=total,
                    loss=read_number(report.get("loss")),
                )
            ]
        if kind == "checkpoint" and step is not None:
            if now - running.saved_at < _LEAST_SAVE_SECONDS and report.get("reason") not in (
                "pause",
                "final",
            ):
                return []
            running.saved_at = now
            return [
                CheckpointSaved(
                    at=now,
                    job=running.job,
                    attempt=running.attempt,
                    step=step,
                    site=running.place.site,
                    digest=read_digest(report.get("digest")),
                    size_bytes=read_whole(report.get("bytes")) or 0,
                    added_bytes=read_whole(report.get("added_bytes")) or 0,
                    seconds=max(0.0, read_number(report.get("seconds")) or 0.0),
                    cadence=read_words(report.get("cadence", ""), 300),
                )
            ]
        if kind == "resumed" and step is not None:
            say = f"resumed at step {step}"
            rejected = report.get("rejected")
            if rejected:
                say += f"; damaged checkpoints passed over: {read_words(rejected, 300)}"
            return [Noticed(at=now, subject=running.name, say=say, job=running.job)]
        return []
