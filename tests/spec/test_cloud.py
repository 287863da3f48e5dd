"""A cloud region in a facility document: what it says, and what it must not."""

from __future__ import annotations

import pytest

from wattline.errors import DocumentError
from wattline.facility import Facility
from wattline.spec import FacilityDocument, parse_document, read_facility
from wattline.spec.facility_build import build_facility
from wattline.spec.facility_write import write_facility

HALL = """facility: small
sites:
  zurich:
    region: eu
    tariff: {energy: 0.14}
    carbon: {zone: CH, intensity: 45}
    feeds: {a: {rating: 25kW}}
    loops: {crah: {kind: air, capacity: 16kW, supply: 22C}}
    racks: {r1: {cap: 9kW, power: [a], loop: crah, nodes: {gpu: A100, gpus: 8, other: 1.5kW}}}
    storage: {throughput: 2GB/s}
"""
LINKS = "links: [{name: wan, between: [zurich, far], bandwidth: 10Gbps, latency: 20ms%s}]\n"
SPOT = "instance: {gpu: A100, gpus: 8}, max_gpus: 32, spot: {price: 2.1, reclaim: 0.01}"


def read(cloud: str, *, links: str = LINKS % "", rest: str = "") -> Facility:
    region = f"  far:\n    region: eu\n    cloud: {{{cloud}}}\n{rest}"
    document = parse_document((HALL + region + links).encode(), FacilityDocument, file="f.yaml")
    return build_facility(document)


def told(cloud: str, *, links: str = LINKS % "", rest: str = "") -> str:
    with pytest.raises(DocumentError) as caught:
        read(cloud, links=links, rest=rest)
    return str(caught.value)


def test_machines_are_as_many_as_may_be_rented_at_the_spot_price() -> None:
    facility = read(f"{SPOT}, price: 4.1, egress: 0.09")
    far = facility.sites[1]
    assert far.cloud is not None
    assert (len(far.racks[0].nodes), far.cloud.max_gpus) == (4, 32)
    assert (far.cloud.usd_per_gpu_hour, far.cloud.most_usd_per_gpu_hour) == (2.1, 4.1)
    assert (far.cloud.notice_seconds, far.cloud.usd_per_gigabyte_out) == (120.0, 0.09)
    assert (far.usd_per_kwh, far.telemetry, far.grams_co2_per_kwh) == (0.0, "none", 0.0)
    assert far.racks[0].nodes[0].device is not None
    assert far.racks[0].nodes[0].device.usd_per_hour == 2.1
    assert facility.gpus == 8


def test_on_demand_nothing_is_taken_back() -> None:
    far = read("instance: {gpu: A100, gpus: 8}, max_gpus: 8, price: 4.1").sites[1]
    assert far.cloud is not None
    assert (far.cloud.usd_per_gpu_hour, far.cloud.reclaims_per_gpu_hour) == (4.1, 0.0)


@pytest.mark.parametrize(
    ("cloud", "rest", "expected"),
    [
        ("instance: {gpu: A100, gpus: 8}, max_gpus: 8", "", "sites.far.cloud: say what a GPU-hour costs"),
        (f"{SPOT}, price: 2.0", "", "sites.far.cloud.spot.price: spot costs more than the same machine"),
        (SPOT.replace("32", "30"), "", "sites.far.cloud.max_gpus: machines are rented whole, got 30"),
        (SPOT.replace("A100", "A10"), "", "sites.far.cloud.instance.gpu: there is no GPU of this name"),
        (SPOT.replace("0.01", "-1"), "", "sites.far.cloud.spot.reclaim: this is too small"),
        (SPOT, "    feeds: {a: {rating: 1kW}}\n", "sites.far.feeds: unknown field"),
        (SPOT, "    tariff: {energy: 0.1}\n", "sites.far.tariff: unknown field"),
        (SPOT.replace("spot:", "sport:"), "", "did you mean 'spot'?"),
    ],
)
def test_what_contradicts_itself_is_told_where_it_stands(cloud: str, rest: str, expected: str) -> None:
    assert expected in told(cloud, rest=rest)


def test_a_region_without_a_link_could_give_nothing_back() -> None:
    assert "no link leads to this region" in told(SPOT, links="")


def test_leaving_is_paid_once() -> None:
    assert "say egress once" in told(f"{SPOT}, egress: 0.09", links=LINKS % ", egress: 0.02")


def test_a_hall_still_says_what_it_lacks() -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(b"facility: x\nsites: {a: {region: eu}}\n", FacilityDocument, file="f.yaml")
    assert "sites.a.feeds: this field is required" in str(caught.value)
    assert "[hall]" not in str(caught.value)


@pytest.mark.parametrize(
    "cloud",
    [
        SPOT,
        f"{SPOT}, price: 4.1, egress: 0.09",
        "instance: {gpu: A100, gpus: 8, other: 1kW}, max_gpus: 8, price: 4.1",
        SPOT.replace("reclaim: 0.01", "reclaim: 0, varies: 10%, series: spot.csv, back_after: 10min"),
    ],
)
def test_a_region_can_be_written_and_read_again(cloud: str) -> None:
    facility = read(cloud, rest="    carbon: {zone: IE, intensity: 290}\n")
    again = build_facility(FacilityDocument.model_validate(write_facility(facility)))
    assert again == facility


def test_the_example_with_a_region_is_the_three_sites_and_one_more() -> None:
    with_cloud, without = read_facility("three-sites-and-cloud"), read_facility("three-sites")
    assert with_cloud.sites[:-1] == without.sites
    assert with_cloud.gpus == without.gpus
    assert with_cloud.sites[-1].cloud is not None
