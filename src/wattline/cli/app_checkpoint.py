"""Commands about checkpoints, declared; each imports what it needs when it runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

checkpoint_app = typer.Typer(no_args_is_help=True, help="What is saved, whether it is whole, and where else.")

WhereArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="WHERE",
        help="A folder, s3://bucket/prefix, http://host:port, a run, or run/phase.",
        show_default="the newest run",
    ),
]


class Format(StrEnum):
    SAFETENSORS = "safetensors"
    TORCH = "torch"


@checkpoint_app.command("list", epilog="Example: wattline checkpoint list out/checkpoints")
def list_(where: WhereArgument = None, output: OutputOption = Output.TEXT) -> None:
    """What a repository holds: step, age, size in memory and as stored."""
    from wattline.cli.command_checkpoint import list_all

    raise typer.Exit(list_all(where, as_json=output is Output.JSON))


@checkpoint_app.command(epilog="Example: wattline checkpoint verify tiny-lm-0501-093000-1a2b/train")
def verify(
    where: WhereArgument = None,
    name: Annotated[
        str | None, typer.Option(help="One checkpoint, as `list` names it.", show_default="all")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Read every byte and compare every hash; exit 1 if one differs."""
    from wattline.cli.command_checkpoint import verify_all

    raise typer.Exit(verify_all(where, name, as_json=output is Output.JSON))


@checkpoint_app.command(epilog="Example: wattline checkpoint restore --to torch --file model.pt")
def restore(
    to: Annotated[Format, typer.Option(help="The format to write.")],
    file: Annotated[Path, typer.Option(help="The file to write.")],
    where: WhereArgument = None,
    name: Annotated[
        str | None,
        typer.Option(help="One checkpoint, as `list` names it.", show_default="the newest that is whole"),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a checkpoint for people without Wattline."""
    from wattline.cli.command_checkpoint import restore_to

    raise typer.Exit(restore_to(where, name, to, file, as_json=output is Output.JSON))


@checkpoint_app.command(epilog="Example: wattline checkpoint replicate --to s3://backups/lm --rate 8Mbps")
def replicate(
    to: Annotated[
        str, typer.Option(metavar="WHERE", help="A folder, s3://bucket/prefix or http://host:port.")
    ],
    where: WhereArgument = None,
    rate: Annotated[
        str | None, typer.Option(help="At most this fast, such as 8Mbps.", show_default="no limit")
    ] = None,
    newest: Annotated[
        bool, typer.Option("--newest", metavar="", help="Only the newest that is whole.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Copy nothing: exit 1 unless all is there.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Copy what another repository lacks, newest first; after a cut it goes on where it stopped."""
    from wattline.cli.command_checkpoint import replicate_to

    as_json = output is Output.JSON
    raise typer.Exit(replicate_to(where, to, rate=rate, newest=newest, check=check, as_json=as_json))


@checkpoint_app.command(epilog="Example: WATTLINE_TOKEN=… wattline checkpoint receive /srv/checkpoints")
def receive(
    folder: Annotated[Path, typer.Argument(help="Where what arrives is kept.")],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8730,
    certificate: Annotated[
        Path | None, typer.Option(help="A PEM file with a certificate and its key: https instead of http.")
    ] = None,
) -> None:
    """Let other sites put checkpoints into a folder here, until interrupted; they need the token."""
    from wattline.cli.command_checkpoint import receive_into

    raise typer.Exit(receive_into(folder, host=host, port=port, certificate=certificate))


@checkpoint_app.command(epilog="Example: wattline checkpoint prune --keep-last 3 --keep-days 7 --dry-run")
def prune(
    where: WhereArgument = None,
    keep_last: Annotated[int, typer.Option(help="So many of the newest that are whole.", min=1)] = 3,
    keep_best: Annotated[int, typer.Option(help="And so many with the lowest of --by.", min=0)] = 0,
    by: Annotated[str, typer.Option(help="What was logged at the step, such as loss.")] = "loss",
    keep_days: Annotated[float, typer.Option(help="And all that are younger.", min=0.0)] = 0.0,
    pin: Annotated[
        list[str] | None,
        typer.Option(help="And this one, by its hash; releases of this folder's runs are pinned anyway."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Only say what would go.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Remove checkpoints that no rule keeps; never what a kept one or a release needs."""
    from wattline.cli.command_checkpoint import prune_all

    raise typer.Exit(
        prune_all(
            where,
            keep_last=keep_last,
            keep_best=keep_best,
            by=by,
            keep_days=keep_days,
            pins=tuple(pin or ()),
            dry_run=dry_run,
            as_json=output is Output.JSON,
        )
    )
