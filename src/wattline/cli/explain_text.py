"""An explanation as people read it: the reason first, then what would change it, then the story."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wattline.cli.printing import columns, plain
from wattline.plane.finding import View
from wattline.plane.moments import clock
from wattline.plane.standing import where
from wattline.plane.story import FAULT, MOVED, SAVED, WAITS, Entry, why_moved
from wattline.plane.summary import lost_seconds
from wattline.policy import Eta, Explanation, Option
from wattline.state import ENDED, Job, JobState, Outcome, Run, Verdict, say_tightest
from wattline.units import format_named, format_seconds, unit_of

_STYLES = {
    "admitted": "green",
    "finished": "green",
    "released": "green",
    "capped": "magenta",
    "shrunk": "magenta",
    "pausing": "magenta",
    "paused": "magenta",
    MOVED: "bold magenta",
    WAITS: "yellow",
    FAULT: "bold red",
    "failed": "bold red",
    "refused": "bold red",
    "lost": "bold red",
}
_OUTCOME_STYLES = {
    Outcome.ALLOW: "green",
    Outcome.WARN: "yellow",
    Outcome.PRESS: "magenta",
    Outcome.WAIT: "yellow",
    Outcome.REFUSE: "bold red",
}
_UNDECIDED = (JobState.WAITING, JobState.PAUSED)
_SELF_EVIDENT = (JobState.SUCCEEDED, JobState.RUNNING, JobState.STARTING)  # the story below says all


def show_explained(
    console: Console,
    view: View,
    run: Run,
    jobs: tuple[Job, ...],
    explained: list[Explanation],
    story: list[Entry],
    *,
    is_past: bool = False,
) -> None:
    """The present, or how it stood at an earlier time: then nobody has to go on with anything."""
    by_clock = is_past or view.writer is not None
    for job, each in zip(jobs, explained, strict=True):
        _show_job(console, view, job, each, story, by_clock=by_clock)
    console.print()
    several = len(jobs) > 1
    phases = {job.id: job.request.phase for job in jobs}
    table = columns("time", *(["phase"] if several else []), "what", "")
    for entry in _readable(story):
        phase = [phases.get(entry.job, "")] if several else []
        table.add_row(
            Text(clock(entry.at), style="dim"),
            *phase,
            Text(entry.what, style=_STYLES.get(entry.what, "")),
            plain(_line(entry)),
        )
    console.print(table)
    if not by_clock and run.ended_at is None:
        console.print(
            f"as of {clock(view.at)}: nobody conducts now; `wattline run --resume` goes on", style="dim"
        )


def _show_job(
    console: Console, view: View, job: Job, explained: Explanation, story: list[Entry], *, by_clock: bool
) -> None:
    console.print(Text.assemble((job.id, "bold"), f": {explained.state}", f"{_since(view, job)}"))
    if explained.state in _UNDECIDED:
        eta = explained.eta
        when = clock if by_clock else partial(_from_now, view)
        expected = _expect(view, eta, by_clock=by_clock) if eta is not None else ""
        console.print(plain(explained.tell(expected[:1].upper() + expected[1:], when)))
        if eta is not None:
            console.print(f"expected {_assumed(eta)}", style="dim")
        if explained.options:
            console.print()
            console.print(options_table(explained.options, view.at))
        _show_verdicts(console, explained.verdicts)
        return
    if explained.say and explained.state not in _SELF_EVIDENT:
        console.print(plain(explained.say))
    _show_eta(console, view, explained.eta, by_clock=by_clock)
    if job.saved is not None and job.saved.cadence and job.state not in ENDED:
        console.print(plain(f"saves {job.saved.cadence}"))
    for verdict in explained.verdicts:  # what its ladder has and its site has not
        if verdict.rule.startswith("ladder."):
            console.print(plain(f"{verdict.say} ({verdict.change} would change that)"))
    for move, origin, why in why_moved([entry for entry in story if entry.job == job.id], story):
        route = f"{origin} → {move.site} at {clock(move.at)}"
        console.print(Text.assemble(("why it moved ", "bold magenta"), f"{route}: {plain(why)}"))
    priced = sum(entry.lost_gpu_seconds for entry in story if entry.job == job.id)
    lost = _lost_gpu_seconds(job)
    if priced or lost:
        console.print(
            f"lost {format_seconds(lost)} of GPU time between attempts; what was done to it was priced at "
            f"{format_seconds(priced)}",
        )


def _lost_gpu_seconds(job: Job) -> float:
    """Between attempts, the one that runs now included."""
    seconds = lost_seconds(job)
    if job.started_at is not None and job.past and job.past[-1].attempt < job.attempt:
        seconds += max(0.0, job.started_at - job.past[-1].ended_at)
    return seconds * max(1, job.request.gpus)


def _since(view: View, job: Job) -> str:
    if job.ended_at is not None:
        return f" at {clock(job.ended_at)}"
    place = f", {where(job.place)}" if job.place is not None else ""
    return f" for {format_seconds(max(0.0, view.at - job.since))}{place}"


def _show_eta(console: Console, view: View, eta: Eta | None, *, by_clock: bool) -> None:
    if eta is not None:
        console.print(f"{_expect(view, eta, by_clock=by_clock)}, {_assumed(eta)}")


def _assumed(eta: Eta) -> str:
    aged = f"; forecast {format_seconds(round(eta.age_seconds))} ago" if eta.age_seconds >= 1 else ""
    return f"if work comes as it came lately{aged}"


def _from_now(view: View, at: float) -> str:
    """Where nobody conducts, times to come count from when somebody goes on."""
    away = at - view.at
    return f"{format_seconds(round(away))} after somebody goes on with it" if away > 0 else clock(at)


def _expect(view: View, eta: Eta, *, by_clock: bool) -> str:
    """By the clock while somebody conducts; else counted from when somebody goes on with it."""

    def when(at: float) -> str:
        return clock(at) if by_clock else format_seconds(round(max(0.0, at - view.at)))

    if eta.p50 is None:
        return f"not expected to start within {format_seconds(eta.horizon_seconds)}"
    p90 = f"{when(eta.p90)} (p90)" if eta.p90 is not None else "p90 not known"
    by = f", pledged by {when(eta.by)}" if eta.by is not None else ""
    later = "" if by_clock else " after somebody goes on with it"
    return f"starts {when(eta.p50)} (p50), {p90}{by}{later}"


def options_table(options: Sequence[Option], at: float) -> Table:
    """What would start a job; what is to be written for it stands on lines of its own, to be copied."""
    table = columns("what would start it", "starts", "costs", "in wattline.yaml", last_ratio=False)
    table.columns[0].no_wrap, table.columns[-1].no_wrap = False, True
    for option in options:
        delta = option.cost_delta_usd
        table.add_row(
            plain(option.change),
            "now" if option.starts_at <= at else clock(option.starts_at),
            "not known" if delta is None else f"{delta:+.2f} USD",
            plain("\n".join(_written(name, value) for name, value in option.fields.items())),
        )
    return table


def _written(name: str, value: str | tuple[str, ...]) -> str:
    return f"{name}: {value if isinstance(value, str) else '[' + ', '.join(value) + ']'}"


def _show_verdicts(console: Console, verdicts: tuple[Verdict, ...]) -> None:
    if not verdicts:
        return
    table = columns("rule", "about", "outcome", "numbers")
    for verdict in verdicts:
        table.add_row(
            verdict.rule,
            plain(verdict.subject),
            Text(str(verdict.outcome), style=_OUTCOME_STYLES[verdict.outcome]),
            plain(_numbers(verdict)),
        )
    console.print()
    console.print(table)


def _numbers(verdict: Verdict) -> str:
    facts = [
        f"{name.removesuffix(unit_of(name)).strip('_').replace('_', ' ')} {format_named(name, value)}"
        for name, value in verdict.numbers.items()
    ]
    change = f"would change it: {verdict.change}" if verdict.change else ""
    return "; ".join(part for part in (verdict.say, ", ".join(facts), change) if part)


def _readable(story: list[Entry]) -> list[Entry]:
    """Without checkpoints that another soon followed, and without the same wait told again."""
    kept = [
        entry
        for entry, after in pairwise([*story, None])
        if entry is not None
        and not (entry.what == SAVED and after is not None and (after.what, after.job) == (SAVED, entry.job))
    ]
    waiting: dict[str, object] = {}
    found = []
    for entry in kept:
        rules = [(verdict.rule, verdict.subject) for verdict in entry.verdicts]
        if entry.what == WAITS and waiting.get(entry.job) == rules:
            continue
        waiting[entry.job] = rules if entry.what == WAITS else None
        found.append(entry)
    return found


def _line(entry: Entry) -> str:
    text = entry.say
    if entry.because and entry.because not in text:
        text += f": {entry.because}" if text else entry.because
    if entry.what == "admitted":
        tightest = say_tightest(entry.verdicts)
        text += f" ({tightest})" if tightest else ""
    if entry.lost_gpu_seconds:
        text += f"; costs {format_seconds(entry.lost_gpu_seconds)} of GPU time"
    return text
