"""The narrator: what happens, as it happens, in lines a person can follow; on stderr, away from data."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wattline.checks import Preflight
from wattline.cli.printing import plain
from wattline.live import Home
from wattline.state import (
    Action,
    ActionFailed,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    GatesJudged,
    Job,
    JobState,
    NodeWoke,
    Noticed,
    Outcome,
    Released,
    RunConcluded,
    State,
    Verdict,
)
from wattline.units import format_bytes, format_celsius, format_seconds, format_share, format_watts

_STYLES = {
    "preflight": "cyan",
    "admitted": "green",
    "waits": "yellow",
    "refused": "bold red",
    "fault": "bold red",
    "capped": "magenta",
    "shrunk": "magenta",
    "paused": "magenta",
    "moved": "bold magenta",
    "failed": "bold red",
    "gate": "cyan",
    "released": "bold green",
}
_PLAIN_PROGRESS_SECONDS = 5.0
_ENDINGS = {
    Ending.SUCCEEDED: "finished",
    Ending.PAUSED: "paused",
    Ending.STOPPED: "stopped",
    Ending.LOST: "lost",
    Ending.FAILED: "failed",
    Ending.TIMED_OUT: "failed",
    Ending.NOT_STARTED: "failed",
}
_OWN_DOING = frozenset({Ending.FAILED, Ending.TIMED_OUT})


class _Voice(Console):
    """Nobody listening any more (`2>&1 | head -1`) is no reason to stop training; rich would exit."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class Narrator:
    """Tells the story of a run; on a terminal, with a live line for whatever trains."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.console = _Voice(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._live: Live | None = None
        self._plain_at = 0.0
        self._stayed = False

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._live = Live(console=self.console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, what: str, text: str) -> None:
        """One line; on a terminal that must wrap it, the rest is indented below its beginning."""
        at = Text(f"{time.monotonic() - self._began:6.1f} s", style="dim")
        label = Text(what, style=_STYLES.get(what, "bold"))
        if not self.console.is_terminal:
            self.console.print(f"{at}  {what:<10}{text}", soft_wrap=True, markup=False)
            return
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, width=10)
        line.add_column(overflow="fold")
        line.add_row(at, label, Text(text))
        self.console.print(line)

    def preflight(self, checked: Preflight) -> None:
        marks = {"pass": "✓", "warn": "!", "fail": "✗", "skip": "–"}
        for check in checked.checks:
            fix = f"; {check.fix}" if check.fix else ""
            self.say("preflight", f"{marks[check.outcome]} {check.title}: {check.message}{fix}")

    def joined(self, pid: int | None) -> None:
        who = f"process {pid}" if pid is not None else "another process"
        self.say("joined", f"the queue that {who} conducts in this state folder")

    def staying(self, others: int) -> None:
        if not self._stayed:
            runs = "a run that joined" if others == 1 else f"{others} runs that joined"
            self.say("staying", f"this run has ended; conducting {runs} to the end (Ctrl-C pauses them)")
            self._stayed = True

    def interrupted(self) -> None:
        self.say("stopping", "jobs save and pause, or stop if they cannot save; once more stops them at once")

    def turn(self, state: State, events: Sequence[Event], decision: Decision) -> None:
        """One turn of the loop: what came in, then what was decided."""
        for event in events:
            self._event(state, event)
        for action in decision.actions:
            self._action(state, action, decision)
        started = {action.job for action in decision.actions}
        waiting = [v for v in decision.verdicts if v.outcome is Outcome.WAIT and v.job not in started]
        for verdict in waiting:
            self.say("waits", f"{_phase(state, verdict.job)}: {verdict.sentence()}")
        for verdict in decision.verdicts:
            if verdict.rule.startswith("queue.") and verdict.outcome is Outcome.WARN:
                change = f"; {verdict.change}" if verdict.change else ""
                self.say("warned", f"{_phase(state, verdict.job)}: {verdict.sentence()}{change}")
        self._show(state)

    def _event(self, state: State, event: Event) -> None:
        if isinstance(event, Noticed):
            what = "fault" if event.say.startswith("fault ") else "noticed"
            subject = _phase(state, event.job) if event.job else event.subject
            self.say(what, f"{subject}: {event.say}" + _emulated(event.source))
        elif isinstance(event, AttemptStarted):
            place = state.jobs[event.job].place
            self.say("started", f"{_phase(state, event.job)}, attempt {event.attempt}, at {place}")
        elif isinstance(event, CheckpointSaved):
            where = f"step {event.step} at {event.site}"
            self.say("saved", f"{_phase(state, event.job)}: {where}, {format_bytes(event.added_bytes)}")
        elif isinstance(event, AttemptEnded):
            self._ended(state, event)
        elif isinstance(event, ActionFailed):
            subject, _, rest = event.action.rpartition("#")
            kind = rest.split(".")[1] if "." in rest else "action"
            told = _phase(state, subject) if subject in state.jobs else subject
            self.say("failed", f"{told}: {kind} could not be done: {event.say}")
        elif isinstance(event, NodeWoke):
            self.say("awake", event.node)
        elif isinstance(event, GatesJudged):
            for gate in event.results:
                mark = {"pass": "✓", "fail": "✗"}.get(str(gate["outcome"]), "?")
                self.say("gate", f"{mark} {gate['gate']} ({gate['message']})")
        elif isinstance(event, Released):
            self.say("released", f"{event.name} {event.channel} number {event.number}")
        elif isinstance(event, RunConcluded):
            self.say("ended", f"{event.run}: {event.status}" + (f": {event.say}" if event.say else ""))

    def _ended(self, state: State, event: AttemptEnded) -> None:
        took = f"; {1000 * event.usage.kwh:.2f} Wh"
        if event.usage.gpu_hours >= 0.001:
            took += f", {event.usage.gpu_hours:.3f} GPU-hours"
        how = "saved and left" if event.ending is Ending.PAUSED else event.say
        self.say(_ENDINGS[event.ending], f"{_phase(state, event.job)}: {how}{took}")
        job = state.jobs[event.job]
        if event.ending in _OWN_DOING:
            request = job.request
            log = self._home.attempt(request.run, request.phase, event.attempt) / "output.log"
            for line in last_lines(log):
                self.say("", f"| {line}")
            again = f"tries again ({job.restarts} of {request.restart_max})"
            self.say(
                "", again if job.state is JobState.WAITING else f"`wattline logs {job.id}` has all of it"
            )
        if event.ending is not Ending.SUCCEEDED and job.saved is None and job.step:
            self.say("", "it has saved no checkpoint: it begins again at step 0")

    def _action(self, state: State, action: Action, decision: Decision) -> None:
        because = f": {action.because}" if action.because else ""
        if action.node:
            self.say("waking" if action.kind is ActionKind.WAKE else "to sleep", f"{action.node}{because}")
            return
        phase = _phase(state, action.job)
        price = (
            f"; price {format_seconds(action.lost_gpu_seconds)} of GPU time"
            if action.lost_gpu_seconds
            else ""
        )
        if action.kind is ActionKind.START:
            self.say("admitted", f"{phase} to {action.place}{_verdicts(decision, action.job)}")
        elif action.kind is ActionKind.REFUSE:
            self.say("refused", f"{phase}{because}")
        elif action.kind is ActionKind.CAP_POWER:
            what = "capped" if action.fraction < 1 else "uncapped"
            self.say(what, f"{phase} at {format_share(action.fraction)} of its power{because}{price}")
        elif action.kind is ActionKind.SHRINK_BATCH:
            what = "shrunk" if action.fraction < 1 else "unshrunk"
            self.say(what, f"{phase} to {format_share(action.fraction)} in flight{because}{price}")
        elif action.kind is ActionKind.PAUSE:
            self.say("pausing", f"{phase}{because}{price}")
        elif action.kind in (ActionKind.RESUME, ActionKind.MIGRATE):
            what = "moved" if action.kind is ActionKind.MIGRATE else "resumed"
            self.say(what, f"{phase} to {action.place}{because}{price}")
        else:
            self.say("stopping", f"{phase}{because}")

    def _show(self, state: State) -> None:
        jobs = [state.jobs[job_id] for job_id in state.holding]
        if self._live is not None:
            self._live.update(_picture(state, jobs))
        elif time.monotonic() >= self._plain_at and any(job.step for job in jobs):
            self._plain_at = time.monotonic() + _PLAIN_PROGRESS_SECONDS
            for job in jobs:
                if job.step:
                    self.say("trains", _progress(state, job))


def last_lines(log: Path, most: int = 4) -> list[str]:
    """The end of what a script printed, with nothing in it that a terminal would obey."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [plain(line)[:200] for line in text.splitlines() if line.strip()][-most:]


