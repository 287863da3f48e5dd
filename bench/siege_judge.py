"""After the siege: was any job lost, run twice or left unpaid for?

Three accounts are held against each other: what was acknowledged to whoever submitted, what the journal
tells, and the diary that the commands themselves wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.siege_house import House
from bench.siege_load import Load
from wattline.live import Home
from wattline.plane.session import Session
from wattline.state import AttemptEnded, CheckpointSaved, Ending, Event, RunConcluded, State
from wattline.state.account import Promised
from wattline.store.steps import read_steps

Attempt = tuple[str, int]  # job, number


@dataclass(slots=True)
class Findings:
    """Violations by name, each with whom it concerns; and counts of what is no violation."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def expect(self, rule: str, broken_by: list[str]) -> None:
        self.wrong[rule] = sorted(broken_by)


class Diary:
    """What the commands wrote."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.began: Counter[Attempt] = Counter(_who(line) for line in lines if line["what"] == "began")
        self.ended: Counter[Attempt] = Counter(_who(line) for line in lines if line["what"] == "ended")
        self.began_at = {_who(line): float(line["at"]) for line in lines if line["what"] == "began"}
        self.beside = [(_who(line), int(line["other"])) for line in lines if line["what"] == "beside"]


def judge(house: House, load: Load) -> Findings:
    session = Session(Home(house.home), house.database)
    try:
        events = [event for _, record in read_steps(session.store.journal) for event in record.events]
        assert session.state is not None
        findings = Findings()
        findings.counts["journal records"] = session.store.journal.verify()  # it raises where one was changed
        _judge_runs(findings, load, session.state, events)
        _judge_attempts(findings, Diary(house.root / "diary.jsonl"), session.state, events)
        _judge_quotas(findings, house, session.state)
        findings.counts["servers that found no database as they began"] = house.found_no_database
        findings.expect("a server or agent ended by itself", house.ended_alone)
        return findings
    finally:
        session.close()


def _judge_runs(findings: Findings, load: Load, state: State, events: list[Event]) -> None:
    acknowledged = set(load.acknowledged.values())
    findings.counts["runs acknowledged"] = len(acknowledged)
    findings.expect("a submission was refused or never answered", load.refused)
    findings.expect("a run was lost", sorted(acknowledged - set(state.runs)))
    findings.expect("a run was made twice", sorted(set(state.runs) - acknowledged))
    open_runs = [run.run for run in state.runs.values() if run.ended_at is None]
    findings.expect("a run did not end", open_runs)
    findings.expect(
        "a run did not succeed",
        [
            f"{run.run}: {run.status} {run.say}"
            for run in state.runs.values()
            if run.ended_at is not None and run.status != "succeeded"
        ],
    )
    concluded = Counter(event.run for event in events if isinstance(event, RunConcluded))
    findings.expect("a run was concluded twice", [run for run, times in concluded.items() if times > 1])


def _judge_attempts(findings: Findings, diary: Diary, state: State, events: list[Event]) -> None:
    ends = [event for event in events if isinstance(event, AttemptEnded)]
    findings.counts["attempts begun"] = len(diary.began)
    for ending in Ending:
        findings.counts[f"attempts {ending}"] = sum(end.ending is ending for end in ends)
    won = Counter(end.job for end in ends if end.ending is Ending.SUCCEEDED)
    winners = {(end.job, end.attempt) for end in ends if end.ending is Ending.SUCCEEDED}
    findings.expect("a job succeeded twice", [job for job, times in won.items() if times > 1])
    findings.expect("an attempt ran twice", [_name(one) for one, times in diary.began.items() if times > 1])
    findings.expect(
        "an attempt is said to have succeeded that did not come to its end",
        [_name(one) for one in winners if one not in diary.ended],
    )
    known = {job for job, _ in diary.began}
    findings.expect("an attempt ran of a job that nobody knows", sorted(known - set(state.jobs)))
    judge_overlaps(findings, diary, winners, events)
    finished = Counter(job for job, _ in diary.ended)
    findings.counts["jobs whose command came to its end more than once"] = sum(
        times > 1 for times in finished.values()
    )


def judge_overlaps(findings: Findings, diary: Diary, winners: set[Attempt], events: list[Event]) -> None:
    """Two attempts of a job that lived at once: the older must have been of no consequence by then."""
    published = []
    for (job, number), other in diary.beside:
        began_at = diary.began_at[job, number]
        saved = any(
            isinstance(event, CheckpointSaved)
            and (event.job, event.attempt) == (job, other)
            and event.at > began_at
            for event in events
        )
        if saved or other >= number or (job, other) in winners:
            published.append(f"{job}: attempts {other} and {number}")
    findings.expect("two attempts of a job lived at once, both able to publish", published)
    findings.counts["fenced attempts that lived beside the next one"] = len(diary.beside) - len(published)


def _judge_quotas(findings: Findings, house: House, state: State) -> None:
    accounts = [name for name, account in state.accounts.items() if account.promised != Promised()]
    findings.expect("a quota is still promised", accounts)
    findings.expect("a job still holds a claim", list(state.holding))
    findings.expect("an action is still in flight", list(state.flights))
    spots = enumerate(state.plant.spots)
    taken = [spot.node.name for number, spot in spots if state.ledger.gpus_free[number] != spot.node.gpus]
    findings.expect("a GPU is still taken", taken)
    licenses = house.cluster.run("scontrol", "-o", "show", "licenses")
    findings.expect("a license is still taken", [] if "Used=0" in licenses else [licenses])
    queue = house.cluster.run("squeue", "-h", "-t", "R,PD,CG", "-o", "%j")
    findings.expect("a job is left in Slurm", queue.splitlines())
    findings.expect("a process is left", house.strangers())


def _who(line: dict[str, object]) -> Attempt:
    return f"{line['run']}/{line['phase']}", int(str(line["attempt"]))


def _name(attempt: Attempt) -> str:
    return f"{attempt[0]}/{attempt[1]}"
