"""One suite that every actuator passes: a cap, its lifting, and limits that are as they were afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from building import a_device, a_facility, a_site
from metering import a_hall
from redfished import Controller, a_node, served
from wattline.actuators import Actuator, EmulatedActuator, SiteActuators
from wattline.actuators.node_caps import NodeCapActuator
from wattline.actuators.redfish import RedfishActuator
from wattline.errors import UnavailableError, UsageError
from wattline.telemetry import EmulatedFacility

NODE, OTHER = "zurich/r1-n1", "zurich/r1-n2"


@dataclass
class Hall:
    """An actuator of two nodes with two GPUs each, and how far a node is held back: 1 is not at all."""

    actuator: Actuator
    held_to: Callable[[str], float]
    is_real: bool = True


def emulated(stack: ExitStack, tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Hall:
    facility = EmulatedFacility(
        a_facility(a_site(gpus=2, telemetry="emulated", device=a_device())), (), 0, 0.0
    )
    begun: dict[str, str] = {}

    class Occupying(EmulatedActuator):
        """Who is on a node is the meters' business; here there are none."""

        def begin(self, attempt: str, nodes: object) -> None:
            assert isinstance(nodes, dict)
            facility.occupy(attempt, nodes, 1.0)
            begun.update(dict.fromkeys(nodes, attempt))

        def end(self, attempt: str) -> None:
            if attempt in begun.values():
                facility.release(attempt)
                for node in [node for node, one in begun.items() if one == attempt]:
                    del begun[node]

        def close(self) -> None:
            for attempt in set(begun.values()):
                self.end(attempt)

    def held_to(node: str) -> float:
        # Under half its limit a GPU runs at more than half its speed: what counts is that it does less.
        return facility.speed(begun[node]) if node in begun else 1.0

    return Hall(Occupying(facility), held_to, is_real=False)


