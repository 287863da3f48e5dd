from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.planning import halls
from wattline.facility import Facility, Loop, Rack, Supply
from wattline.spec import PlanChange, read_facility
from wattline.spec.flaws import Flaw, FlawedError
from wattline.twin.changes import apply_change, apply_changes, describe_change, say_crowding, sites_recooled

HALLS = halls()


def change(**fields: object) -> PlanChange:
    return PlanChange.model_validate(fields)


def refused(facility: Facility, *changes: PlanChange) -> Flaw:
    with pytest.raises(FlawedError) as caught:
        apply_changes(facility, changes)
    return caught.value.flaws[0]


def rack(facility: Facility, name: str) -> Rack:
    return next(rack for site in facility.sites for rack in site.racks if rack.name == name)


def loop(facility: Facility, name: str) -> Loop:
    return next(loop for site in facility.sites for loop in site.loops if loop.name == name)


def supply(facility: Facility, name: str) -> Supply:
    return next(each for site in facility.sites for each in site.supplies if each.name == name)


def test_copies_of_a_rack_have_its_nodes_and_names_of_their_own() -> None:
    changed = apply_change(HALLS, change(rack="north/r1", copies=2))
    assert changed.gpus == HALLS.gpus + 16
    copy = rack(changed, "north/r1-copy2")
    assert [node.name for node in copy.nodes] == ["north/r1-copy2-n1"]
    assert {node.rack for node in copy.nodes} == {copy.name}
    assert (copy.loop, copy.supplies, copy.row) == ("north/cdu", ("north/pdu-1",), "north/1")
    assert copy.switch == copy.name  # the original has a switch of its own too
    assert rack(changed, "north/r1") == rack(HALLS, "north/r1")


def test_copies_are_numbered_on_from_those_that_are_there() -> None:
    changed = apply_changes(HALLS, [change(rack="north/r1", copies=1), change(rack="north/r1", copies=1)])
    assert [each.name for each in changed.sites[0].racks][2:] == ["north/r1-copy1", "north/r1-copy2"]


def test_copies_share_a_switch_that_the_original_shares() -> None:
    changed = apply_change(read_facility("lab"), change(rack="zurich/r1", copies=1))
    assert rack(changed, "zurich/r1-copy1").switch == "zurich/leaf-1"


def test_nothing_is_built_out_unless_it_is_said() -> None:
    changed = apply_change(HALLS, change(rack="north/r1", copies=1))
    assert (changed.sites[0].loops, changed.sites[0].supplies) == (
        HALLS.sites[0].loops,
        HALLS.sites[0].supplies,
    )


def test_what_is_built_out_carries_the_caps_of_the_copies_too() -> None:
    changed = apply_change(HALLS, change(rack="north/r1", copies=3, grow=["loop", "power"]))
    assert loop(changed, "north/cdu").capacity_watts == pytest.approx(20e3 + 18e3)
    assert loop(changed, "north/cdu").flow_litres_per_minute == pytest.approx(26 * 38 / 20)
    for name in ("north/pdu-1", "north/a"):
        before, after = supply(HALLS, name), supply(changed, name)
        assert after.usable_watts == pytest.approx(before.usable_watts + 18e3)
    assert loop(changed, "north/spare") == loop(HALLS, "north/spare")


def test_each_of_two_redundant_feeds_is_built_out_for_all_of_it() -> None:
    changed = apply_change(HALLS, change(rack="south/r1", copies=1, grow=["power"]))
    for name in ("south/a", "south/b"):
        assert supply(changed, name).usable_watts == pytest.approx(16e3 + 6e3)


def test_copies_may_hang_on_another_loop() -> None:
    changed = apply_change(HALLS, change(rack="north/r1", copies=1, on_loop="spare", grow=["loop"]))
    assert rack(changed, "north/r1-copy1").loop == "north/spare"
    assert loop(changed, "north/spare").capacity_watts == pytest.approx(14e3)
    assert loop(changed, "north/cdu") == loop(HALLS, "north/cdu")


def test_copies_cannot_hang_on_a_loop_of_another_site() -> None:
    flaw = refused(HALLS, change(rack="north/r1", copies=1, on_loop="south/crah"))
    assert flaw.at == ("changes", 0, "on_loop")


def test_each_factor_changes_one_figure() -> None:
    assert rack(apply_change(HALLS, change(rack="north/r1", cap_factor=1.5)), "north/r1").cap_watts == 9e3
    assert loop(apply_change(HALLS, change(loop="crah", warmer_by="+2K")), "south/crah").supply_celsius == 24
    assert loop(apply_change(HALLS, change(loop="crah", warmer_by="-2K")), "south/crah").supply_celsius == 20
    larger = loop(apply_change(HALLS, change(loop="cdu", capacity_factor=2)), "north/cdu")
    assert (larger.capacity_watts, larger.flow_litres_per_minute) == (40e3, 52)
    assert (
        supply(apply_change(HALLS, change(supply="north/a", rating_factor=2)), "north/a").rating_watts == 80e3
    )
    assert apply_change(HALLS, change(link="ns", bandwidth_factor=2)).links[0].bits_per_second == 20e9


