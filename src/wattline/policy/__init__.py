"""What to do: decide() = heed, respond, recall, admit; and explain() why."""

from wattline.policy.decision import decide
from wattline.policy.explanation import (
    Eta,
    Explanation,
    explain,
)
from wattline.policy.judging import dominant, judge_request, without_meters
from wattline.policy.kept_places import KeptPlace
from wattline.policy.options import Option, choose_options, usage_alone
from wattline.policy.relief import ladder_of

__all__ = [
    "Eta",
    "Explanation",
    "KeptPlace",
    "Option",
    "choose_options",
    "decide",
    "dominant",
    "explain",
    "judge_request",
    "ladder_of",
    "usage_alone",
    "without_meters",
]
