"""The check command: would this pipeline run here, when would it start, and what does the change cost?"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from wattline.checks.base import FoundBase, read_base, read_standing
from wattline.checks.making import Question, make_report, report_removed
from wattline.checks.reading import encode_report
from wattline.checks.rendering import (
    render_code_quality,
    render_github,
    render_junit,
    render_markdown,
    render_sarif,
    write_renderings,
    write_step_files,
)
from wattline.checks.report import Report
from wattline.cli.check_text import show_report
from wattline.cli.options import CheckOutput
from wattline.cli.printing import stdout_console
from wattline.cli.remote import SNAPSHOT, find_server, server_at
from wattline.errors import UsageError
from wattline.facility import Facility
from wattline.live import Home
from wattline.plane.finding import open_if_any
from wattline.plane.policy_in_force import policy_in_force, promoted_policy
from wattline.plane.snapshots import Standing, age_seconds, decode_snapshot, read_snapshot
from wattline.policy import without_meters
from wattline.release import list_source
from wattline.spec import Policy, read_facility, read_pipeline, read_policy
from wattline.state import State
from wattline.units import format_seconds

_EXIT_CODES = {"pass": 0, "warn": 0, "block": 1}
_RENDERINGS: dict[CheckOutput, Callable[[Report], str]] = {
    CheckOutput.JSON: lambda report: encode_report(report).decode(),
    CheckOutput.MARKDOWN: render_markdown,
    CheckOutput.SARIF: render_sarif,
    CheckOutput.JUNIT: render_junit,
    CheckOutput.GITHUB: render_github,
    CheckOutput.GITLAB: render_code_quality,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAsked:
    """What was said on the command line."""

    pipeline: Path
    facility: str | None
    policy: str | None
    base: str | None
    against: str | None
    report: Path | None
    approved: bool
    has_secrets: bool
    rehearse: bool
    output: CheckOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What a pipeline is held against."""

    state: State
    policy: Policy
    at: float
    name: str
    is_emulated: bool


def check_pipeline(asked: CheckAsked) -> int:
    """Nothing is submitted, and no lease is needed."""
    if asked.against is not None and asked.facility is not None:
        raise UsageError(
            "--against and --facility both name what to hold it against", hint="give one of them"
        )
    folder = asked.pipeline.resolve().parent
    base: AbstractContextManager[FoundBase | None] = nullcontext(None)
    if asked.base is not None:
        base = read_base(asked.base, folder, asked.pipeline.name)
    with base as found, _ground(asked) as ground:
        report = _report(asked, folder, found, ground)
    if asked.report is not None:
        write_renderings(report, asked.report)
    if asked.output is CheckOutput.GITHUB:
        write_step_files(report, os.environ)
    if asked.output is CheckOutput.TEXT:
        show_report(stdout_console(), report)
    else:
        sys.stdout.write(_RENDERINGS[asked.output](report).rstrip("\n") + "\n")
    return _EXIT_CODES[report.verdict]


def _report(asked: CheckAsked, folder: Path, base: FoundBase | None, ground: _Ground) -> Report:
    is_removed = base is not None and base.document is not None and not asked.pipeline.is_file()
    document = base.document if base is not None and base.document and is_removed else asked.pipeline
    question = Question(
        pipeline=read_pipeline(document),
        folder=folder,
        document=asked.pipeline.name,
        standing=read_standing(folder, asked.pipeline.name),
        state=ground.state,
        policy=ground.policy,
        at=ground.at,
        against=ground.name,
        emulated=ground.is_emulated,
        source=list_source(folder),
        environment=os.environ,
        approved=asked.approved,
        has_secrets=asked.has_secrets,
        rehearse=asked.rehearse,
    )
    if base is not None and is_removed:
        return report_removed(question, base)
    return make_report(question, base)


@contextmanager
def _ground(asked: CheckAsked) -> Iterator[_Ground]:
    """What --against names, a server, an empty facility, or the queue of the state folder, in this order."""
    policy = read_policy(asked.policy) if asked.policy is not None else None
    standing = _standing(asked)
    if standing is not None:
        name = f"{standing.state.plant.facility.name}, {format_seconds(age_seconds(standing))} ago"
        yield _Ground(
            state=standing.state,
            policy=policy or standing.policy,
            at=standing.at,
            name=name,
            is_emulated=_is_emulated(standing.state.plant.facility),
        )
        return
    with open_if_any() as view:
        if asked.facility is None and view is not None:
            chosen = policy or policy_in_force(view)
            emulated = _is_emulated(view.state.plant.facility)
            yield _Ground(
                state=view.state, policy=chosen, at=view.at, name="the queue here", is_emulated=emulated
            )
            return
    facility = read_facility(asked.facility or "lab")
    yield _Ground(
        state=State(without_meters(facility)),
        policy=policy or promoted_policy(Home.find()) or read_policy("default"),
        at=time.time(),
        name=f"{facility.name}, empty",
        is_emulated=_is_emulated(facility),
    )


def _standing(asked: CheckAsked) -> Standing | None:
    """How all stands elsewhere, where this was asked for."""
    against = asked.against
    if against is not None and not against.startswith(("http://", "https://")):
        return read_snapshot(Path(against))
    server = find_server() if against is None else server_at(against)
    if server is None or asked.facility is not None:
        return None
    return decode_snapshot(server.get(SNAPSHOT).body, source=server.url)


def _is_emulated(facility: Facility) -> bool:
    return any(site.telemetry == "emulated" for site in facility.sites)
