"""The replay command: what becomes of recorded jobs on a facility, under a policy?"""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from wattline.cli.printing import print_json
from wattline.cli.twin_doubts import doubts_about
from wattline.cli.twin_progress import TwinProgress
from wattline.cli.twin_text import print_report
from wattline.errors import UnavailableError
from wattline.twin.page import write_page
from wattline.twin.plots import write_plots
from wattline.twin.replaying import Question, read_material, read_rules, setting_of
from wattline.twin.run import Outcome, run
from wattline.twin.scenario import Played


def replay_trace(question: Question, *, plots: Path | None, html: Path | None, as_json: bool) -> int:
    with TwinProgress() as progress:
        prepare_pictures(plots, html)
        rules, material = read_rules(question.policy), read_material(question)
        for doubt in doubts_about(material):
            progress.say(doubt)
        outcome = run(
            setting_of(material, rules),
            recorded=plots is not None or html is not None,
            tell=partial(
                progress.tell, "", jobs=len(material.trace.jobs), until_seconds=question.until_seconds
            ),
        )
        progress.end("")
        if outcome.timeline is not None:
            progress.say("drawing pictures")
        written = write_pictures(outcome, plots, html)
    if as_json:
        print_json(outcome.report)
    else:
        print_report(outcome.report)
    for path in written:
        progress.say(f"wrote {path}")
    return 0


def prepare_pictures(plots: Path | None, html: Path | None) -> None:
    """Whoever has waited for a run should not hear only then that its pictures cannot be drawn or kept."""
    if plots is None and html is None:
        return
    if find_spec("matplotlib") is None:
        raise UnavailableError(
            "pictures need matplotlib, which is not installed", hint="pip install 'wattline[plots]'"
        )
    if html is not None and html.is_dir():
        raise UnavailableError(f"{html}: this is a folder", hint="--html names a file, such as report.html")
    for folder in (plots, html and html.parent):
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UnavailableError(f"{folder}: cannot be made: {error.strerror or error}") from error
            if not os.access(folder, os.W_OK):
                raise UnavailableError(f"{folder}: nothing can be written there")


def write_pictures(
    outcome: Outcome, plots: Path | None, html: Path | None, played: Played | None = None
) -> list[Path]:
    """Pictures, and the page that holds them all, where they are asked for."""
    if outcome.timeline is None:
        return []
    written: list[Path] = []
    if plots is not None:
        written += write_plots(outcome.report, outcome.timeline, plots)
    if html is not None:
        write_page(outcome.report, outcome.timeline, html, played)
        written.append(html)
    return written
