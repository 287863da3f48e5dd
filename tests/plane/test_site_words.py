"""What a person says of a site counts when it means something, and is refused in words when it does not."""

from __future__ import annotations

import pytest

from building import MONDAY, a_facility, a_policy, a_site
from wattline.control import step
from wattline.control.sites import Timing
from wattline.errors import RefusedError, UsageError
from wattline.live.fleet import FleetWorld
from wattline.plane.site_words import ask_of_site, describe_word, say_word, site_asked
from wattline.state import Event, SiteStood, Standing, State


def a_state(standing: Standing) -> State:
    state = State(a_facility(a_site("zurich"), a_site("oslo")))
    state.fold([SiteStood(at=MONDAY, site="oslo", standing=standing, epoch=3, agent="a1", say="as it is")])
    return state


class Journal:
    def append(self, *_: object) -> None: ...


def after(state: State, word: Event) -> State:
    """One turn of the loop in which somebody said this."""
    heard = [word]
    fleet = FleetWorld(
        state=state,
        timing=Timing(),
        clock=lambda: MONDAY + 1.0,
        requests=lambda: [heard.pop()] if heard else [],
    )
    step(fleet, state, a_policy(), Journal())
    return state


@pytest.mark.parametrize("standing", list(Standing))
def test_a_site_can_always_be_given_up_and_then_nobody_holds_it(standing: Standing) -> None:
    state = a_state(standing)
    ask_of_site(state, "oslo", "give_up")
    record = after(state, site_asked("oslo", "give_up", at=MONDAY + 1.0, actor="ada")).sites["oslo"]
    assert (record.standing, record.agent) == (Standing.REGIONAL_FALLBACK, "")
    assert record.say == "given up by ada"


def test_a_site_that_is_held_takes_work_again_once_somebody_has_looked() -> None:
    state = a_state(Standing.HELD_FOR_REVIEW)
    record = ask_of_site(state, "oslo", "reviewed")
    assert say_word(describe_word(record, "reviewed")) == "oslo takes work again"
    record = after(state, site_asked("oslo", "reviewed", at=MONDAY + 1.0, actor="ada")).sites["oslo"]
    assert (record.standing, record.epoch) == (Standing.PRIMARY, 4)


@pytest.mark.parametrize("standing", [one for one in Standing if one is not Standing.HELD_FOR_REVIEW])
def test_a_review_of_a_site_that_is_not_held_is_refused_and_changes_nothing(standing: Standing) -> None:
    state = a_state(standing)
    with pytest.raises(RefusedError, match=f"site oslo: stands as {standing}"):
        ask_of_site(state, "oslo", "reviewed")
    record = after(state, site_asked("oslo", "reviewed", at=MONDAY + 1.0, actor="ada")).sites["oslo"]
    assert record.epoch == 3


def test_a_site_without_an_agent_or_that_does_not_exist_is_named() -> None:
    state = a_state(Standing.PRIMARY)
    with pytest.raises(RefusedError, match="site zurich: has no agent"):
        ask_of_site(state, "zurich", "give_up")
    with pytest.raises(UsageError, match="oslo"):
        ask_of_site(state, "olso", "give_up")
