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


# What ships, as help says it: looking for the files would slow down every command.
FACILITIES = "lab, philly-800, three-sites, three-sites-and-cloud"
POLICIES = "capped-fleet, default, sleeping-nodes"
SCENARIOS = "burst, feed-loss, grid-event, heatwave, pump-trip, site-loss, spot-reclaim, wan-brownout"
PLANS = "more-or-warmer"

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
