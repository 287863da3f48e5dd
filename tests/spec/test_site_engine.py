"""Which engine runs a site's work, and what it calls the site's nodes."""

from __future__ import annotations

from typing import Any

import pytest

from wattline.errors import DocumentError
from wattline.facility import Facility
from wattline.spec import FacilityDocument, build_facility, parse_document
from wattline.spec.facility_write import write_facility

TEXT = """\
facility: f
sites:
  z:
    region: eu
    tariff: {energy: 0.1}
    carbon: {zone: CH, intensity: 45}
    feeds: {a: {rating: 200kW}}
    loops: {crah: {kind: air, capacity: 200kW, supply: 22C}}
    storage: {throughput: 1GB/s}
    racks: {RACKS}
    ENGINE
"""
_RACK = "{cap: 8kW, power: [a], loop: crah, nodes: {gpu: A100, gpus: 4, other: 400W, NODES}}"


def a_facility(racks: dict[str, str], engine: str = "engine: slurm") -> Facility:
    written = ", ".join(f"{name}: {_RACK.replace('NODES', nodes)}" for name, nodes in racks.items())
    text = TEXT.replace("RACKS", written).replace("ENGINE", engine)
    return build_facility(parse_document(text.encode(), FacilityDocument, file="f.yaml"), source="f.yaml")


def test_a_node_is_called_as_its_document_says_or_by_the_end_of_its_name() -> None:
    facility = a_facility({"r1": "count: 3, hosts: [gpu01..gpu02, spare]", "r2": "count: 2"})
    nodes = [node for rack in facility.sites[0].racks for node in rack.nodes]
    assert [node.hostname for node in nodes] == ["gpu01", "gpu02", "spare", "r2-n1", "r2-n2"]


def test_what_a_site_says_of_its_slurm_is_kept_and_written_again() -> None:
    power = "power_license: kw, watts_per_license: 500W"
    slurm = f"{{partition: gpu, user: submitter, {power}, sbatch: [--qos=high]}}"
    facility = a_facility({"r1": "count: 2, hosts: n1..n2"}, f"engine: slurm\n    slurm: {slurm}")
    site = facility.sites[0]
    assert (site.engine, site.slurm.partition, site.slurm.watts_per_license) == ("slurm", "gpu", 500.0)
    assert (site.slurm.user, site.slurm.sbatch) == ("submitter", ("--qos=high",))
    document: dict[str, Any] = write_facility(facility)
    assert build_facility(FacilityDocument.model_validate(document)) == facility


@pytest.mark.parametrize(
    "rest",
    [
        "{url: 'https://slurm.example/rest/', user: wattline, token_file: /etc/wattline/slurm.token}",
        "{socket: /run/slurmrestd.socket, timeout: 5s, job: {qos: high, nice: 3, spread_job: true}}",
    ],
)
def test_how_slurmrestd_is_asked_is_kept_and_written_again(rest: str) -> None:
    facility = a_facility({"r1": "count: 1"}, f"engine: slurm\n    slurm: {{rest: {rest}}}")
    found = facility.sites[0].slurm.rest
    assert found is not None
    if found.url:
        assert (found.url, found.user) == ("https://slurm.example/rest", "wattline")
        assert (found.token_file, found.timeout_seconds) == ("/etc/wattline/slurm.token", 15.0)
    else:
        assert (found.socket, found.timeout_seconds) == ("/run/slurmrestd.socket", 5.0)
        assert dict(found.job) == {"qos": "high", "nice": 3, "spread_job": True}
    document: dict[str, Any] = write_facility(facility)
    assert build_facility(FacilityDocument.model_validate(document)) == facility


def test_a_site_may_be_left_to_its_agent_alone() -> None:
    facility = a_facility({"r1": "count: 1"}, "engine: slurm\n    agent: true")
    assert facility.sites[0].agent
    assert not a_facility({"r1": "count: 1"}).sites[0].agent
    document: dict[str, Any] = write_facility(facility)
    assert build_facility(FacilityDocument.model_validate(document)) == facility


_URL = "url: 'http://s:6820', token_file: /t"


@pytest.mark.parametrize(
    ("racks", "engine", "said"),
    [
        ({"r1": "count: 3, hosts: n1..n2"}, "engine: slurm", "hosts names 2 machines and count says 3"),
        ({"r1": "hosts: n1", "r2": "hosts: n1"}, "engine: slurm", "a host stands for one node"),
        ({"r1..r2": "hosts: n1"}, "engine: slurm", "write racks one by one where they name hosts"),
        ({"r1": "hosts: -n1"}, "engine: slurm", "a name is 1 to 64 letters"),
        ({"r1": "count: 1"}, "engine: lsf", "slurm"),
        ({"r1": "count: 1"}, "slurm: {sbatch: [--nodelist=n1]}", "Wattline sets this option itself"),
        ({"r1": "count: 1"}, "slurm: {sbatch: [-w n1]}", "an option of sbatch is written in full"),
        ({"r1": "count: 1"}, "slurm: {python: bin/python}", "by its whole path on the nodes"),
        ({"r1": "count: 1"}, "slurm: {rest: {}}", "by its url or by its socket: say one of them"),
        ({"r1": "count: 1"}, f"slurm: {{rest: {{{_URL}, socket: /s}}}}", "say one of them"),
        ({"r1": "count: 1"}, "slurm: {rest: {url: 'http://s:6820'}}", "wants a token: say token_file"),
        ({"r1": "count: 1"}, "slurm: {rest: {socket: /s, token_file: /t}}", "leave user and token_file out"),
        ({"r1": "count: 1"}, "slurm: {rest: {url: 'http://u:p@s', token_file: /t}}", "no user, password"),
        ({"r1": "count: 1"}, f"slurm: {{rest: {{{_URL}, job: {{nodelist: n1}}}}}}", "sets this property"),
        ({"r1": "count: 1"}, f"slurm: {{rest: {{{_URL}, job: {{QoS: 1}}}}}}", "as slurmrestd writes it"),
        ({"r1": "count: 1"}, f"slurm: {{rest: {{{_URL}}}, sbatch: [--qos=a]}}", "knows no options of sbatch"),
        ({"r1": "count: 1"}, "slurm: {rest: {socket: /s}, user: submitter}", "all jobs are of who asks"),
    ],
)
def test_what_contradicts_itself_is_refused(racks: dict[str, str], engine: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        a_facility(racks, engine)
