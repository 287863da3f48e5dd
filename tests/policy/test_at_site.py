"""What an agent decides by itself."""

from __future__ import annotations

from building import Hall, a_job, a_ladder, a_policy, a_site, a_world, kinds
from wattline.policy import decide_at_site, is_own
from wattline.state import ActionKind, Decision, JobState


def a_hall(**changes: object) -> Hall:
    hall = a_world(
        a_site("zurich", feeds_watts=(3200.0,)), policy=a_policy(thresholds={"power_margin": "0%"})
    )
    ladder = a_ladder({"cap_power": "50%"}, {"pause": "2h"})
    hall.run(a_job("r1/train", gpus=8, checkpoints=True, ladder=ladder, **changes))
    return hall


def decided(hall: Hall, **changes: object) -> Decision:
    return decide_at_site(hall.snapshot(), hall.policy, site="zurich", **changes)  # type: ignore[arg-type]


def test_nobody_is_admitted_by_an_agent() -> None:
    hall = a_world(a_site("zurich"))
    hall.submit(a_job("r2/train"))
    assert not decided(hall).actions


def test_a_smaller_envelope_is_a_cap_like_any_other() -> None:
    hall = a_hall()
    hall.read("zurich/feed-a", "lease_watts", 2000.0)
    decision = decided(hall)
    assert kinds(decision) == [("cap_power", "r1/train")]
    assert all(is_own(action, "zurich") for action in decision.actions)


def test_a_larger_envelope_does_not_lift_what_the_feed_can_carry() -> None:
    hall = a_hall()
    hall.read("zurich/feed-a", "lease_watts", 1e6)
    hall.read("zurich/feed-a", "cap_watts", 2000.0)
    assert kinds(decided(hall)) == [("cap_power", "r1/train")]


def test_cut_off_who_may_not_go_on_alone_saves_and_leaves_and_others_stay() -> None:
    assert kinds(decided(a_hall(), cut_off="no word for 20 s")) == [("pause", "r1/train")]
    assert not decided(a_hall(on_isolation="continue"), cut_off="no word for 20 s").actions


def test_orders_come_first_and_keep_their_names() -> None:
    hall = a_hall()
    hall.asked("r1/train", "pause")
    (order,) = hall.decide().actions
    assert order.kind is ActionKind.PAUSE
    other = a_hall()
    decision = decided(other, orders=[order], cut_off="no word for 20 s")
    assert [action.id for action in decision.actions] == [order.id]
    other.state.settle(decision)
    assert other.job().state is JobState.PAUSING
