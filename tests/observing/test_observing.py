"""From saved files and a server that may be slow, wrong, ahead or far too talkative, to a report."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from cluster_history import a_history
from metering import matrix, reply, serving
from wattline.errors import DocumentError, UsageError
from wattline.observing import ReadOnly, Report, Wanted, conclude, see
from wattline.observing.window import iso
from wattline.telemetry.asking import Asker

NODES = "".join(f"NodeName=n{number} CPUTot=64 Gres=gpu:h100:8 State=IDLE\n" for number in range(1, 5))


class Saved:
    """What somebody saved at their cluster."""

    def __init__(self, folder: Path) -> None:
        self.history = a_history(int(time.time()) // 60 * 60, seed=3)
        self.scontrol, self.sacct = folder / "scontrol.txt", folder / "sacct.txt"
        self.scontrol.write_text(NODES)
        self.sacct.write_text(self.history.sacct())

    def report(self, url: str = "", **wanted: object) -> Report:
        asker = Asker(url, timeout_seconds=0.5) if url else None
        fields: dict[str, object] = {"scontrol": self.scontrol, "sacct": self.sacct, "since_seconds": 3600.0}
        asked = Wanted(**(fields | wanted))  # type: ignore[arg-type]
        ask = ReadOnly(prometheus=asker)
        try:
            return conclude(see(asked, ask, lambda _: None), asked, ask, replays=False, tell=lambda _: None)
        finally:
            ask.close()


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return Saved(tmp_path)


@contextmanager
def a_server(
    answer: Callable[[BaseHTTPRequestHandler, dict[str, list[str]]], None], ahead_seconds: float = 0.0
) -> Iterator[str]:
    def told(handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        if query.get("query") == ["time()"]:
            at = time.time() + ahead_seconds
            data = {"resultType": "scalar", "result": [at, str(at)]}
            reply(handler, json.dumps({"status": "success", "data": data}).encode())
        else:
            answer(handler, query)

    with serving(told) as url:
        yield url


def test_files_alone_are_enough_and_what_they_lack_is_named(saved: Saved) -> None:
    report = saved.report()
    assert {loss.name for loss in report.losses} == {"queueing", "failed jobs", "retries"}
    assert report.losses[0].gpu_hours == max(loss.gpu_hours or 0.0 for loss in report.losses)
    assert any("no Prometheus was named" in remark for remark in report.remarks)
    assert {"losses: throttling", "energy_kwh", "cost"} <= set(report.not_estimated)
    assert report.asked == ()


def test_an_empty_window_says_that_nothing_was_lost(saved: Saved) -> None:
    report = saved.report(until=saved.history.begins_at - 86400.0)
    assert all(loss.gpu_hours == 0 for loss in report.losses)
    assert report.allocated_gpu_hours == 0


def test_a_file_that_was_saved_long_ago_tells_of_its_own_time(saved: Saved) -> None:
    """What ran when it was saved is not taken to have run ever since."""
    day, now = 86400.0, int(time.time())
    rows = [
        f"{number}|{state}|{now - 30 * day:.0f}|{start}|{end}|gres/gpu=8"
        for number, state, start, end in (
            (1, "COMPLETED", f"{now - 30 * day + 60:.0f}", f"{now - 30 * day + 7200:.0f}"),
            (2, "RUNNING", f"{now - 30 * day + 3600:.0f}", "Unknown"),
            (3, "PENDING", "Unknown", "Unknown"),
        )
    ]
    saved.sacct.write_text("\n".join(("JobID|State|Submit|Start|End|AllocTRES", *rows)) + "\n")
    report = saved.report(since_seconds=7 * day)
    assert report.ends_at == iso(now - 30 * day + 7200)
    assert report.allocated_gpu_hours == pytest.approx(8 * (7140 + 3600) / 3600)
    assert any("tells of nothing after" in remark for remark in report.remarks)
    assert saved.report(until=now - 31 * day).allocated_gpu_hours == 0


def test_a_window_that_ends_ahead_is_refused(saved: Saved) -> None:
    with pytest.raises(UsageError, match="lies ahead"):
        saved.report(until=time.time() + 3600.0)


def test_a_server_that_does_not_answer_in_time_is_asked_no_further(saved: Saved) -> None:
    with a_server(lambda *_: time.sleep(2.0)) as url:
        report = saved.report(url)
    assert any("timed out" in remark for remark in report.remarks)
    assert any("asked no further" in remark for remark in report.remarks)
    assert len(report.asked) <= 4
    assert "losses: queueing" not in report.not_estimated


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"status":"success"}', b'{"data":{"result":[{"metric":{"gpu":1}}]}}', b"{" * 5000]
)
def test_a_wrong_answer_is_said_and_the_rest_goes_on(saved: Saved, body: bytes) -> None:
    with a_server(lambda handler, _: reply(handler, body)) as url:
        report = saved.report(url)
    assert any("no answer of a Prometheus" in remark for remark in report.remarks)
    assert {loss.name for loss in report.losses} == {"queueing", "failed jobs", "retries"}


def test_far_more_series_than_there_are_gpus_are_not_swallowed(saved: Saved) -> None:
    sent = 0

    def flood(handler: BaseHTTPRequestHandler, _: dict[str, list[str]]) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b'{"status":"success","data":{"resultType":"matrix","result":[')
        for number in range(1_000_000):
            series = {"metric": {"Hostname": f"h{number}", "gpu": "0"}, "values": [[0, "1"]]}
            handler.wfile.write(json.dumps(series).encode() + b",")
            sent += 1

    with a_server(flood) as url:
        report = saved.report(url)
    assert any("larger than" in remark for remark in report.remarks)
    assert sent < 1_000_000


def test_hosts_that_only_one_side_knows_are_named_and_do_not_count(saved: Saved) -> None:
    def two(handler: BaseHTTPRequestHandler, query: dict[str, list[str]]) -> None:
        at = [float(query["start"][0]) + 60 * step for step in range(61)]
        rows = [(moment, str(1e12 * number)) for number, moment in enumerate(at)]
        is_power = "POWER_VIOLATION" in query["query"][0]
        series = [({"Hostname": host, "gpu": "0"}, rows if is_power else []) for host in ("n1.hall", "mars")]
        reply(handler, matrix(*series))

    with a_server(two) as url:
        report = saved.report(url)
    assert any("Slurm does not know: mars" in remark for remark in report.remarks)
    assert any("nothing of nodes that Slurm knows: n2, n3, n4" in remark for remark in report.remarks)
    throttling = next(loss for loss in report.losses if loss.name == "throttling")
    assert throttling.by["held back by power"] == pytest.approx(1.0)  # an hour of one GPU, never more
    assert throttling.coverage == pytest.approx(1 / 32)


def test_a_clock_that_is_ahead_moves_the_window_that_is_asked_for(saved: Saved) -> None:
    starts: list[float] = []

    def note(handler: BaseHTTPRequestHandler, query: dict[str, list[str]]) -> None:
        starts.append(float(query["start"][0]))
        reply(handler, matrix())

    with a_server(note, ahead_seconds=500.0) as url:
        report = saved.report(url)
    assert any("+500 s beside Slurm's" in remark for remark in report.remarks)
    begins_at = datetime.fromisoformat(report.begins_at).timestamp()
    assert starts[0] == pytest.approx(begins_at + 500, abs=61)


def test_no_accounting_at_all_leaves_the_rest(saved: Saved) -> None:
    report = saved.report(sacct=None)
    assert report.losses == ()
    assert any("--sacct" in remark for remark in report.remarks)
    assert report.jobs is None


def test_gpus_of_a_model_that_nobody_knows_are_asked_for(saved: Saved) -> None:
    saved.scontrol.write_text(NODES.replace("gpu:h100:8", "gpu:8"))
    report = saved.report()
    assert report.models == {"model not known": 32}
    assert any("no facility is proposed" in one and "--gpu H100" in one for one in report.remarks)
    told = saved.report(gpu="A100")
    assert told.models == {"A100": 32}
    assert not any("--gpu" in one for one in told.remarks)


def test_a_facility_that_is_another_hall_is_said_to_be(saved: Saved, tmp_path: Path) -> None:
    remarks = saved.report(facility="lab").remarks
    assert any("Slurm 32 in 4: what is replayed there is not this cluster" in remark for remark in remarks)
    asked = Wanted(scontrol=saved.scontrol, since_seconds=3600.0)
    proposal = see(asked, ReadOnly(), lambda _: None).proposal
    assert proposal is not None
    own = tmp_path / "own.yaml"
    own.write_text(proposal.text)
    assert not any("not this cluster" in remark for remark in saved.report(facility=str(own)).remarks)


def test_a_cap_of_the_table_that_cannot_be_is_blamed_on_the_table(saved: Saved, tmp_path: Path) -> None:
    table = tmp_path / "racks.csv"
    table.write_text("node,rack,cap\nn[1-4],r1,1kW\n")
    with pytest.raises(DocumentError, match=r"racks\.csv: sites\..*r1\.cap: its idle nodes draw") as raised:
        saved.report(racks=table)
    assert len(raised.value.problems) == 1
