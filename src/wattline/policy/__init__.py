"""What to do: decide() = heed, respond, recall, admit; and explain() why."""

from wattline.policy.admission import dominant, judge_request
from wattline.policy.decision import decide
from wattline.policy.explanation import Eta, Explanation, Option, estimate_usage, explain
from wattline.policy.relief import ladder_of

__all__ = [
    "Eta",
    "Explanation",
    "Option",
    "decide",
    "dominant",
    "estimate_usage",
    "explain",
    "judge_request",
    "ladder_of",
]
