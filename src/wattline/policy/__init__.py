"""What to do: decide() = heed, respond, recall, admit; and explain() why."""

from wattline.policy.admitting.kept_places import KeptPlace
from wattline.policy.at_site import decide_at_site, is_own
from wattline.policy.decision import decide
from wattline.policy.explaining.conditions import Room, SiteConditions, judge_conditions
from wattline.policy.explaining.explanation import (
    BlockedBy,
    Eta,
    Explanation,
    explain,
)
from wattline.policy.explaining.options import choose_options
from wattline.policy.giving_way.relief import ladder_of
from wattline.policy.placing.judging import dominant, judge_request, without_meters
from wattline.policy.placing.offering import Option, usage_alone

__all__ = [
    "BlockedBy",
    "Eta",
    "Explanation",
    "KeptPlace",
    "Option",
    "Room",
    "SiteConditions",
    "choose_options",
    "decide",
    "decide_at_site",
    "dominant",
    "explain",
    "is_own",
    "judge_conditions",
    "judge_request",
    "ladder_of",
    "usage_alone",
    "without_meters",
]
