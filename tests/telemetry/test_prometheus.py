"""Prometheus: a real one is read with the time of each sample; an odd one is refused in words, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from metering import Exporter, a_hall, a_prometheus, matrix, reply, serving, wait_until
from wattline.telemetry.asking import MeterError
from wattline.telemetry.prometheus import PrometheusSource
from wattline.telemetry.reading import Reading

NODE = "zurich/r1-n1"
NOW = 1_800_000_000.0


def a_source(url: str = "http://nowhere:9", **fields: Any) -> PrometheusSource:
    (site,) = a_hall({"source": "prometheus", "url": url, **fields}).sites
    return PrometheusSource(site, site.sources[0])


def said(source: PrometheusSource) -> str:
    return "\n".join(f"{remark.subject}: {remark.say}" for remark in source.remarks.take())


def by_key(readings: list[Reading]) -> dict[tuple[str, str], float]:
    return {(reading.subject, reading.quantity): reading.value for reading in readings}


def gpu(value: str, at: float = NOW - 1, host: str = "r1-n1", number: str = "0") -> Any:
    return ({"Hostname": host, "gpu": number, "job": "dcgm"}, [(at - 10, "1"), (at, value)])


def taken(
    source: PrometheusSource, body: bytes, quantity: str = "gpu_watts", now: float = NOW
) -> list[Reading]:
    (series,) = [series for series in source._source.series if series.quantity == quantity]
    return source.take(series, body, now)


@pytest.mark.needs("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_a_real_prometheus_gives_readings_as_of_their_scrape(tmp_path: Path) -> None:
    exporter = Exporter()
    for host, rack in (("dgx-1", "r1"), ("dgx-2", "r1"), ("dgx-3.hall.example", "r2"), ("dgx-4", "r2")):
        exporter.lines[f'pdu_kilowatts{{rack="{rack}"}}'] = 4.5
        for number in range(2):
            exporter.gpu("DCGM_FI_DEV_POWER_USAGE", host, number, 300 + number)
            exporter.gpu("DCGM_FI_DEV_GPU_TEMP", host, number, 60)
            exporter.gpu("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", host, number, 1e6)
    exporter.lines['cdu_flow_lpm{cdu="cdu-1"}'] = 150
    fields = {
        "names": {"dgx-1..dgx-2": "r1-n1..r1-n2", "dgx-3..dgx-4": "r2-n1..r2-n2"},
        "series": {
            "rack_watts": {"query": "pdu_kilowatts", "unit": "kW"},
            "supply_watts": {
                "query": 'label_replace(sum(pdu_kilowatts), "supply", "feed-a", "", "")',
                "unit": "kW",
            },
            "flow_litres_per_minute": {"query": "cdu_flow_lpm", "label": "cdu"},
        },
    }
    with (
        serving(lambda request: reply(request, exporter.text(), kind="text/plain")) as target,
        a_prometheus(tmp_path, target) as url,
    ):
        source = a_source(url, **fields)
        wait_until(lambda: len(source.read(time.time())) >= 8 + 8 + 8 + 2 + 1 + 1)
        readings = source.read(time.time())
        told = by_key(readings)
        assert told["zurich/r2-n1/gpu1", "gpu_watts"] == 301
        assert told["zurich/r1", "rack_watts"] == 4500
        assert told["zurich/feed-a", "supply_watts"] == 9000
        assert told["zurich/cdu-1", "flow_fraction"] == 0.75
        assert all(0 <= time.time() - reading.at < 20 for reading in readings)
        words = said(source)
        assert "nothing answers to gpu_power_violation_seconds (DCGM_FI_DEV_POWER_VIOLATION)" in words
        assert "its exporter does not tell who is held back by a power limit" in words
        # The exporter stops telling of a host: its samples grow old, though we ask anew.
        asked = len([one for one in readings if one.quantity == "gpu_celsius"])
        for series in [series for series in exporter.lines if "dgx-4" in series]:
            del exporter.lines[series]
        wait_until(lambda: max(ages(source, "zurich/r2-n2")) > 2.5)
        assert max(ages(source, "zurich/r2-n1")) < 2.5
        assert asked == 8
        source.close()


def ages(source: PrometheusSource, node: str) -> list[float]:
    now = time.time()
    return [now - one.at for one in source.read(now) if one.subject.startswith(f"{node}/")] or [0.0]


def test_a_reading_carries_its_source_and_the_time_it_was_measured() -> None:
    (reading,) = taken(a_source(), matrix(gpu("312.5", at=NOW - 7.25)))
    assert reading == Reading(f"{NODE}/gpu0", "gpu_watts", 312.5, NOW - 8, "prometheus", "good")


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "warm", ""])
def test_what_is_no_number_is_not_believed(value: str) -> None:
    source = a_source()
    assert taken(source, matrix(gpu(value))) == []
    assert "gpu_watts (DCGM_FI_DEV_POWER_USAGE) is not believed of zurich/r1-n1/gpu0" in said(source)


def test_a_sample_too_old_is_not_told_and_one_from_the_future_counts_as_of_now() -> None:
    source = a_source()
    assert taken(source, matrix(gpu("300", at=NOW - 31))) == []
    assert "its last sample is 31 s old" in said(source)
    (reading,) = taken(source, matrix(gpu("300", at=NOW + 60)))
    assert reading.at == NOW
    assert "60 s ahead of our clock: it counts as of now" in said(source)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("312500", "312 kW is above 1.1 kW, which it cannot be; it looks like mW"),
        ("0.3125", "0.312 W is below 0.72 W, which it cannot be; it looks like kW"),
        ("-40", "-40 W is below 0.72 W"),
    ],
)
def test_a_unit_that_is_not_what_was_said_is_seen_by_what_the_device_can_draw(value: str, words: str) -> None:
    source = a_source()
    assert taken(source, matrix(gpu(value))) == []
    assert words in said(source)
    assert len(taken(source, matrix(gpu("0")))) == 1  # what is off draws nothing
    assert "is believed again" in said(source)


def test_millijoules_that_were_said_to_be_joules_are_seen_by_how_fast_they_rise() -> None:
    right, wrong = a_source(), a_source(series={"gpu_joules": {"query": "energy", "unit": "J"}})
    for source in (right, wrong):
        assert taken(source, matrix(gpu("1000000", at=NOW - 11)), "gpu_joules") == []  # no rate yet
    later = matrix(gpu("4500000", at=NOW - 1))  # 3.5 kJ in ten seconds: 350 W
    assert by_key(taken(right, later, "gpu_joules")) == {(f"{NODE}/gpu0", "gpu_joules"): 4500.0}
    assert taken(wrong, later, "gpu_joules") == []
    assert "350 kW is above 1.1 kW" in said(wrong)


def test_a_counter_that_begins_anew_is_said_and_goes_on_from_there() -> None:
    source = a_source()
    for at, value in ((NOW - 21, "8e9"), (NOW - 11, "1e5"), (NOW - 1, "3.6e6")):
        found = taken(source, matrix(gpu(value, at=at)), "gpu_joules", now=at + 1)
    assert [reading.value for reading in found] == [3600.0]
    assert said(source).count("gpu_joules began anew") == 1


def test_being_held_back_is_told_when_it_begins_and_when_it_is_over() -> None:
    source, quantity, at = a_source(), "gpu_thermal_violation_seconds", NOW
    words = []
    for nanoseconds in (0, 4e9, 8e9, 8e9, 8e9):
        found = taken(source, matrix(gpu(str(nanoseconds), at=at)), quantity, now=at)
        words += said(source).splitlines()
        at += 10
    assert found[0].quantity == "gpu_thermal_throttle_fraction"
    assert words == [
        "zurich/r1-n1/gpu0: held back by heat for 40 % of the time",
        "zurich/r1-n1/gpu0: no longer held back by heat",
    ]


def test_violations_that_outrun_the_clock_are_in_a_smaller_unit() -> None:
    source = a_source(series={"gpu_power_violation_seconds": {"query": "v", "unit": "us"}})
    for at, value in ((NOW - 11, "0"), (NOW - 1, "4e9")):
        found = taken(source, matrix(gpu(value, at=at)), "gpu_power_violation_seconds")
    assert found == []
    assert "held back for 400 s a second: its unit is smaller than was said" in said(source)


def test_of_two_series_for_one_gpu_the_newest_counts_and_that_is_said_once() -> None:
    source = a_source()
    twice = matrix(gpu("300", at=NOW - 9), gpu("310", at=NOW - 2), gpu("290", at=NOW - 5))
    assert [reading.value for reading in taken(source, twice)] == [310.0]
    assert "comes more than once for zurich/r1-n1/gpu0: the newest counts" in said(source)
    taken(source, twice)
    assert "more than once" not in said(source)


def test_hosts_that_are_not_in_the_facility_are_said_once_and_change_nothing() -> None:
    source = a_source()
    body = matrix(gpu("1", host="elsewhere"), gpu("1", number="7"), gpu("1", number="x"), ({}, [(NOW, "1")]))
    assert taken(source, body) == []
    words = said(source)
    assert "tells of elsewhere, r1-n1 GPU 7, r1-n1 GPU x, something without the label Hostname" in words
    taken(source, body)
    assert said(source) == ""


@pytest.mark.parametrize("host", ["r1-n1", "r1-n1:9400", "r1-n1.hall.example:9400", "r1-n1.hall.example"])
def test_a_node_is_found_with_its_port_or_domain(host: str) -> None:
    (reading,) = taken(a_source(), matrix(gpu("300", host=host)))
    assert reading.subject == f"{NODE}/gpu0"


def test_an_absent_host_is_said_once_for_all_its_quantities_and_again_when_it_is_back() -> None:
    hosts = [f"r{rack}-n{node}" for rack in (1, 2) for node in (1, 2)]
    there = list(hosts)

    def answer(request: BaseHTTPRequestHandler) -> None:
        known = "POWER_USAGE" in request.path or "GPU_TEMP" in request.path
        rows = [gpu("60", host=host, number=n, at=time.time() - 1) for host in there for n in "01"]
        reply(request, matrix(*rows if known else ()))

    with serving(answer) as url:
        source = a_source(url)
        source.read(time.time())
        said(source)
        there.remove("r2-n2")
        source.read(time.time())
        assert said(source) == "zurich: no gpu_celsius, gpu_watts of zurich/r2-n2: is the meter up?"
        source.read(time.time())
        assert said(source) == ""
        there.append("r2-n2")
        source.read(time.time())
        assert said(source) == "zurich: gpu_celsius, gpu_watts of zurich/r2-n2 is told again"
        source.close()


def _million(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.end_headers()
    row = b'{"metric":{"Hostname":"x","gpu":"0"},"values":[[1,"1"]]},' * 1000
    try:
        request.wfile.write(b'{"status":"success","data":{"resultType":"matrix","result":[')
        for _ in range(1000):
            request.wfile.write(row)
    except OSError:
        pass  # whoever asked has heard enough
    request.close_connection = True


def _drips(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", "1000")
    request.end_headers()
    try:
        for _ in range(100):
            request.wfile.write(b" ")
            request.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def _breaks_off(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b"{")
    request.close_connection = True


ODD: dict[str, tuple[Callable[[BaseHTTPRequestHandler], None], str]] = {
    "a million series": (_million, "the answer is larger than"),
    "a slow answer": (_drips, "the answer took longer than 1 s"),
    "no answer": (lambda _: time.sleep(3), "no answer: timed out"),
    "half an answer": (_breaks_off, "broke off 999 bytes before its end"),
    "a redirect": (lambda one: reply(one, b"", status=302, Location="http://evil/"), "not followed"),
    "a page": (lambda one: reply(one, b"<html>", kind="text/html"), "answered with text/html, not JSON"),
    "not JSON": (lambda one: reply(one, b"{]"), "no answer of a Prometheus"),
    "other JSON": (lambda one: reply(one, b'{"data": [1]}'), "no answer of a Prometheus"),
    "a deep answer": (lambda one: reply(one, b"[" * 100_000), "no answer of a Prometheus"),
    "a bad query": (
        lambda one: reply(one, b'{"status":"error","error":"parse error"}', status=400),
        "answered with 400",
    ),
    "an unwell server": (
        lambda one: reply(one, b"\x1b[31moops", status=503),
        "answered with 503: \ufffd[31moops",
    ),
    "an error without a word": (
        lambda one: reply(one, b"", status=503),
        "answered with 503: Service Unavailable",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_server_is_refused_in_words(name: str) -> None:
    answer, words = ODD[name]
    with serving(answer) as url:
        source = a_source(url, timeout="1s" if name in ("a slow answer", "no answer") else "30s")
        began = time.monotonic()
        with pytest.raises(MeterError) as caught:
            source.read(NOW)
        assert words in caught.value.message
        assert time.monotonic() - began < 30
        source.close()


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(MeterError, match="no answer: Connection refused"):
        a_source("http://127.0.0.1:9").read(NOW)


def test_one_bad_query_does_not_silence_the_others() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        if "sum" in request.path or "POWER_USAGE" in request.path:
            reply(request, b'{"status":"error","error":"parse error"}', status=400)
        else:
            reply(request, matrix(gpu("60", at=NOW - 1)))

    with serving(answer) as url:
        source = a_source(url, series={"rack_watts": {"query": "sum("}})
        assert (f"{NODE}/gpu0", "gpu_celsius") in by_key(source.read(NOW))
        words = said(source)
        assert "rack_watts: http://127.0.0.1" in words
        assert "gpu_watts: http://127.0.0.1" in words
        source.close()


def test_one_question_that_takes_too_long_does_not_silence_the_others() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        if "GPU_TEMP" in request.path:
            time.sleep(3)
        reply(request, matrix(gpu("60", at=NOW - 1)))

    with serving(answer) as url:
        source = a_source(url, timeout="1s")
        assert {quantity for _, quantity in by_key(source.read(NOW))} == {"gpu_watts"}
        assert "gpu_celsius: http://127.0.0.1" in said(source)
        source.close()


def test_a_token_is_sent_and_never_said(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    heard: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        heard.append(request.headers["Authorization"])
        reply(request, b"who are you?", status=401, kind="text/plain")

    with serving(answer) as url:
        source = a_source(url, secret_file=str(secret))
        with pytest.raises(MeterError) as caught:
            source.read(NOW)
        assert heard[0] == "Bearer s3cret"
        assert "s3cret" not in caught.value.message + said(source)
        secret.write_text("")
        with pytest.raises(MeterError, match="a secret is one line"):
            source.read(NOW)
        source.close()


def test_a_connection_that_was_kept_and_is_gone_is_made_anew() -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        reply(request, matrix(gpu("60", at=NOW - 1)))
        request.connection.settimeout(0.05)  # then it hangs up, without a word

    with serving(answer) as url:
        source = a_source(url)
        for _ in range(3):
            assert source.read(NOW)
            time.sleep(0.2)
        source.close()
