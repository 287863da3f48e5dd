"""What may a person say of a site that has an agent, and when does it mean something?

`give_up`: nothing runs there any more, whatever its agent thinks, so all of it may go on elsewhere.
`reviewed`: what should have ended there was looked at, and the site takes work again. Whoever conducts acts
on it: until then it waits in the inbox.
"""

from __future__ import annotations

from wattline.control.sites import MAY_BE
from wattline.errors import RefusedError
from wattline.plane.finding import unknown
from wattline.plane.told import SiteWord
from wattline.state import SiteAsked, SiteRecord, State

SITE_WANTS = tuple(MAY_BE)
_DONE = {
    "give_up": "is given up: what it held goes on elsewhere, from the newest copies; "
    "nothing begins there until an agent of any home runs it again (`wattline agent --site`)",
    "reviewed": "takes work again",
}


def ask_of_site(state: State, site: str, want: str) -> SiteRecord:
    """How the site stands; where what is asked means nothing then, the error says why."""
    if site not in state.plant.sites:
        raise unknown("site", site, state.plant.sites)
    record = state.sites.get(site)
    if record is None:
        raise RefusedError(
            f"site {site}: has no agent, so there is nothing to {want.replace('_', ' ')}",
            hint="`wattline agent --site` runs one",
        )
    if record.standing not in MAY_BE[want]:
        raise RefusedError(
            f"site {site}: stands as {record.standing}, and {want} is for {', '.join(sorted(MAY_BE[want]))}",
            hint="`wattline status --site` shows how it stands",
        )
    return record


def site_asked(site: str, want: str, *, at: float, actor: str) -> SiteAsked:
    return SiteAsked(at=at, actor=actor, site=site, want=want)


def describe_word(record: SiteRecord, want: str) -> SiteWord:
    return {"site": record.site, "want": want, "stood": record.standing}


def say_word(told: SiteWord) -> str:
    return f"{told['site']} {_DONE[told['want']]}"
