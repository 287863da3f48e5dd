"""Redfish: nodes, PDUs and cooling units are read by their links; leaks and odd controllers are said."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metering import a_hall, reply, serving, wait_until
from redfished import Controller, a_cdu, a_node, a_pdu, link, served
from wattline.telemetry.asking import MeterError
from wattline.telemetry.redfish import RedfishSource

LEAK = "/ThermalEquipment/CDUs/1/LeakDetection/LeakDetectors/tray"


def a_source(targets: dict[str, str], **fields: Any) -> RedfishSource:
    (site,) = a_hall({"source": "redfish", "targets": targets, "timeout": "10s", **fields}).sites
    return RedfishSource(site, site.sources[0])


def read(source: RedfishSource) -> dict[tuple[str, str], float]:
    found = source.read(time.time())
    assert all(one.source == "redfish" for one in found)
    return {(one.subject, one.quantity): one.value for one in found}


@pytest.fixture
def sushy(tmp_path: Path) -> Iterator[str]:
    """The emulator of OpenStack's sushy-tools, with its imaginary chassis."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "sushy.conf"
    config.write_text(
        f"SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n"
        "SUSHY_EMULATOR_FAKE_DRIVER = True\n"
    )
    command = [str(Path(sys.executable).with_name("sushy-emulator")), "--fake", "--config", str(config)]
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
    try:

        def is_up() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", port)) == 0

        wait_until(is_up, seconds=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()


def test_the_emulator_of_sushy_tools_is_read_by_its_links(sushy: str) -> None:
    """Its chassis tells the temperature of its intake, and no power."""
    source = a_source({"r1-n1": sushy})
    assert read(source) == {("zurich/r1-n1", "inlet_celsius"): 25.0}
    source.close()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_node_of_either_generation_tells_its_power(is_new: bool) -> None:
    with served(a_node(is_new=is_new)) as url:
        source = a_source({"r1-n1": url})
        assert read(source) == {("zurich/r1-n1", "node_watts"): 2400.0}
        source.close()


def test_a_cooling_unit_tells_both_its_sides_and_what_it_takes_away() -> None:
    with served(a_cdu()) as url:
        source = a_source({"cdu-1": url})
        assert read(source) == {
            ("zurich/cdu-1", "supply_celsius"): 28.0,
            ("zurich/cdu-1", "coolant_celsius"): 33.0,  # the warmer of the two
            ("zurich/cdu-1", "flow_fraction"): 0.6,  # 120 of 200 L/min
            ("zurich/cdu-1", "loop_heat_watts"): 45_000.0,
        }
        source.close()


def test_heat_follows_from_flow_and_temperatures_where_nobody_says_it() -> None:
    with served(a_cdu(says_heat=False)) as url:
        source = a_source({"cdu-1": url})
        told = read(source)["zurich/cdu-1", "loop_heat_watts"]
        assert told == pytest.approx(2 * 60 / 60 * 4180 * 5)  # two times a litre a second, by 5 K
        source.close()


def test_a_sum_of_which_a_part_is_missing_is_not_told() -> None:
    cdu = a_cdu()
    del cdu.resources["/ThermalEquipment/CDUs/1/SecondaryCoolantConnectors/2"]["HeatRemovedkW"]
    del cdu.resources["/ThermalEquipment/CDUs/1/SecondaryCoolantConnectors/2"]["DeltaTemperatureCelsius"]
    with served(cdu) as url:
        source = a_source({"cdu-1": url})
        assert ("zurich/cdu-1", "loop_heat_watts") not in read(source)
        source.close()


def test_a_leak_is_said_when_it_is_found_and_when_it_has_gone() -> None:
    cdu = a_cdu()
    with served(cdu) as url:
        source = a_source({"cdu-1": url})
        said = []
        for state in ("OK", "Critical", "Critical", "OK"):
            cdu.resources[LEAK]["DetectorState"] = state
            read(source)
            said += [(remark.subject, remark.say) for remark in source.remarks.take()]
        assert said == [
            ("zurich/cdu-1", "leak detector drip tray says Critical"),
            ("zurich/cdu-1", "its leak detectors say that all is well again"),
        ]
        source.close()


def test_a_pdu_is_a_racks_or_a_supplys() -> None:
    with served(a_pdu()) as url:
        source = a_source({"r1": url, "feed-a": url})
        assert read(source) == {
            ("zurich/r1", "rack_watts"): 9000.0,
            ("zurich/feed-a", "supply_watts"): 9000.0,
        }
        source.close()


def test_a_controller_that_is_away_is_said_once_and_does_not_hide_the_others() -> None:
    with served(a_pdu()) as url:
        source = a_source({"r1": url, "r2": "http://127.0.0.1:9"})
        for _ in range(3):
            assert read(source) == {("zurich/r1", "rack_watts"): 9000.0}
        (remark,) = source.remarks.take()
        assert remark.subject == "zurich/r2"
        assert "no answer: Connection refused" in remark.say
        source.close()


def _endless() -> Controller:
    controller = a_node()
    controller.put("/Chassis", Members=[link("/Chassis/1")] * 100_000)
    return controller


def _leading_out() -> Controller:
    controller = a_node()
    controller.put("", Chassis={"@odata.id": "http://elsewhere/redfish/v1/Chassis"})
    return controller


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (_endless(), "larger than"),
        (_leading_out(), "a link leads out of /redfish/v1"),
        (Controller(), "tells neither power nor temperature"),
    ],
)
def test_an_odd_controller_is_refused_in_words(controller: Controller, words: str) -> None:
    with served(controller) as url:
        source = a_source({"r1-n1": url})
        with pytest.raises(MeterError, match=words):
            source.read(time.time())
        source.close()


@pytest.mark.parametrize("body", [b"[]", b"{", b"null", b"[" * 100_000])
def test_what_is_no_resource_is_refused(body: bytes) -> None:
    with serving(lambda request: reply(request, body)) as url:
        source = a_source({"r1-n1": url})
        with pytest.raises(MeterError, match="no Redfish resource"):
            source.read(time.time())
        source.close()
