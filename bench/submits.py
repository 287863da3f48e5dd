"""How many submissions a second does a server take from eight clients, durably, beside `sbatch` here?

Both sides answer once a job is on the disk. Wattline: eight processes post runs to `wattline serve` on SQLite
(synchronous=FULL: a commit is synced) while it conducts. Slurm: eight processes call `sbatch`; it syncs
its state when it saves it, which is not at each job, so the comparison favours it. One after the other, in
one run, each for the same number of seconds. Jobs wait on both sides (`--hold`; a few long ones fill a lab),
so that what is measured is taking them in.

    python -m bench.submits [--seconds 20] [--clients 8]
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from wattline.release.index import TreeFile, encode_index

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

BAR = 2.0
WATTLINE = Path(sys.executable).with_name("wattline")
PIPELINE = b"""\
pipeline: small
model: small
owner: me
project: nlp
intended_use: a benchmark
phases:
  train: {run: sleep 600, resources: {gpus: 2}, constraints: {max_duration: 1h}}
"""


def submit_runs(url: str, body: bytes, until: float, client: int) -> list[float]:
    """One client: a connection that is kept, a key for each run; seconds that each answer took."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    took: list[float] = []
    while time.time() < until:
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{client}-{len(took)}"}
        began = time.perf_counter()
        connection.request("POST", "/api/v1/runs", body=body, headers=headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 202:
            raise SystemExit(f"{response.status}: {answer!r}")
        took.append(time.perf_counter() - began)
    return took


def submit_batches(environment: dict[str, str], until: float) -> list[float]:
    took = []
    while time.time() < until:
        began = time.perf_counter()
        done = subprocess.run(
            ["sbatch", "--hold", "--output", "/dev/null", "--wrap", "true"],
            env=environment,
            check=False,
            capture_output=True,
            timeout=60,
        )
        if done.returncode:
            raise SystemExit(done.stderr.decode(errors="replace"))
        took.append(time.perf_counter() - began)
    return took


def measure(clients: int, seconds: float, call: Callable[[float, int], list[float]]) -> list[float]:
    """All clients at once, each a process of its own."""
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[list[float]] = context.Queue()
    until = time.time() + seconds
    workers = [
        context.Process(target=lambda number=number: results.put(call(until, number)))
        for number in range(clients)
    ]
    for worker in workers:
        worker.start()
    took: list[float] = []
    for _ in workers:
        while True:
            try:
                took += results.get(timeout=1.0)
                break
            except queue.Empty:  # one that failed has said why, and puts nothing
                if any(worker.exitcode for worker in workers):
                    raise SystemExit("a client failed: its own words are above") from None
    for worker in workers:
        worker.join()
    return took


def measure_wattline(folder: Path, clients: int, seconds: float, database: str | None) -> list[float]:
    folder.mkdir()
    log, home = folder / "server.log", folder / "home"
    environment = {**os.environ, "WATTLINE_HOME": str(home)}
    if database is not None:
        environment["WATTLINE_DATABASE"] = database
    with log.open("w") as file:
        server = subprocess.Popen(
            [str(WATTLINE), "serve", "--listen", "127.0.0.1:0", "--rate", "100000"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        while "conducts" not in log.read_text():
            if server.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        found = re.search(r"http://\S+", log.read_text())
        assert found is not None
        body = put_source(found[0])
        return measure(clients, seconds, lambda until, number: submit_runs(found[0], body, until, number))
    finally:
        server.kill()
        server.wait()


def put_source(url: str) -> bytes:
    """The objects that every submission names."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    script = b"print('hello')\n"
    tree = encode_index([TreeFile(path="train.py", sha256=sha256(script).hexdigest(), size_bytes=15)], [])
    for content in (script, tree, PIPELINE):
        connection.request("PUT", f"/api/v1/objects/{sha256(content).hexdigest()}", body=content)
        connection.getresponse().read()
    named = {"pipeline": sha256(PIPELINE).hexdigest(), "bundle": sha256(tree).hexdigest()}
    return json.dumps(named).encode()


def measure_slurm(folder: Path, clients: int, seconds: float) -> list[float]:
    from slurm_cluster import SlurmCluster

    folder.chmod(0o755)
    with SlurmCluster(folder, nodes=2) as cluster:
        return measure(clients, seconds, lambda until, _: submit_batches(cluster.environment, until))


def tell(name: str, took: list[float], seconds: float) -> float:
    rate = len(took) / seconds
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"{name:<28} {rate:8.1f} jobs/s   p50 {1000 * p50:7.1f} ms   p99 {1000 * p99:7.1f} ms")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--database", help="a SQLAlchemy URL; SQLite unless given")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="wl-submits-") as folder,
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as slurm,
    ):
        took = measure_wattline(Path(folder) / "wattline", asked.clients, asked.seconds, asked.database)
        ours = tell(f"wattline, {asked.clients} clients", took, asked.seconds)
        if shutil.which("slurmctld", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            print("sbatch: slurmctld is not installed; nothing to compare with")
            return
        theirs = tell("sbatch", measure_slurm(Path(slurm), asked.clients, asked.seconds), asked.seconds)
    print(f"{ours / theirs:.1f} times sbatch; bar {BAR:g}: {'met' if ours >= BAR * theirs else 'MISSED'}")


if __name__ == "__main__":
    main()
