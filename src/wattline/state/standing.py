"""Standing: how do the control plane and the agent of a site stand to each other?"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from wattline.enums import plain_members


@plain_members
class Standing(StrEnum):
    PRIMARY = "primary"  # its agent holds the lease: the control plane decides what starts there
    LOCAL_ONLY = "local_only"  # not heard for the grace: it acts by itself, and nothing of it moves
    REGIONAL_FALLBACK = "regional_fallback"  # its lease surely ended: others carry what may move
    HELD_FOR_REVIEW = "held_for_review"  # it came back with what should have ended: a person looks at it


class SiteRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A site that has an agent, as the journal knows it."""

    site: str
    standing: Standing
    since: float
    epoch: int  # of its lease: a new one each time it may have been without
    agent: str = ""
    heard: int = 0  # the last number of the agent's own journal that is in this one
    say: str = ""

    @property
    def takes_work(self) -> bool:
        return self.standing is Standing.PRIMARY


def is_reached(sites: Mapping[str, SiteRecord], site: str) -> bool:
    """Whether what lies at a site can be had: nobody else runs it, or its agent is there."""
    return site not in sites or sites[site].takes_work
