"""What to do: decide() = heed, respond, recall, admit; and explain() why."""

from wattline.policy.decision import decide
from wattline.policy.explanation import Explanation, Option, explain
from wattline.policy.relief import ladder_of

__all__ = ["Explanation", "Option", "decide", "explain", "ladder_of"]
