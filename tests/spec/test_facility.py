from __future__ import annotations

from collections.abc import Callable

import pytest

from wattline.errors import Problem
from wattline.facility import CoolingKind, Facility, TrafficClass
from wattline.spec import FacilityDocument, build_facility, parse_document

Faulty = Callable[..., tuple[Problem, ...]]

HEAD = """\
facility: f
sites:
  z:
    region: eu
    tariff: {energy: 0.1}
    carbon: {zone: CH, intensity: 45}
    feeds: {a: {rating: 20kW}, b: {rating: 20kW}}
    loops: {crah: {kind: air, capacity: 20kW, supply: 22C}}
    storage: {throughput: 1GB/s}
"""
NODES = "nodes: {count: 2, gpu: A100, gpus: 4, other: 400W}"
RACK = f"{{cap: 8kW, power: [a], loop: crah, {NODES}}}"
RACKS = f"    racks: {{r1: {RACK}}}\n"


def a_facility(text: str) -> Facility:
    return build_facility(parse_document(text.encode(), FacilityDocument, file="f.yaml"), source="f.yaml")


def unmarked(text: str) -> tuple[str, tuple[int, int]]:
    before, mark, after = text.partition("▸")
    assert mark
    return before + after, (before.count("\n") + 1, len(before) - before.rfind("\n"))


def a_second_site(text: str) -> str:
    return text + text.split("sites:\n")[1].replace("  z:\n", "  y:\n", 1)


def test_names_carry_their_site_so_that_two_sites_may_both_have_an_r1() -> None:
    text = a_second_site(HEAD + RACKS)
    facility = a_facility(text + "links: [{name: l, between: [z, y], bandwidth: 1Gbps, latency: 8ms}]\n")
    zurich, other = facility.sites
    (rack,) = zurich.racks
    assert (rack.name, rack.loop, rack.supplies) == ("z/r1", "z/crah", ("z/a",))
    assert (rack.row, rack.switch, zurich.storage.name) == ("z/1", "z/r1", "z/storage")
    assert [node.name for node in rack.nodes] == ["z/r1-n1", "z/r1-n2"]
    assert {node.rack for node in rack.nodes} == {"z/r1"}
    assert other.racks[0].name == "y/r1"
    assert facility.links[0].between == ("z", "y")
    assert facility.source == "f.yaml"
    assert facility.gpus == 16


def test_a_range_of_racks_is_unrolled() -> None:
    facility = a_facility(HEAD + f"    racks:\n      r08..r10: {RACK}\n")
    assert [rack.name for rack in facility.sites[0].racks] == ["z/r08", "z/r09", "z/r10"]
    assert facility.sites[0].racks[2].nodes[1].name == "z/r10-n2"


def test_two_supplies_are_a_and_b_unless_said_otherwise() -> None:
    both = RACKS.replace("[a]", "[a, b]")
    assert a_facility(HEAD + both).sites[0].racks[0].redundant
    assert not a_facility(HEAD + both.replace("cap:", "redundant: false, cap:")).sites[0].racks[0].redundant
    assert not a_facility(HEAD + RACKS).sites[0].racks[0].redundant


@pytest.mark.parametrize(
    ("kind", "approach", "seconds", "pue"),
    [
        ("air", 10, 45, 1.5),
        ("rear-door", 7, 60, 1.28),
        ("direct-to-chip", 4, 15, 1.12),
        ("immersion", 6, 300, 1.06),
    ],
)
def test_a_loop_behaves_as_its_kind_unless_said_otherwise(
    kind: str, approach: float, seconds: float, pue: float
) -> None:
    site = a_facility(HEAD.replace("kind: air", f"kind: {kind}") + RACKS).sites[0]
    (loop,) = site.loops
    assert loop.kind is CoolingKind(kind)
    assert (loop.approach_kelvin, loop.time_constant_seconds) == (approach, seconds)
    assert site.pue == pytest.approx(pue)
    said = HEAD.replace("kind: air", f"kind: {kind}, approach: 5K, time_constant: 1min, flow: 9L/min")
    (loop,) = a_facility(said + RACKS).sites[0].loops
    assert (loop.approach_kelvin, loop.time_constant_seconds, loop.flow_litres_per_minute) == (5, 60, 9)


def test_a_site_prices_its_gpus_and_a_facility_may_bring_its_own() -> None:
    device = (
        "devices: {A100: {limit: 300W, least_limit: 100W, idle: 50W, throttle: 80C, slowdown: 85C, "
        "shutdown: 90C, kelvin_per_watt_air: 0.1, kelvin_per_watt_liquid: 0.05, usd_per_hour: 1.0}}\n"
    )
    node = a_facility(device + HEAD + RACKS).sites[0].racks[0].nodes[0]
    assert node.device is not None
    assert (node.device.limit_watts, node.device.usd_per_hour, node.device.sure) == (300.0, 1.0, "assumed")
    priced = a_facility(HEAD + RACKS + "    gpu_hour: {A100: 1.2}\n").sites[0].racks[0].nodes[0]
    assert priced.device is not None
    assert (priced.device.limit_watts, priced.device.usd_per_hour) == (400.0, 1.2)


