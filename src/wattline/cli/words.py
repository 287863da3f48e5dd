"""How does a server tell people what the command line would? With the command line's own printers."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich.console import Console

from wattline.api.words import Words
from wattline.cli.command_conditions import print_conditions
from wattline.cli.command_exception import show_answered, show_asked, show_exceptions
from wattline.cli.command_explain_past import show_past
from wattline.cli.command_status import show_all, show_one
from wattline.cli.explain_text import show_explained
from wattline.cli.report_text import show_text
from wattline.cli.summary_text import show_run
from wattline.live import Home
from wattline.plane.explaining import Answer
from wattline.plane.explaining_past import PastAnswer
from wattline.plane.finding import View
from wattline.plane.reporting import Report
from wattline.policy import SiteConditions
from wattline.spec import Policy
from wattline.state import Answer as Given
from wattline.state import PolicyException, Run

_COLUMNS = 110


def words_of(home: Home) -> Words:
    def status(view: View | None, may_see: Callable[[str], bool]) -> str:
        return _printed(lambda console: show_all(console, view, home, may_see))

    def run(view: View, one: Run) -> str:
        return _printed(lambda console: show_one(console, view, one))

    def result(view: View, one: Run) -> str:
        return _printed(lambda console: show_run(console, view.session, one))

    def explain(view: View, found: Answer) -> str:
        return _printed(
            lambda console: show_explained(console, view, found.run, found.jobs, found.explained, found.story)
        )

    def explain_past(found: PastAnswer) -> str:
        return _printed(lambda console: show_past(console, found))

    def report(made: Report, is_one: bool) -> str:
        return _printed(lambda console: show_text(console, made, is_one=is_one))

    def site(found: SiteConditions) -> str:
        return _printed(lambda console: print_conditions(console, found))

    def exceptions(found: Sequence[PolicyException], now: float) -> str:
        return _printed(lambda console: show_exceptions(console, found, now))

    def exception_asked(policy: Policy, project: str, found: PolicyException | None) -> str:
        return _printed(lambda console: show_asked(console, policy, project, found))

    def exception_answered(known: PolicyException, given: Given, who: str) -> str:
        return _printed(lambda console: show_answered(console, known, given, who))

    return Words(
        status=status,
        run=run,
        result=result,
        explain=explain,
        explain_past=explain_past,
        report=report,
        site=site,
        exceptions=exceptions,
        exception_asked=exception_asked,
        exception_answered=exception_answered,
    )


def _printed(show: Callable[[Console], None]) -> str:
    """As into a file: no colours, and as wide as most terminals."""
    page = io.StringIO()
    show(Console(file=page, width=_COLUMNS, highlight=False, markup=False, emoji=False))
    return page.getvalue()
