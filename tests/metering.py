"""A hall with real meters for tests: its document, an exporter of its series, a Prometheus, odd servers."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from wattline.facility import Facility
from wattline.spec import FacilityDocument, build_facility, parse_document

HALL = """
facility: hall
sites:
  zurich:
    region: eu
    tariff: {{energy: 0.1}}
    carbon: {{zone: CH, intensity: 30}}
    feeds: {{feed-a: {{rating: 200kW}}}}
    loops: {{cdu-1: {{kind: direct-to-chip, capacity: 100kW, supply: 30C, flow: 200L/min}}}}
    racks:
      r1..r2: {{cap: 15kW, power: [feed-a], loop: cdu-1, nodes: {{count: 2, gpu: H100, gpus: 2, other: 1kW}}}}
    storage: {{throughput: 1GB/s}}
    telemetry: {telemetry}
"""


def a_hall(*telemetry: dict[str, Any], **site: Any) -> Facility:
    """Two racks of two nodes with two H100 each, on one feed and one loop; `site` has more of its fields."""
    text = HALL.format(telemetry=json.dumps(telemetry))
    text += "".join(f"    {name}: {json.dumps(value)}\n" for name, value in site.items())
    return build_facility(parse_document(text.encode(), FacilityDocument, file="facility.yaml"))


class Exporter:
    """What a scrape finds: lines of `name{labels} value`, which a test may change."""

    def __init__(self) -> None:
        self.lines: dict[str, float | str] = {}

    def gpu(self, metric: str, host: str, gpu: int, value: float | str) -> None:
        self.lines[f'{metric}{{Hostname="{host}",gpu="{gpu}"}}'] = value

    def text(self) -> bytes:
        return "".join(f"{series} {value}\n" for series, value in self.lines.items()).encode()


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server on loopback whose every GET, PATCH and POST is answered by a function; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        do_PATCH = do_POST = do_GET  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Whoever asked has heard enough."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(
    handler: BaseHTTPRequestHandler,
    body: bytes,
    *,
    status: int = 200,
    kind: str = "application/json",
    **headers: str,
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    """What a Prometheus answers to `name[60s]`."""
    result = [{"metric": metric, "values": values} for metric, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@contextmanager
def a_prometheus(folder: Path, *targets: str) -> Iterator[str]:
    """A real one that scrapes these every second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hosts = json.dumps([target.removeprefix("http://") for target in targets])
    config = (
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: hall, static_configs: [{{targets: {hosts}}}]}}]\n"
    )
    (folder / "prometheus.yml").write_text(config)
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _is_ready(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look every twentieth of a second until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.05)
