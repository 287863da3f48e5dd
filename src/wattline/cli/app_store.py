"""Commands about the store as a whole, declared; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

store_app = typer.Typer(
    no_args_is_help=True, help="All that is known here, in one file, and back from it into any database."
)


@store_app.command(epilog="Example: wattline store backup /mnt/backups/wattline-2026-05-01 --objects")
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    objects: Annotated[
        bool,
        typer.Option("--objects", metavar="", help="Also the objects: sources, outputs, logs, documents."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write over a file that is there.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write journal, inbox, tokens (as hashes) and audit into one file, also while a server runs; checked."""
    from wattline.cli.command_store import back_up_to

    raise typer.Exit(back_up_to(file, with_objects=objects, force=force, as_json=output is Output.JSON))


@store_app.command(
    epilog="Example: wattline store restore wattline-2026-05-01 --into postgresql+psycopg://ops@db/wattline"
)
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `wattline store backup` wrote.")],
    into: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A database; WATTLINE_DATABASE or the state folder unless named."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Replace what the database has; it is lost.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make a store of a backup, in SQLite or PostgreSQL: all of it, or nothing."""
    from wattline.cli.command_store import restore_from

    raise typer.Exit(restore_from(file, into, force=force, as_json=output is Output.JSON))
