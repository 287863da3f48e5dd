"""Commands about data, declared; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

data_app = typer.Typer(no_args_is_help=True, help="What pipelines train on, by its hash and its profile.")


@data_app.callback()
def _group() -> None:
    """What pipelines train on, by its hash and its profile."""


@data_app.command(epilog="Example: wattline data pin data/corpus.txt")
def pin(
    path: Annotated[Path, typer.Argument(help="A file or a folder below the pipeline's own.")],
    pipeline: Annotated[Path, typer.Option(help="The pipeline document.")] = Path("wattline.yaml"),
    profile: Annotated[
        bool, typer.Option("--profile/--no-profile", help="Whether to record what the data looks like, too.")
    ] = True,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write data's sha256 into the pipeline and its profile beside the data; all else stays as it is."""
    from wattline.cli.command_data import pin_data

    done = pin_data(path, pipeline=pipeline, with_profile=profile, as_json=output is Output.JSON)
    raise typer.Exit(done)
