"""Comment: is there one already, and what should it say now?

Only a comment by the same author that begins with the marker is ours: anybody may copy a marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from wattline.checks.posting.api import RejectedError
from wattline.checks.rendering import render_markdown, render_quiet
from wattline.checks.rendering.escaping import marker
from wattline.checks.report import Report

Outcome = Literal["created", "updated", "unchanged", "quiet"]
_SHORTER = 16_384  # where a server takes less than it says
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A comment that is there."""

    id: int
    author: str
    body: str


class Host(Protocol):
    """Where comments of one pull request are kept."""

    def author(self) -> str:
        """Under which name this token writes."""

    def comments(self) -> Iterator[Posted]: ...

    def create(self, body: str) -> None: ...

    def update(self, comment: Posted, body: str) -> None: ...


def post_comment(host: Host, report: Report) -> Outcome:
    """Make the one comment of this pipeline say what the report says; without a reason, none is made."""
    body = render_markdown(report) if report.worth_a_comment else render_quiet(report)
    try:
        return _put(host, report, body)
    except RejectedError as error:
        if error.status not in {413, 422} or not report.worth_a_comment:
            raise
        return _put(host, report, render_markdown(report, longest=_SHORTER))


def _put(host: Host, report: Report, body: str) -> Outcome:
    """What got no answer may have been made all the same: it is looked for before it is made again."""
    for left in reversed(range(_TRIES)):
        found = _find(host, marker(report.file))
        if found is None and not report.worth_a_comment:
            return "quiet"
        if found is not None and found.body.strip() == body.strip():
            return "unchanged"
        try:
            if found is None:
                host.create(body)
                return "created"
            host.update(found, body)
        except RejectedError as error:
            # 404: somebody removed it meanwhile.
            if not left or (error.status < 500 and error.status != 404):
                raise
            continue
        return "updated"
    raise AssertionError("the last try returns or raises")


def _find(host: Host, first_line: str) -> Posted | None:
    author = host.author()
    ours = (each for each in host.comments() if each.author == author)
    return next((each for each in ours if each.body.lstrip().startswith(first_line)), None)
