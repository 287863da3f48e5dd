"""Which command was meant? Each imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wattline.errors import WattlineError

app = typer.Typer(
    name="wattline",
    help="The control plane between your repository and your GPU halls.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Data on stdout as text or JSON.")]
PipelineArgument = Annotated[Path, typer.Argument(help="The pipeline document.", show_default=True)]


@app.callback()
def _top() -> None:
    """Training under real limits: power, heat, network, quota, cost and carbon."""


@app.command(
    epilog="Example: wattline run examples/tiny-lm/wattline.yaml --faults examples/tiny-lm/faults.yaml"
)
def run(
    pipeline: PipelineArgument = Path("wattline.yaml"),
    facility: Annotated[
        str | None,
        typer.Option(help="A facility document, or one that ships: lab (default), philly-800, three-sites."),
    ] = None,
    policy: Annotated[str | None, typer.Option(help="A policy document, or one that ships: default.")] = None,
    faults: Annotated[
        Path | None, typer.Option(help="What breaks, where and when (emulated facilities).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with this pipeline's newest run, if it has not ended.")] = False,
    run_id: Annotated[
        str | None, typer.Option("--run", help="With --resume: which run; the newest by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For what is random in an emulated facility.")] = 0,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check, admit, place, train, gate and release a pipeline, here, embedded."""
    from wattline.cli.command_run import run_pipeline

    raise typer.Exit(
        run_pipeline(
            pipeline=pipeline,
            facility=facility,
            policy=policy,
            faults=faults,
            resume=resume,
            run_id=run_id,
            seed=seed,
            as_json=output is Output.JSON,
        )
    )


def run_app() -> None:
    """Any error that has a sentence is told as one, with its exit code; nobody sees a traceback for it."""
    try:
        app()
    except WattlineError as error:
        sys.stderr.write(f"wattline: {error}\n")
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
