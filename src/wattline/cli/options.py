"""Options that every command takes; light, because `--help` imports it."""

from __future__ import annotations

from enum import StrEnum
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
