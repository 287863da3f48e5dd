"""Commands about teams, declared: their week, and exceptions; each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

report_app = typer.Typer()
exception_app = typer.Typer(
    no_args_is_help=True, help="Ask for more than a quota or a rule allows, and answer such requests."
)

AsOption = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Who says so, at their word; the account here unless given."),
]
NoteOption = Annotated[str, typer.Option(help="Why, for whoever reads the journal.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Which; `wattline exception list` names them.")]


@report_app.command(epilog="Example: wattline report --team nlp --week last")
def report(
    team: Annotated[
        str | None, typer.Option(help="One team with all its quotas; all of them unless named.")
    ] = None,
    week: Annotated[
        str, typer.Option(metavar="WEEK", help="this, last, or such as 2026-W47; from Monday 00:00 UTC.")
    ] = "this",
    run: Annotated[str | None, typer.Option(help="Also what a run takes of its team's week.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """A team's week: quotas and budgets, used, promised and left, what will not last; and the SLOs."""
    from wattline.cli.command_report import show_report

    raise typer.Exit(show_report(team=team, week=week, run=run, as_json=output is Output.JSON))


@exception_app.command(
    epilog="Example: wattline exception request --rule quota --project nlp --amount 500 --until 3d "
    "--because 'the deadline moved'"
)
def request(
    rule: Annotated[
        str,
        typer.Option(help="quota, budget.usd, budget.kwh, budget.kg_co2e, or a rule that is not to hold."),
    ],
    project: Annotated[str, typer.Option(help="For whom.")],
    until: Annotated[str, typer.Option(metavar="TIME|DURATION", help="When it ends; within a year.")],
    because: Annotated[str, typer.Option(help="What an approver reads.")],
    amount: Annotated[
        str | None, typer.Option(help="Of a quota or budget: how much more in every week until then.")
    ] = None,
    name: AsOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask for more than a quota, or for a rule not to hold, for a project and a while."""
    from wattline.cli.command_exception import request_exception

    raise typer.Exit(
        request_exception(
            rule=rule,
            project=project,
            amount=amount,
            until=until,
            because=because,
            name=name,
            as_json=output is Output.JSON,
        )
    )


@exception_app.command(epilog="Example: wattline exception approve ex-3 --as grace")
def approve(
    exception: IdArgument, name: AsOption = None, note: NoteOption = "", output: OutputOption = Output.TEXT
) -> None:
    """Let it hold until its end; only for who has the role that the policy names, and never one's own."""
    from wattline.cli.command_exception import answer_exception

    as_json = output is Output.JSON
    raise typer.Exit(answer_exception(exception, approved=True, name=name, note=note, as_json=as_json))


@exception_app.command(epilog="Example: wattline exception deny ex-3 --as grace --note 'next week'")
def deny(
    exception: IdArgument, name: AsOption = None, note: NoteOption = "", output: OutputOption = Output.TEXT
) -> None:
    """Say no; the same role as for approving."""
    from wattline.cli.command_exception import answer_exception

    as_json = output is Output.JSON
    raise typer.Exit(answer_exception(exception, approved=False, name=name, note=note, as_json=as_json))


@exception_app.command("list", epilog="Example: wattline exception list --project nlp")
def list_(
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """What was asked for, the newest first, and who answered what."""
    from wattline.cli.command_exception import list_exceptions

    raise typer.Exit(list_exceptions(project, as_json=output is Output.JSON))
