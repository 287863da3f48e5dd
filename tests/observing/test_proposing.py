"""A proposed facility always passes the checks of a document, whatever the cluster is called."""

from pathlib import Path

import pytest

from wattline.errors import DocumentError
from wattline.observing.machines import Machine
from wattline.observing.proposing import Known, Proposal, propose
from wattline.observing.racks import Standing, read_racks


def a_machine(name: str, gpus: int = 8, model: str = "h100") -> Machine:
    return Machine(name=name, gpus=gpus, model=model, cpus=64, state="IDLE", partitions=("main",))


def proposed(*machines: Machine, **known: object) -> Proposal | None:
    fields: dict[str, object] = {"cluster": "hall", "models": {}, "standings": {}, "switches": {}} | known
    return propose(Known(machines={one.name: one for one in machines}, **fields))  # type: ignore[arg-type]


def test_nodes_under_one_switch_are_guessed_to_share_a_rack() -> None:
    found = proposed(
        a_machine("n1"), a_machine("n10"), a_machine("n2"), switches={"n1": "leaf1", "n2": "leaf1"}
    )
    assert found is not None
    racks = {rack.name: len(rack.nodes) for site in found.facility.sites for rack in site.racks}
    assert racks == {"hall/leaf1": 2, "hall/rack-not-known": 1}
    assert "# a guess: one switch" in found.text
    assert any("share a rack" in what for what in found.assumed)
    assert list(found.hosts.values()) == ["n1", "n2", "n10"]


@pytest.mark.parametrize(
    "names", [("n1",), ("n8", "n9", "n10"), ("n01", "n02"), ("n1", "n3"), ("n9", "n10x")]
)
def test_work_begins_on_the_nodes_that_slurm_knows(names: tuple[str, ...]) -> None:
    """Without the engine a server would run jobs as processes of its own, whatever machine it stands on."""
    found = proposed(*(a_machine(name) for name in names))
    assert found is not None
    (site,) = found.facility.sites
    assert site.engine == "slurm"
    assert [node.hostname for rack in site.racks for node in rack.nodes] == list(names)
    assert found.hosts == {node.name: node.host for rack in site.racks for node in rack.nodes}


def test_a_table_says_where_nodes_stand(tmp_path: Path) -> None:
    table = tmp_path / "racks.csv"
    table.write_text(
        "node,rack,pdu,loop,row,site,cap\nn[1-2],r1,p1+p2,cdu,7,north,20kW\nn3,r2,p1,cdu,7,south,\n"
    )
    standings = read_racks(table)
    found = proposed(a_machine("n1"), a_machine("n2"), a_machine("n3"), standings=standings)
    assert found is not None
    north, south = found.facility.sites
    assert (north.name, south.name) == ("north", "south")
    (rack,) = north.racks
    assert (rack.cap_watts, rack.supplies, rack.redundant) == (20_000, ("north/p1", "north/p2"), True)
    assert "which nodes share a rack" not in " ".join(found.assumed)


def test_gpus_that_nobody_can_name_are_left_out_and_named() -> None:
    found = proposed(a_machine("n1"), a_machine("n2", model=""), a_machine("login", gpus=0))
    assert found is not None
    assert found.left_out == ("n2",)
    assert found.facility.gpus == 8
    assert proposed(a_machine("n2", model="")) is None
    told = proposed(a_machine("n2", model=""), models={"n2": "NVIDIA A100-SXM4-40GB"})
    assert told is not None
    said = proposed(a_machine("n2", model=""), gpu="B200")
    assert said is not None
    assert "gpu: B200" in said.text


@pytest.mark.parametrize("name", ["a b", "..", "x" * 200, "ünï", "a\nb: c", '"', "{}", "-"])
def test_odd_names_still_make_a_document_that_is_right(name: str) -> None:
    found = proposed(a_machine("n1"), cluster=name, switches={"n1": name}, prometheus="http://prom:9090")
    assert found is not None
    assert found.facility.gpus == 8


def test_a_wrong_table_names_every_line(tmp_path: Path) -> None:
    table = tmp_path / "racks.csv"
    table.write_text("node,rack,cap\nn1,r1,lots\nn2,r 1,\nn1,r1\nn3,r1,\nn3,r2,\n")
    with pytest.raises(DocumentError) as raised:
        read_racks(table)
    assert [problem.line for problem in raised.value.problems] == [2, 3, 4, 6]
    table.write_text("host,rack,shelf\n")
    with pytest.raises(DocumentError, match="node: this column is missing"):
        read_racks(table)


def test_lines_of_one_rack_complete_each_other_and_may_not_contradict(tmp_path: Path) -> None:
    table = tmp_path / "racks.csv"
    table.write_text("node,rack,loop,cap\nn1,r1,,\nn2,r1,cdu-1,12kW\n")
    assert read_racks(table)["n1"] == Standing(rack="r1", loop="cdu-1", cap_watts=12_000.0)
    table.write_text("node,rack,loop,cap\nn1,r1,,10kW\nn2,r1,cdu-1,12kW\n")
    with pytest.raises(DocumentError, match="another cap of rack r1"):
        read_racks(table)


def test_a_standing_without_anything_but_a_rack_will_do() -> None:
    found = proposed(a_machine("n1"), standings={"n1": Standing(rack="r1")})
    assert found is not None
    assert "power: [feed-1]" in found.text
