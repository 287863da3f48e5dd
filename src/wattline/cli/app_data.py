"""Commands about data, declared; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

data_app = typer.Typer(no_args_is_help=True, help="What pipelines train on, by its hash.")


@data_app.callback()
def _group() -> None:
    """What pipelines train on, by its hash."""


@data_app.command(epilog="Example: wattline data pin data/corpus.txt")
def pin(
    path: Annotated[Path, typer.Argument(help="A file or a folder below the pipeline's own.")],
    pipeline: Annotated[Path, typer.Option(help="The pipeline document.")] = Path("wattline.yaml"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a file's or folder's sha256 into the pipeline; all else in it stays as it is written."""
    from wattline.cli.command_data import pin_data

    raise typer.Exit(pin_data(path, pipeline=pipeline, as_json=output is Output.JSON))