@pytest.mark.parametrize(
    ("fields", "field", "nearest"),
    [
        ({"rack": "north/rr2", "copies": 1}, "rack", "north/r2"),
        ({"loop": "north/cdx", "warmer_by": "1K"}, "loop", "north/cdu"),
        ({"supply": "north/pdu-2", "rating_factor": 2}, "supply", "north/pdu-1"),
        ({"link": "nss", "bandwidth_factor": 2}, "link", "ns"),
        ({"rack": "north/r1", "copies": 1, "on_loop": "north/sparr"}, "on_loop", "north/spare"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    fields: dict[str, object], field: str, nearest: str
) -> None:
    flaw = refused(HALLS, change(link="ns", bandwidth_factor=2), change(**fields))
    assert (flaw.at, flaw.nearest) == (("changes", 1, field), nearest)
    assert nearest in (flaw.allowed or "")


def test_a_name_that_two_things_have_is_refused() -> None:
    flaw = refused(HALLS, change(rack="r1", cap_factor=2))
    assert flaw.message == "more than one rack has this name"
    assert flaw.allowed == "north/r1, south/r1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loop": "cdu", "capacity_factor": 0.1}, "north/cdu would not do: its idle racks give off"),
        ({"supply": "pdu-1", "rating_factor": 0.1}, "north/pdu-1 would not do: its idle racks draw"),
        ({"rack": "north/r2", "cap_factor": 0.2}, "north/r2 would not do: its idle nodes draw"),
        ({"rack": "north/r1", "copies": 40}, "north/pdu-1 would not do: its idle racks draw"),
    ],
)
def test_what_no_document_could_say_is_refused(fields: dict[str, object], message: str) -> None:
    assert message in refused(HALLS, change(**fields)).message


def test_copies_that_do_not_fit_are_told_what_would_make_them() -> None:
    assert "grow: [loop, power]" in (refused(HALLS, change(rack="north/r1", copies=40)).allowed or "")


def test_changes_are_judged_together() -> None:
    """Racks that need a larger feed may be named before it."""
    changes = [
        change(rack="north/r1", copies=20, grow=["loop"]),
        change(supply="pdu-1", rating_factor=5),
        change(supply="north/a", rating_factor=5),
    ]
    assert apply_changes(HALLS, changes).gpus == HALLS.gpus + 160


def test_more_nodes_than_a_facility_may_have_are_never_made() -> None:
    changes = [change(rack="lulea/h01", copies=10_000, grow=["loop", "power"])] * 3
    flaw = refused(read_facility("three-sites"), *changes)
    assert (flaw.at, flaw.message) == (("changes", 2, "copies"), "too many nodes")


def test_only_sites_whose_loops_changed_are_cooled_otherwise() -> None:
    grown = apply_change(HALLS, change(rack="south/r1", copies=1, grow=["loop"]))
    assert sites_recooled(HALLS, grown) == ["south"]
    assert sites_recooled(HALLS, apply_change(HALLS, change(rack="south/r1", copies=1))) == []
    assert sites_recooled(HALLS, apply_change(HALLS, change(loop="cdu", warmer_by="1K"))) == ["north"]


@given(st.floats(0.5, 100), st.floats(0.5, 100))
def test_a_factor_and_its_inverse_cancel(factor: float, other: float) -> None:
    there = apply_change(HALLS, change(link="ns", bandwidth_factor=factor))
    there = apply_change(there, change(supply="south/a", rating_factor=1 + other))
    back = apply_change(there, change(link="ns", bandwidth_factor=1 / factor))
    back = apply_change(back, change(supply="south/a", rating_factor=1 / (1 + other)))
    assert back.links[0].bits_per_second == pytest.approx(HALLS.links[0].bits_per_second)
    assert supply(back, "south/a").rating_watts == pytest.approx(supply(HALLS, "south/a").rating_watts)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rack": "a/r", "copies": 1}, "1 more rack like a/r, nothing else built out"),
        (
            {"rack": "a/r", "copies": 20, "on_loop": "a/l", "grow": ["loop", "power"]},
            "20 more racks like a/r on a/l, its loop and its supplies built out",
        ),
        ({"loop": "a/l", "warmer_by": "-2K"}, "a/l: supply 2 K colder"),
        ({"loop": "a/l", "capacity_factor": 1.2}, "a/l: capacity × 1.2"),
        ({"supply": "a/f", "rating_factor": 1.5}, "a/f: rating × 1.5"),
        ({"rack": "a/r", "cap_factor": 0.9}, "a/r: cap × 0.9"),
        ({"link": "l", "bandwidth_factor": 2}, "l: bandwidth × 2"),
    ],
)
def test_a_change_can_be_said(fields: dict[str, object], said: str) -> None:
    assert describe_change(change(**fields)) == said


@pytest.mark.parametrize(
    ("grow", "said"),
    [
        (
            (),
            "idle, the new racks take 3.09 kW of what loop and supplies carry for work; grow builds that out",
        ),
        (("loop",), "idle, the new racks take 3.09 kW of what supplies carry for work; grow builds that out"),
        (("loop", "power"), ""),
    ],
)
def test_racks_that_take_idle_watts_from_others_are_told(grow: tuple[str, ...], said: str) -> None:
    """Eight A100 of 68 W and a kilowatt in each of two."""
    assert say_crowding(HALLS, [change(rack="north/r1", copies=2, grow=grow)]) == said
    assert say_crowding(HALLS, [change(loop="north/cdu", warmer_by="2K")]) == ""
