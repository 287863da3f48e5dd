"""A report as people and machines read it. Every rendering is made of the report alone."""

from wattline.checks.rendering.files import write_renderings
from wattline.checks.rendering.github import render_github, write_step_files
from wattline.checks.rendering.gitlab import render_code_quality, render_metrics
from wattline.checks.rendering.junit import render_junit
from wattline.checks.rendering.markdown import LONGEST_COMMENT, render_markdown, render_quiet
from wattline.checks.rendering.sarif import render_sarif

__all__ = [
    "LONGEST_COMMENT",
    "render_code_quality",
    "render_github",
    "render_junit",
    "render_markdown",
    "render_metrics",
    "render_quiet",
    "render_sarif",
    "write_renderings",
    "write_step_files",
]
