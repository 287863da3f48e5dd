"""Files: every rendering of a report in one folder, for a CI that keeps what a job leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wattline.checks.reading import encode_report
from wattline.checks.rendering.gitlab import render_code_quality, render_metrics
from wattline.checks.rendering.junit import render_junit
from wattline.checks.rendering.markdown import render_markdown
from wattline.checks.rendering.sarif import render_sarif
from wattline.checks.report import Report
from wattline.errors import UnavailableError

FILES: dict[str, Callable[[Report], str]] = {
    "report.json": lambda report: encode_report(report).decode(),
    "comment.md": render_markdown,
    "report.sarif": render_sarif,
    "junit.xml": render_junit,
    "metrics.txt": render_metrics,
    "codequality.json": render_code_quality,
}


def write_renderings(report: Report, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, render in FILES.items():
            (folder / name).write_text(render(report), encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnavailableError(
            f"{folder}: the report cannot be written there: {error.strerror or error}",
            hint="name a folder that this user may write to",
        ) from error
