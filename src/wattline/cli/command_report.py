"""The report command: a team's week, what will not last, and how the SLOs stand."""

from __future__ import annotations

from wattline.cli.printing import print_json, stdout_console
from wattline.cli.remote import find_server
from wattline.cli.report_text import show_text
from wattline.plane.finding import open_view
from wattline.plane.reporting import describe_report, make_report


def show_report(*, team: str | None, week: str, run: str | None, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        asked = {"team": team, "week": week, "run": run}
        server.show("/api/v1/report", as_json=as_json, **{k: v for k, v in asked.items() if v is not None})
        return 0
    with open_view() as view:
        report = make_report(view, team=team, week=week, run=run)
        if as_json:
            print_json(describe_report(report))
        else:
            show_text(stdout_console(), report, is_one=team is not None)
    return 0