def test_a_rack_may_mix_its_nodes() -> None:
    mixed = RACKS.replace(
        NODES, "nodes: [{gpu: A100, gpus: 4, other: 400W}, {count: 2, other: 300W, cpus: 64}]"
    )
    nodes = a_facility(HEAD + mixed).sites[0].racks[0].nodes
    assert [(node.name, node.gpus, node.device is None) for node in nodes] == [
        ("z/r1-n1", 4, False),
        ("z/r1-n2", 0, True),
        ("z/r1-n3", 0, True),
    ]


def test_pdus_hang_on_their_feed_and_come_after_it() -> None:
    text = HEAD + "    pdus: {p: {feed: b, rating: 10kW, overload: 1.5, overload_for: 30s}}\n" + RACKS
    supplies = a_facility(text).sites[0].supplies
    assert [(supply.name, supply.parent) for supply in supplies] == [
        ("z/a", None),
        ("z/b", None),
        ("z/p", "z/b"),
    ]
    assert (supplies[2].overload_factor, supplies[2].overload_seconds) == (1.5, 30.0)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ("", (0.05, 0.45, 0.35, 0.15)),
        (", shares: {control: 10%, training: 60%}", (0.1, 0.6, 0.15, 0.15)),
    ],
)
def test_every_traffic_class_has_a_share_of_a_link(shares: str, expected: tuple[float, ...]) -> None:
    text = a_second_site(HEAD + RACKS)
    text += f"links: [{{name: l, between: [z, y], bandwidth: 1Gbps, latency: 8ms{shares}}}]\n"
    (link,) = a_facility(text).links
    assert [link.shares[traffic] for traffic in TrafficClass] == pytest.approx(expected)
    assert (link.bits_per_second, link.latency_seconds) == (1e9, 0.008)


# ▸ marks the place that the fault is told at.
@pytest.mark.parametrize(
    ("old", "new", "field", "message", "allowed", "nearest"),
    [
        ("loop: crah", "loop: ▸crha", "racks.r1.loop", "no loop of this name", "crah", "crah"),
        ("power: [a]", "power: [▸c]", "racks.r1.power[0]", "no feed or pdu", "a, b", None),
        ("gpu: A100", "gpu: ▸A1000", "racks.r1.nodes.gpu", "no GPU", "V100, A100", "A100"),
        ("power: [a]", "power: ▸[a, a]", "racks.r1.power", "are the same", None, None),
        ("cap: 8kW", "redundant: ▸true, cap: 8kW", "racks.r1.redundant", "not redundant", None, None),
        ("cap: 8kW", "cap: ▸0W", "racks.r1.cap", "too small", "more than 0", None),
        ("cap: 8kW", "cap: ▸-8kW", "racks.r1.cap", "lies between 0", None, None),
        ("cap: 8kW", "cap: ▸8", "racks.r1.cap", "needs a unit", None, None),
        ("cap: 8kW", "cap: ▸1kW", "racks.r1.cap", "idle nodes draw 1.34 kW", None, None),
        ("a: {rating: 20kW}", "a: {rating: ▸1kW}", "feeds.a.rating", "idle racks draw 1.34 kW", None, None),
        ("capacity: 20kW", "capacity: ▸1kW", "loops.crah.capacity", "give off 1.34 kW", None, None),
        ("kind: air", "kind: ▸water", "loops.crah.kind", "not one of", "air, rear-door", None),
        ("{crah: {kind: air, capacity: 20kW, supply: 22C}}", "▸{}", "loops", "too few", "at least 1", None),
        ("    loops", "    ▸loop", "loop", "unknown field", "loops", "loops"),
        ("    region: eu\n    tariff", "    ▸tariff", "region", "required", None, None),
        (
            NODES,
            NODES.replace("gpus: 4", "gpus: 0").replace("{", "▸{"),
            "racks.r1.nodes",
            "gpus is 0 and gpu says A100: say at least 1",
            None,
            None,
        ),
        (NODES, NODES.replace("gpus: 4, ", "").replace("{", "▸{"), "racks.r1.nodes", "both gpu", None, None),
        ("{r1:", "{▸../r1:", "racks['../r1']", "a range is", None, None),
        ("{r1:", "{▸a:", "racks.a", "a feed of this site has this name", None, None),
        ("storage: {", "storage: {name: ▸crah, ", "storage.name", "a loop of this site has", None, None),
        ("energy: 0.1", "energy: ▸.nan", "tariff.energy", "finite", None, None),
        ("intensity: 45", "intensity: ▸-1", "carbon.intensity", "too small", "at least 0", None),
        ("    feeds", "    weather: ▸{}\n    feeds", "weather", "say one of them", None, None),
        (
            "    feeds",
            "    weather: ▸{series: w.json, normals: {january: 1C, july: 20C}}\n    feeds",
            "weather",
            "say one of them",
            None,
            None,
        ),
    ],
)
def test_a_wrong_facility_is_told_with_its_place_and_what_would_be_right(
    faults_in: Faulty,
    old: str,
    new: str,
    field: str,
    message: str,
    allowed: str | None,
    nearest: str | None,
) -> None:
    assert old in HEAD + RACKS
    text, place = unmarked((HEAD + RACKS).replace(old, new, 1))
    problems = faults_in(text, FacilityDocument)
    problem = next(each for each in problems if each.field == f"sites.z.{field}")
    assert (problem.line, problem.column) == place
    assert message in problem.message
    assert (allowed or "") in (problem.allowed or "")
    assert problem.nearest == nearest


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [("r2", "r1..r4", "r2"), ("r1..r4", "r4..r6", "r4"), ("r01..r02", "r1..r2", None)],
)
def test_two_racks_of_one_name_are_refused_also_when_ranges_overlap(
    faults_in: Faulty, first: str, second: str, name: str | None
) -> None:
    text = HEAD + f"    racks:\n      {first}: {RACK}\n      {second}: {RACK}\n"
    if name is None:
        assert len(a_facility(text).sites[0].racks) == 4
        return
    (problem,) = faults_in(text, FacilityDocument)
    assert (problem.line, problem.column, problem.field) == (12, 7, f"sites.z.racks['{second}']")
    assert problem.value == f"'{name}'"
    assert "a rack of this site has this name already" in problem.message