def _phase(state: State, job_id: str) -> str:
    """A job by its phase; with its run where several are under way."""
    job = state.jobs.get(job_id)
    if job is None:
        return job_id
    alone = sum(run.ended_at is None for run in state.runs.values()) <= 1
    return job.request.phase if alone else job_id


def _emulated(source: str) -> str:
    return " (emulated)" if source == "emulated" else ""


def _verdicts(decision: Decision, job_id: str) -> str:
    """The numbers behind an admission, shortest form."""
    about = [verdict for verdict in decision.verdicts if verdict.job == job_id]
    parts = [part for verdict in about if (part := _brief(verdict))]
    return f" ({'; '.join(parts)})" if parts else ""


def _brief(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.WARN:
        return f"{verdict.rule} warns: {verdict.say}"
    if "left_watts" in verdict.numbers:
        return f"{verdict.subject} {format_watts(verdict.numbers['left_watts'])} left"
    if "predicted_celsius" in verdict.numbers:
        predicted, limit = verdict.numbers["predicted_celsius"], verdict.numbers["limit_celsius"]
        return f"{verdict.subject} {format_celsius(predicted)} predicted of {format_celsius(limit)}"
    return ""


def _progress(state: State, job: Job) -> str:
    done = f"step {job.step}" + (f"/{job.total}" if job.total else "")
    if not job.step and job.started_at is not None:
        done = f"for {format_seconds(max(0.0, state.at - job.started_at))}"
    loss = f", loss {job.loss:.3f}" if job.loss is not None else ""
    return f"{_phase(state, job.id)} {done}{loss}{_meters(state, job)}"


def _meters(state: State, job: Job) -> str:
    """The hottest and hungriest GPU of a job, from its meters."""
    if job.place is None or not job.request.gpus:
        return ""
    nodes = [state.plant.node_number[name] for name, _ in job.place.nodes]
    watts = [
        state.conditions.node_gpu_watts[node][0] for node in nodes if node in state.conditions.node_gpu_watts
    ]
    heats = [
        state.conditions.node_celsius[node][0] for node in nodes if node in state.conditions.node_celsius
    ]
    if not watts or not heats:
        return ""
    note = " (emulated)" if state.plant.sites[job.place.site].telemetry == "emulated" else ""
    return f", GPU {format_watts(max(watts))} {format_celsius(max(heats))}{note}"


def _picture(state: State, jobs: list[Job]) -> RenderableType:
    rows: list[RenderableType] = []
    for job in jobs:
        table = Table.grid(padding=(0, 2, 0, 0))
        known = job.total is not None
        bar = ProgressBar(
            total=job.total or 1, completed=min(job.step, job.total or 0), width=30, pulse=not known
        )
        mode = "" if job.power_fraction == 1 else f" cap {format_share(job.power_fraction)}"
        if job.in_flight_fraction < 1:
            mode += f" in flight {format_share(job.in_flight_fraction)}"
        if job.state is not JobState.RUNNING:
            mode += f" {job.state}"
        table.add_row(" " * 8, bar, _progress(state, job) + mode)
        rows.append(table)
    return Group(*rows)
