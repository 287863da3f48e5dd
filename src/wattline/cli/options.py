"""Options that every command takes; light, because `--help` imports it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


class CheckOutput(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Data on stdout as text or JSON.")]
PipelineArgument = Annotated[Path, typer.Argument(help="The pipeline document.", show_default=True)]
JobArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="JOB|RUN",
        help="A run, one of its jobs as run/phase, or a phase of the newest run.",
        show_default="the newest run",
    ),
]
