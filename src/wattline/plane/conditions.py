"""How does a site stand: what room is left, and since when does it shrink?"""

from __future__ import annotations

from wattline.control import earlier_readings
from wattline.plane.finding import View, unknown
from wattline.plane.moments import iso
from wattline.plane.status import describe_agent
from wattline.plane.told import SiteTold
from wattline.policy import SiteConditions, judge_conditions
from wattline.state import Snapshot
from wattline.store.steps import read_steps

# Steps are about a second apart: enough for ten minutes, and read in a moment.
_STEPS = 1200


def find_conditions(view: View, site: str) -> SiteConditions:
    """What is left at a site now; what rises is told by the last ten minutes of the journal."""
    if site not in view.state.plant.sites:
        raise unknown("site", site, view.state.plant.sites)
    journal = view.session.store.journal
    steps = [record for _, record in read_steps(journal, max(0, journal.last_seq() - _STEPS))]
    before = earlier_readings(steps, view.at)
    return judge_conditions(Snapshot(view.state, view.at), view.session.policy(), site, before)


def describe_conditions(conditions: SiteConditions) -> SiteTold:
    return {
        "site": conditions.site,
        "at": iso(conditions.at),
        "emulated": conditions.emulated,
        "caps_power": conditions.caps_power,
        "gpus": conditions.gpus,
        "gpus_free": conditions.gpus_free,
        "others_gpus": conditions.others_gpus,
        "nodes_off": conditions.nodes_off,
        "rooms": conditions.rooms,
        "say": conditions.say,
        "agent": None if conditions.agent is None else describe_agent(conditions.agent),
    }
