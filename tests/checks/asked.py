"""A pipeline in a folder, as a check is asked about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wattline.checks import Asking, Check
from wattline.spec import Pipeline, Policy


def ask(
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    source: set[str] | None = None,
    rehearse: bool = False,
    **fields: Any,
) -> Asking:
    head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q", "phases": {"train": {"run": "true"}}}
    return Asking(
        pipeline=Pipeline.model_validate(head | fields),
        policy=Policy.model_validate({}),
        folder=folder,
        environment=environment or {},
        source=source,
        rehearse=rehearse,
    )


def outcomes(checks: Iterable[Check]) -> dict[str, str]:
    return {check.title: check.outcome for check in checks}
