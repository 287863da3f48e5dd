"""What to do: decide() = heed, respond, recall, admit; and explain() why."""

from wattline.policy.decision import decide
from wattline.policy.explanation import Eta, Explanation, Option, explain
from wattline.policy.relief import ladder_of

__all__ = ["Eta", "Explanation", "Option", "decide", "explain", "ladder_of"]
