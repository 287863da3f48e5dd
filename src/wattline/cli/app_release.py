"""Commands about releases, declared; each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

release_app = typer.Typer()

NoteOption = Annotated[str, typer.Option(help="Why, for whoever reads the history.")]


@release_app.command(
    epilog="Example: wattline promote tiny-lm-0501-093000-1a2b --to production --approved-by ada"
)
def promote(
    run: Annotated[str, typer.Argument(help="A run that passed its gates.")],
    to: Annotated[
        str | None, typer.Option(help="The channel; the one its pipeline names by default.")
    ] = None,
    approved_by: Annotated[
        str | None, typer.Option(help="Who approved it, where the pipeline requires that.")
    ] = None,
    note: NoteOption = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Make a run's artifacts the current release of a channel."""
    from wattline.cli.command_release import promote as promote_run

    as_json = output is Output.JSON
    raise typer.Exit(promote_run(run, to=to, approved_by=approved_by, note=note, as_json=as_json))


@release_app.command(
    epilog="Example: wattline rollback tiny-lm --channel staging --note 'answers in riddles'"
)
def rollback(
    name: Annotated[str, typer.Argument(help="A release's name.")],
    channel: Annotated[
        str | None, typer.Option(help="Its channel; may be left out where there is only one.")
    ] = None,
    to: Annotated[
        int | None, typer.Option(help="The number to go back to; the one before by default.", min=1)
    ] = None,
    note: NoteOption = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a release back in one step."""
    from wattline.cli.command_release import rollback as rollback_release

    as_json = output is Output.JSON
    raise typer.Exit(rollback_release(name, channel=channel, to=to, note=note, as_json=as_json))


@release_app.command(epilog="Example: wattline lineage tiny-lm:staging")
def lineage(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUN|RELEASE[:CHANNEL]", help="A run, or what is current of a release on a channel."
        ),
    ],
    output: OutputOption = Output.TEXT,
) -> None:
    """From a release back to its data and decisions, with every hash read again; exit 1 if one differs."""
    from wattline.cli.command_lineage import show_lineage

    raise typer.Exit(show_lineage(name, as_json=output is Output.JSON))
