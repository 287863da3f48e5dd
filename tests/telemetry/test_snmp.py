"""SNMP: a simulated agent is read over versions 2c and 3; what it does not have, and who is away, is said."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metering import a_hall, wait_until
from wattline.telemetry.asking import MeterError
from wattline.telemetry.snmp import SnmpSource

RACK, SUPPLY, TEXT, WORDS = (f"1.3.6.1.4.1.318.1.1.26.4.3.1.{last}" for last in (5, 6, 7, 8))
# OID, type (Gauge32 or text) and value, in order.
RECORDED = f"{RACK}|66|450\n{SUPPLY}|66|9000\n{TEXT}|4|21.5\n{WORDS}|4|warm\n"
ALL = {"rack_watts": {"oid": RACK, "scale": 10}, "supply_watts": {"oid": SUPPLY}}


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("snmp")
    (folder / "data").mkdir()
    (folder / "data" / "public.snmprec").write_text(RECORDED)
    address = f"127.0.0.1:{free_port()}"
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("snmpsim-command-responder")),
                f"--data-dir={folder}/data",
                f"--cache-dir={folder}/cache",
                f"--agent-udpv4-endpoint={address}",
                "--process-user=root",
                "--process-group=root",
                "--v3-user=wattline",
                "--v3-auth-key=authenticate",
                "--v3-auth-proto=SHA",
                "--v3-priv-key=keepprivate",
                "--v3-priv-proto=AES",
            ],
            stdout=file,
            stderr=file,
        )
    try:
        wait_until(lambda: "Listening" in log.read_text(), seconds=60)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


OPEN: list[SnmpSource] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def a_source(targets: dict[str, str], series: dict[str, Any] = ALL, **fields: Any) -> SnmpSource:
    known = {"source": "snmp", "targets": targets, "series": series, "timeout": "10s", **fields}
    (site,) = a_hall(known).sites
    OPEN.append(SnmpSource(site, site.sources[0]))
    return OPEN[-1]


def read(source: SnmpSource) -> dict[tuple[str, str], float]:
    return {(one.subject, one.quantity): one.value for one in source.read(time.time())}


@pytest.mark.needs("root")
@pytest.mark.parametrize("secret", ["", "public", "wattline:authenticate:keepprivate"])
def test_each_thing_is_asked_for_what_fits_its_kind(
    agent: str, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {}
    if ":" in secret:  # the simulator keeps its recordings by context; a PDU has one, without a name
        monkeypatch.setattr("wattline.telemetry.snmp._CONTEXT", b"public")
    if secret:
        (tmp_path / "secret").write_text(secret)
        fields["secret_file"] = str(tmp_path / "secret")
    source = a_source({"r1": agent, "feed-a": agent}, **fields)
    assert read(source) == {("zurich/r1", "rack_watts"): 4500.0, ("zurich/feed-a", "supply_watts"): 9000.0}
    assert source.remarks.take() == []


@pytest.mark.needs("root")
def test_text_that_is_a_number_counts_and_other_text_is_not_believed(agent: str) -> None:
    series = {"coolant_celsius": {"oid": TEXT}, "supply_celsius": {"oid": WORDS}}
    source = a_source({"cdu-1": agent}, series)
    assert read(source) == {("zurich/cdu-1", "coolant_celsius"): 21.5}
    words = " ".join(remark.say for remark in source.remarks.take())
    assert "is not believed of zurich/cdu-1" in words
    assert "no supply_celsius of zurich/cdu-1" in words


@pytest.mark.needs("root")
@pytest.mark.parametrize("scale", [0.01, 1000])
def test_a_unit_that_is_not_what_was_said_is_seen_by_what_a_rack_can_draw(agent: str, scale: float) -> None:
    source = a_source({"r1": agent}, {"rack_watts": {"oid": RACK, "scale": scale}})
    assert read(source) == {}
    words = " ".join(remark.say for remark in source.remarks.take())
    assert "is not believed of zurich/r1" in words


@pytest.mark.needs("root")
def test_what_an_agent_does_not_have_is_said_once(agent: str) -> None:
    source = a_source({"r1": agent}, {"rack_watts": {"oid": "1.3.6.1.4.1.318.9.9"}})
    assert read(source) == {}
    assert [remark.say for remark in source.remarks.take()] == [
        "no rack_watts of zurich/r1: is the meter up?"
    ]
    assert read(source) == {}
    assert source.remarks.take() == []


@pytest.mark.needs("root")
def test_an_agent_that_is_away_is_said_and_does_not_hide_the_others(agent: str) -> None:
    source = a_source({"r1": agent, "r2": f"127.0.0.1:{free_port()}"}, timeout="2s")
    assert read(source) == {("zurich/r1", "rack_watts"): 4500.0}
    assert any("no answer over SNMP" in remark.say for remark in source.remarks.take())


def test_where_no_agent_answers_the_source_is_away() -> None:
    with pytest.raises(MeterError, match="no answer over SNMP"):
        a_source({"r1": f"127.0.0.1:{free_port()}"}, timeout="1s").read(time.time())


def test_a_secret_of_version_3_that_cannot_be_one_is_refused_without_being_said(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("me:short:keepprivate")
    source = a_source({"r1": "127.0.0.1:9"}, secret_file=str(tmp_path / "secret"))
    with pytest.raises(MeterError) as caught:
        source.read(time.time())
    assert "8 characters or more" in caught.value.message
    assert "short:" not in caught.value.message
