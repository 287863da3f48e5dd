from __future__ import annotations

from collections.abc import Callable

from building import Hall, a_job, a_site, a_world, kinds
from wattline.control import Decide
from wattline.state import Decision, Place
from wattline.twin.baselines import decide_fifo

Take = Callable[[Hall, Decide], Decision]


def test_the_head_of_the_line_keeps_all_behind_it_waiting(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("a/train", gpus=6))
    take(hall, decide_fifo)
    hall.wait(1)
    hall.submit(a_job("b/train", gpus=4))
    hall.wait(1)
    hall.submit(a_job("c/train", gpus=1))
    assert kinds(take(hall, decide_fifo)) == []
    hall.ended("a/train")
    assert kinds(take(hall, decide_fifo)) == [("start", "b/train"), ("start", "c/train")]


def test_a_job_goes_to_the_node_it_fits_best(take: Take) -> None:
    hall = a_world(a_site(nodes=2))
    hall.submit(a_job("a/train", gpus=5), a_job("b/train", gpus=3))
    places = [action.place for action in take(hall, decide_fifo).actions]
    assert places == [Place("zurich", (("zurich/r1-n1", gpus),)) for gpus in (5, 3)]


def test_a_gang_takes_the_roomiest_nodes_first(take: Take) -> None:
    hall = a_world(a_site(nodes=3))
    hall.submit(a_job("a/train", gpus=3))
    take(hall, decide_fifo)
    hall.submit(a_job("b/train", gpus=18))
    (action,) = take(hall, decide_fifo).actions
    assert action.place == Place("zurich", (("zurich/r1-n2", 8), ("zurich/r1-n3", 8), ("zurich/r1-n1", 2)))


def test_power_heat_and_budget_are_not_judged(take: Take) -> None:
    hall = a_world(a_site(nodes=1, rack_cap_watts=10.0, loop_watts=10.0, feeds_watts=(10.0,)))
    hall.submit(a_job("a/train", gpus=8))
    assert kinds(take(hall, decide_fifo)) == [("start", "a/train")]


def test_gpus_of_two_sites_make_no_gang(take: Take) -> None:
    hall = a_world(a_site("zurich", nodes=1), a_site("geneva", nodes=1))
    hall.submit(a_job("a/train", gpus=5), a_job("b/train", gpus=5))
    places = [action.place.site for action in take(hall, decide_fifo).actions if action.place]
    assert places == ["zurich", "geneva"]
    hall.submit(a_job("c/train", gpus=6))
    assert kinds(take(hall, decide_fifo)) == []