def helper(stack: ExitStack, tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Hall:
    """A helper for each node, each with a driver and limits of its own."""
    launch = tmp_path / "launch"
    launch.write_text(
        f"#!/bin/sh\nmkdir -p {tmp_path}/$1/limits\n"
        f"export FAKE_NVML_LIMITS={tmp_path}/$1/limits FAKE_NVML_GPUS=8 LD_LIBRARY_PATH={driver}\n"
        f"exec {sys.executable} -m wattline.actuators.node {tmp_path}/$1/state.json\n"
    )
    launch.chmod(0o755)
    caps = {"by": "helper", "command": [str(launch), "{node}"], "timeout": "60s"}
    (site,) = a_hall({"source": "nvml"}, power_caps=caps).sites
    assert site.power_caps is not None

    def held_to(node: str) -> float:
        file = tmp_path / node.partition("/")[2] / "limits" / "0"
        return int(file.read_text()) / 400_000 if file.exists() else 1.0

    return Hall(NodeCapActuator(site, site.power_caps), held_to)


def redfish(is_new: bool) -> Callable[..., Hall]:
    def build(stack: ExitStack, tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Hall:
        controllers = {name: a_node(is_new=is_new) for name in (NODE, OTHER)}
        targets = {
            name.partition("/")[2]: stack.enter_context(served(one)) for name, one in controllers.items()
        }
        caps = {"by": "redfish", "targets": targets, "timeout": "30s"}
        (site,) = a_hall({"source": "nvml"}, power_caps=caps).sites
        assert site.power_caps is not None
        return Hall(RedfishActuator(site, site.power_caps), lambda node: _share(controllers[node], is_new))

    return build


def _share(controller: Controller, is_new: bool) -> float:
    if is_new:
        limit = controller.resources["/Chassis/1/EnvironmentMetrics"]["PowerLimitWatts"]
        watts = None if limit["ControlMode"] == "Disabled" else limit["SetPoint"]
    else:
        control = controller.resources["/Chassis/1/Power"]["PowerControl"][0]
        watts = control["PowerLimit"]["LimitInWatts"]
    return 1.0 if watts is None else (watts - 1000) / 1400  # two H100 and a kilowatt of other things


FACTORIES = {
    "emulated": emulated,
    "helper": helper,
    "redfish": redfish(True),
    "redfish-power": redfish(False),
}


@pytest.fixture(params=FACTORIES)
def hall(
    request: pytest.FixtureRequest, tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hall]:
    with ExitStack() as stack:
        hall = FACTORIES[request.param](stack, tmp_path, driver, monkeypatch)
        yield hall
        hall.actuator.close()


def test_a_cap_holds_its_nodes_back_and_no_others_until_it_is_lifted(hall: Hall) -> None:
    hall.actuator.begin("r/train/1", {NODE: 2})
    hall.actuator.set_power_cap("r/train/1", 0.5)
    assert hall.held_to(NODE) < 0.9
    assert hall.held_to(OTHER) == 1.0
    hall.actuator.set_power_cap("r/train/1", 1.0)
    assert hall.held_to(NODE) == 1.0


def test_the_same_cap_twice_is_the_same_and_a_lower_one_is_lower(hall: Hall) -> None:
    hall.actuator.begin("r/train/1", {NODE: 2, OTHER: 2})
    for _ in range(2):
        hall.actuator.set_power_cap("r/train/1", 0.7)
    once = hall.held_to(NODE)
    hall.actuator.set_power_cap("r/train/1", 0.5)
    assert hall.held_to(NODE) < once < 1.0
    assert hall.held_to(OTHER) == hall.held_to(NODE)


def test_when_an_attempt_ends_its_nodes_are_as_they_were(hall: Hall) -> None:
    hall.actuator.begin("r/train/1", {NODE: 2})
    hall.actuator.set_power_cap("r/train/1", 0.5)
    hall.actuator.end("r/train/1")
    assert hall.held_to(NODE) == 1.0
    hall.actuator.end("r/train/1")  # twice, and of who never began, is nothing
    hall.actuator.end("r/other/1")


def test_when_it_is_closed_all_nodes_are_as_they_were(hall: Hall) -> None:
    for attempt, node in (("r/a/1", NODE), ("r/b/1", OTHER)):
        hall.actuator.begin(attempt, {node: 2})
        hall.actuator.set_power_cap(attempt, 0.5)
    hall.actuator.close()
    assert (hall.held_to(NODE), hall.held_to(OTHER)) == (1.0, 1.0)


def test_an_attempt_that_never_began_is_an_error(hall: Hall) -> None:
    with pytest.raises(UsageError):
        hall.actuator.set_power_cap("gone/train/1", 0.5)


def test_it_says_what_it_turns(hall: Hall) -> None:
    assert hall.actuator.kinds == {"cap_power"}
    assert hall.actuator.is_slow is hall.is_real


def test_a_part_of_a_node_is_not_capped_where_that_would_cap_others(hall: Hall) -> None:
    hall.actuator.begin("r/train/1", {NODE: 1})
    if not hall.is_real:  # emulated GPUs know whose they are
        hall.actuator.set_power_cap("r/train/1", 0.5)
        assert hall.held_to(NODE) < 1.0
        return
    with pytest.raises(UnavailableError, match="1 of the 2 GPUs of zurich/r1-n1"):
        hall.actuator.set_power_cap("r/train/1", 0.5)
    assert hall.held_to(NODE) == 1.0


def test_a_controller_that_does_not_keep_a_limit_is_found_out_and_nobody_stays_capped(tmp_path: Path) -> None:
    good, deaf = a_node(limit=3000.0), a_node()
    deaf.heeds = False
    with served(good) as one, served(deaf) as other:
        caps = {"by": "redfish", "targets": {"r1-n1": one, "r1-n2": other}, "timeout": "30s"}
        (site,) = a_hall({"source": "nvml"}, power_caps=caps).sites
        assert site.power_caps is not None
        actuator = RedfishActuator(site, site.power_caps)
        actuator.begin("r/train/1", {NODE: 2, OTHER: 2})
        with pytest.raises(UnavailableError, match="asked for 1700 W, and it has no limit"):
            actuator.set_power_cap("r/train/1", 0.5)
        limit = good.resources["/Chassis/1/EnvironmentMetrics"]["PowerLimitWatts"]
        assert limit == {"SetPoint": 3000, "ControlMode": "Automatic"}  # as its operator had set it
        actuator.close()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/does/not/exist"], "its helper does not start: /does/not/exist: No such file"),
        (["sh", "-c", "exit 1"], "its helper does not answer"),
        (["sh", "-c", "read line; echo nonsense; cat"], "its helper does not answer"),
        (["sh", "-c", "read line; echo '[]'; cat"], "its helper said no"),
        (["sh", "-c", 'read line; echo \'{"ok": false, "error": "not today"}\'; cat'], "not today"),
        (["sh", "-c", "cat > /dev/null"], "its helper does not answer: timed out"),
        (["yes"], "its helper does not answer"),
    ],
)
def test_a_helper_that_is_none_is_said_in_time(command: list[str], words: str) -> None:
    caps = {"by": "helper", "command": command, "timeout": "2s"}
    (site,) = a_hall({"source": "nvml"}, power_caps=caps).sites
    assert site.power_caps is not None
    actuator = NodeCapActuator(site, site.power_caps)
    actuator.begin("r/train/1", {NODE: 2})
    with pytest.raises(UnavailableError) as caught:
        actuator.set_power_cap("r/train/1", 0.5)
    assert words in caught.value.message
    actuator.close()


def test_each_site_has_its_own_and_one_without_caps_nobody(tmp_path: Path) -> None:
    (site,) = a_hall({"source": "nvml"}).sites
    emulated_site = a_site("paris", gpus=2, telemetry="emulated")
    facility = a_facility(site, emulated_site)
    within = EmulatedFacility(facility, (), 0, 0.0)
    actuator = SiteActuators(facility, within)
    actuator.begin("r/here/1", {NODE: 2})
    actuator.set_power_cap("r/here/1", 1.0)  # which it is anyway
    with pytest.raises(UnavailableError, match="nothing at zurich sets power limits"):
        actuator.set_power_cap("r/here/1", 0.5)
    within.occupy("r/there/1", {"paris/r1-n1": 2}, 1.0)
    actuator.begin("r/there/1", {"paris/r1-n1": 2})
    actuator.set_power_cap("r/there/1", 0.5)
    assert within.speed("r/there/1") < 1.0
    assert not actuator.is_slow
    actuator.close()
