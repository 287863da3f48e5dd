from __future__ import annotations

from collections.abc import Callable

from building import Hall, a_job, a_ladder, a_site, a_world, kinds
from wattline.control import Decide
from wattline.state import Decision
from wattline.twin.baselines import decide_blind

Take = Callable[[Hall, Decide], Decision]


def test_whoever_fits_starts_past_those_who_do_not(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("a/train", gpus=6))
    hall.submit(a_job("b/train", gpus=4))
    hall.submit(a_job("c/train", gpus=2))
    assert kinds(take(hall, decide_blind)) == [("start", "a/train"), ("start", "c/train")]


def test_nothing_gives_way_whatever_is_drawn(take: Take) -> None:
    hall = a_world(a_site(nodes=1, rack_cap_watts=1000.0, telemetry="emulated"))
    ladder = a_ladder({"cap_power": "50%"})
    hall.submit(a_job("a/train", gpus=4, ladder=ladder), a_job("b/train", gpus=4, ladder=ladder))
    assert kinds(take(hall, decide_blind)) == [("start", "a/train"), ("start", "b/train")]
    hall.read("zurich/r1", "rack_watts", 3200.0)
    hall.wait(1)
    decision = take(hall, decide_blind)
    assert decision.actions == ()
    assert decision.revisit_at is None
