"""Who puts an answer into words, where a person asks for text? The command line's own printers.

The API cannot know them: faces stand beside each other. Whoever starts a server hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wattline.plane.explaining import Answer
from wattline.plane.explaining_past import PastAnswer
from wattline.plane.finding import View
from wattline.plane.reporting import Report
from wattline.policy import SiteConditions
from wattline.spec import Policy
from wattline.state import Answer as Given
from wattline.state import PolicyException, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Each gives the text that the command of this name prints."""

    status: Callable[[View | None, Callable[[str], bool]], str]
    run: Callable[[View, Run], str]
    result: Callable[[View, Run], str]
    explain: Callable[[View, Answer], str]
    explain_past: Callable[[PastAnswer], str]
    report: Callable[[Report, bool], str]
    site: Callable[[SiteConditions], str]
    exceptions: Callable[[Sequence[PolicyException], float], str]
    exception_asked: Callable[[Policy, str, PolicyException | None], str]
    exception_answered: Callable[[PolicyException, Given, str], str]
