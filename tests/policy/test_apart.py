"""Two policies side by side: each decides for its own nodes and jobs, and takes what the other leaves."""

from __future__ import annotations

from building import Hall, a_device, a_facility, a_job, a_ladder, a_policy, a_site, assert_ledger_is_true
from wattline.facility import Facility
from wattline.policy.apart import Split, choose_racks, decide_apart, draw, nodes_of
from wattline.spec import Policy
from wattline.state import ActionKind, Decision, JobState, Plant

IN_FORCE = a_policy(policy="old")
CANDIDATE = a_policy(policy="new")


class Halves(Hall):
    """A hall in which a candidate decides for some of the nodes."""

    def __init__(
        self,
        facility: Facility,
        on: tuple[str, ...],
        share: float = 0.5,
        in_force: Policy = IN_FORCE,
        candidate: Policy = CANDIDATE,
    ) -> None:
        super().__init__(facility, in_force, 345_600.0)
        self.split = Split(self.state.plant, on, share, "salt", in_force, candidate)

    def decide(self) -> Decision:
        decision = decide_apart(self.state, self.at, self.policy, self.split)
        self.state.settle(decision)
        self.decisions.append(decision)
        assert_ledger_is_true(self.state)
        return decision

    def sides(self) -> dict[str, set[str]]:
        """The racks on which each policy started something."""
        found: dict[str, set[str]] = {"": set(), "new": set()}
        for decision in self.decisions:
            for action in decision.actions:
                for node, _ in action.place.nodes if action.place is not None else ():
                    found[action.by].add(node.rpartition("-")[0])
        return found


def test_each_starts_its_jobs_on_its_own_racks_and_says_whose_action_it_is() -> None:
    hall = Halves(a_facility(a_site(racks=4, nodes=1)), ("zurich/r2", "zurich/r3"))
    hall.submit(*[a_job(f"j{n}/train", gpus=4) for n in range(12)])
    hall.decide()
    assert hall.sides() == {"": {"zurich/r1", "zurich/r4"}, "new": {"zurich/r2", "zurich/r3"}}
    started = [action for action in hall.decisions[0].actions if action.kind is ActionKind.START]
    for action in started:
        assert (action.by == "new") is (draw("salt", action.job.partition("/")[0]) < 0.5)


def test_together_they_take_no_more_of_a_feed_than_it_has() -> None:
    site = a_site(racks=2, nodes=4, feeds_watts=(3 * 3200.0,))
    hall = Halves(a_facility(site), ("zurich/r2",))
    hall.submit(*[a_job(f"j{n}/train", gpus=8) for n in range(16)])
    hall.obey(hall.decide())
    feed = hall.state.plant.resource_number["zurich/feed-a"]
    assert hall.state.ledger.claimed[feed] == 3 * 3200
    assert len(hall.state.holding) == 3
    hall.ended(next(iter(hall.state.holding)))
    hall.obey(hall.decide())
    assert hall.state.ledger.claimed[feed] <= 3 * 3200


def test_what_fits_one_side_alone_goes_there_and_what_fits_neither_waits() -> None:
    h100 = a_device("H100")
    hall = Halves(
        a_facility(a_site(racks=2, nodes=1), a_site("oslo", nodes=1, device=h100)), ("oslo",), share=0.0
    )
    hall.submit(a_job("only-there/train", gpu_models=("H100",)))
    hall.decide()
    assert [(action.job, action.by) for action in hall.decisions[0].actions] == [("only-there/train", "new")]
    everywhere = Halves(a_facility(a_site(racks=2, nodes=1)), ("zurich/r2",), share=1.0)
    everywhere.submit(a_job("wide/train", gpus=16), a_job("small/train", gpus=8))
    assert [action.job for action in everywhere.decide().actions] == ["small/train"]
    assert everywhere.job("wide/train").state is JobState.WAITING


def test_a_job_that_runs_is_decided_about_by_whoever_has_its_nodes() -> None:
    pauses = a_policy(policy="new", under_pressure=[{"pause": "1h"}])
    site = a_site(racks=2, nodes=1, telemetry="emulated")
    hall = Halves(a_facility(site), ("zurich/r2",), share=0.0, candidate=pauses)
    for subject, quantity in (
        ("zurich/r1", "rack_watts"),
        ("zurich/r2", "rack_watts"),
        ("zurich/feed-a", "supply_watts"),
        ("zurich/loop", "loop_heat_watts"),
    ):
        hall.read(subject, quantity, 0.0)
    hall.split.nodes, hall.split.others = frozenset(), frozenset({0, 1})
    hall.run(*[a_job(f"r{n}/train", gpus=8, checkpoints=True, ladder=None) for n in (1, 2)])
    hall.split.nodes, hall.split.others = frozenset({1}), frozenset({0})
    hall.wait(1)
    for rack in ("zurich/r1", "zurich/r2"):
        hall.read(rack, "rack_watts", 2e6)
    actions = hall.decide().actions
    (paused,) = [action for action in actions if action.kind is ActionKind.PAUSE]
    place = hall.job(paused.job).place
    assert place is not None
    assert (place.nodes[0][0], paused.by) == ("zurich/r2-n1", "new")


def test_one_that_is_asked_for_again_is_not_promised_twice() -> None:
    hall = Halves(a_facility(a_site(racks=2, nodes=1, feeds_watts=(6400.0,))), ("zurich/r2",))
    hall.submit(*[a_job(f"j{n}/train", gpus=8) for n in range(8)])
    first = hall.decide()
    assert len(first.actions) == 2
    hall.wait(61)
    again = hall.decide()
    assert {action.id for action in again.actions} == {action.id for action in first.actions}


def test_a_share_is_whole_racks_by_lot_at_least_one_and_never_all() -> None:
    plant = Plant(a_facility(a_site(racks=20, nodes=2)))
    tenth = choose_racks(plant, 0.1, "salt")
    assert len(tenth) == 2
    assert choose_racks(plant, 0.1, "salt") == tenth
    assert set(tenth) <= set(choose_racks(plant, 0.5, "salt")), "a larger share keeps the smaller one's racks"
    assert len(choose_racks(plant, 0.001, "salt")) == 1
    assert len(choose_racks(plant, 0.999, "salt")) == 19
    assert choose_racks(Plant(a_facility(a_site(racks=1))), 0.5, "salt") == ()
    assert {plant.spots[node].rack.name for node in nodes_of(plant, tenth)} == set(tenth)


def test_a_ladder_of_an_owner_counts_on_either_side() -> None:
    hall = Halves(a_facility(a_site(racks=2, nodes=1)), ("zurich/r2",))
    hall.submit(*[a_job(f"j{n}/train", gpus=8, ladder=a_ladder({"pause": "1h"})) for n in range(6)])
    assert len(hall.decide().actions) == 2