@pytest.mark.parametrize(
    ("link", "field", "message", "nearest"),
    [
        ("between: [z, ▸zz]", "between[1]", "no site of this name", "z"),
        ("between: ▸[z, z]", "between", "two different sites", None),
        ("between: ▸[z]", "between[1]", "required", None),
        ("between: [z, y], shares: ▸{control: 60%, training: 50%}", "shares", "add up to 100% at most", None),
        (
            "between: [z, y], shares: ▸{control: 50%, training: 50%}",
            "shares",
            "nothing for checkpoint, artifact",
            None,
        ),
        ("between: [z, y], shares: {▸contrl: 5%}", "shares.contrl", "not one of", "control"),
        ("between: [z, y], shares: {control: ▸0%}", "shares.control", "too small", None),
    ],
)
def test_a_link_that_leads_nowhere_or_shares_too_much_is_refused(
    faults_in: Faulty, link: str, field: str, message: str, nearest: str | None
) -> None:
    links = f"links: [{{name: l, bandwidth: 1Gbps, latency: 1ms, {link}}}]\n"
    text, place = unmarked(a_second_site(HEAD + RACKS) + links)
    (problem,) = faults_in(text, FacilityDocument)
    assert (problem.line, problem.column) == place
    assert problem.field == f"links[0].{field}"
    assert message in problem.message
    assert problem.nearest == nearest


def test_two_links_are_told_apart_by_name_and_by_the_sites_they_join(faults_in: Faulty) -> None:
    link = "{name: l, between: [z, y], bandwidth: 1Gbps, latency: 1ms}"
    back = "{name: l, between: [y, z], bandwidth: 1Gbps, latency: 1ms}"
    text = a_second_site(HEAD + RACKS) + f"links:\n  - {link}\n  - {back}\n"
    name, between = faults_in(text, FacilityDocument)
    assert (name.line, name.field) == (21, "links[1].name")
    assert (between.line, between.field) == (21, "links[1].between")


def test_real_heat_takes_its_time(faults_in: Faulty) -> None:
    text = HEAD + RACKS + "    telemetry: {source: nvml, time_scale: 20}\n"
    (problem,) = faults_in(text, FacilityDocument)
    assert (problem.line, problem.field) == (11, "sites.z.telemetry")
    assert a_facility(text.replace("nvml", "emulated")).sites[0].thermal_time_scale == 20


def test_a_facility_that_would_unroll_without_end_is_refused(faults_in: Faulty) -> None:
    text = (
        HEAD + "    racks: {r1..r9999: {cap: 8kW, power: [a], loop: crah, nodes: {count: 200, other: 0W}}}\n"
    )
    (problem,) = faults_in(text, FacilityDocument)
    assert (problem.field, problem.value, problem.allowed) == ("sites", "1,999,800", "at most 200,000")


def test_caps_may_be_below_what_the_nodes_could_draw() -> None:
    rack = a_facility(HEAD + RACKS.replace("8kW", "3kW")).sites[0].racks[0]
    assert rack.cap_watts < sum(node.nameplate_watts for node in rack.nodes)
