"""What is besieged: how are servers, agents, a Slurm and a PostgreSQL started, killed and started again?

Everything is the real thing and lies in one folder. `strike` is `kill -9`; what was struck is started again
by `mend` once its time has come. Only the thread that made a House may call it.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bench.wan_cut import SITE

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres import PostgresServer
from slurm_cluster import SlurmCluster

WATTLINE = Path(sys.executable).with_name("wattline")
SERVERS = ("server-a", "server-b")
AGENTS = {"zurich": "ch", "oslo": "no"}  # sites with an agent, and their regions
HALL, HALL_REGION = "hall", "eu"
PROJECTS = ("nlp", "speech", "vision")
VICTIMS = ("conducting server", "server standing by", "agent", "slurmd", "slurmctld", "PostgreSQL")
_VOUCH_SECONDS = 5.0
_UNAVAILABLE = 3  # the exit code of who cannot reach what it needs

_HALL = """
  hall:
    region: eu
    tariff: {{energy: 0.20}}
    carbon: {{zone: XX, intensity: 100}}
    feeds: {{feed: {{rating: 60kW}}}}
    loops: {{room: {{kind: air, capacity: 50kW, supply: 20C}}}}
    racks:
      r1:
        cap: 50kW
        power: [feed]
        loop: room
        nodes: {{count: {count}, gpu: A100, gpus: 8, cpus: 16, other: 1kW, hosts: {hosts}}}
    storage: {{throughput: 2GB/s}}
    engine: slurm
    slurm: {{power_license: kilowatts}}
"""
_POLICY = {
    "policy": "siege",
    "thresholds": {"restart_backoff": "1s"},
    "teams": {name: {"quota": {"gpu_hours": 5000, "usd": 50000}, "limit": "hard"} for name in PROJECTS},
}


class House:
    """All that is started, and what of it is away."""

    def __init__(self, root: Path, cluster: SlurmCluster, postgres: PostgresServer, seed: int) -> None:
        self.root, self.home, self.cluster, self.postgres = root, root / "hub", cluster, postgres
        self.database = postgres.url(postgres.new_database())
        self.ports = dict(zip(SERVERS, _free_ports(len(SERVERS)), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self.ended_alone: list[str] = []
        self.found_no_database = 0
        self._chance = random.Random(f"strikes-{seed}")
        self._away: dict[str, float] = {}
        self._log_began: dict[str, int] = {}
        self._vouch_at = 0.0
        self._write_documents()
        for name in (*SERVERS, *AGENTS):
            self._start(name)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports.values()]

    def strike(self) -> str:
        """Kill one that lives; what it was, or nothing where that one is away already."""
        kind = self._chance.choice(VICTIMS)
        pause_seconds = self._chance.uniform(0.2, 4.0)
        if kind == "agent" and self._chance.random() < 0.1:
            pause_seconds = self._chance.uniform(20.0, 40.0)  # longer than its attempts go on without it
        name = self._one_of(kind)
        if name is None or name in self._away:
            return ""
        self.kills[kind] += 1
        self._away[name] = time.monotonic() + pause_seconds
        if name == "postgres":
            self.postgres.kill()
        elif name in self.processes:
            self._note_ends()
            self.processes[name].kill()
            self.processes[name].wait()
        else:
            self.cluster.kill_daemon(name)
        return name

    def mend(self, *, all_of_them: bool = False) -> None:
        """Start again what has been away for long enough."""
        for name, until in list(self._away.items()):
            if not all_of_them and time.monotonic() < until:
                continue
            if name == "postgres":
                self.postgres.start()
            elif name in self.processes:
                self._start(name)
            else:
                self.cluster.start(name)
            del self._away[name]
        self._note_ends()
        self._vouch()

    def conducting(self) -> str | None:
        """Which server says that it conducts."""
        for name, port in self.ports.items():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
            try:
                connection.request("GET", "/readyz")
                told = json.loads(connection.getresponse().read())
            except (OSError, ValueError, http.client.HTTPException):
                continue
            finally:
                connection.close()
            if told.get("status") == "conducts":
                return name
        return None

    def strangers(self) -> list[str]:
        """Processes of attempts: whoever was told of a folder in which an attempt lies."""
        folder = re.compile(re.escape(str(self.root)).encode() + rb"/[a-z]+/runs/")
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                told = (entry / "environ").read_bytes() + command
            except OSError:
                continue
            if folder.search(told):
                found.append(f"{entry.name} {command.replace(bytes(1), b' ').decode(errors='replace')[:120]}")
        return found

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _one_of(self, kind: str) -> str | None:
        if kind == "PostgreSQL":
            return "postgres"
        if kind == "slurmctld":
            return kind
        if kind == "slurmd":
            return self._chance.choice(self.cluster.nodes)
        if kind == "agent":
            return self._chance.choice(list(AGENTS))
        conducting = self.conducting()
        if kind == "conducting server":
            return conducting
        return None if conducting is None else next(name for name in SERVERS if name != conducting)

    def _start(self, name: str) -> None:
        environment = {**os.environ, **self.cluster.environment, "PYTHONUNBUFFERED": "1"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        if name in SERVERS:
            environment |= {"WATTLINE_HOME": str(self.home), "WATTLINE_DATABASE": self.database}
            command = ["serve", "--listen", f"127.0.0.1:{self.ports[name]}"]
            command += ["--facility", str(self.root / "facility.yaml")]
            command += ["--policy", str(self.root / "policy.yaml")]
        else:
            environment |= {"WATTLINE_HOME": str(self.root / name)}
            command = ["agent", "--site", name, "--server", ",".join(self.urls)]
        path = self.root / f"{name}.log"
        self._log_began[name] = path.stat().st_size if path.exists() else 0
        with path.open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(WATTLINE), *command], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _note_ends(self) -> None:
        """One that ended without being struck is started again; it is a fault, unless it had only begun and
        found no database.
        """
        for name, process in self.processes.items():
            if name not in self._away and process.poll() is not None:
                self._away[name] = time.monotonic() + 1.0
                said = (self.root / f"{name}.log").read_bytes()[self._log_began[name] :].decode()
                if name in SERVERS and process.returncode == _UNAVAILABLE and "listens on" not in said:
                    self.found_no_database += 1  # as documented: whoever starts services tries again
                    continue
                self.ended_alone.append(f"{name}: exit code {process.returncode}: {said[-3000:].strip()}")

    def _vouch(self) -> None:
        """What an operator does: Slurm drains a node whose slurmd was killed at a bad moment."""
        if time.monotonic() < self._vouch_at or "slurmctld" in self._away:
            return
        self._vouch_at = time.monotonic() + _VOUCH_SECONDS
        try:
            told = self.cluster.run("sinfo", "-h", "-N", "-o", "%N %T", check=False)
            for line in told.splitlines():
                node, _, state = line.partition(" ")
                if state.startswith("drain") and node not in self._away:
                    self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
        except subprocess.TimeoutExpired:
            return

    def _write_documents(self) -> None:
        sites = "".join(
            SITE.format(name=name)
            .replace("region: eu", f"region: {region}")
            .replace("gpus: 1, cpus: 2", "count: 4, gpus: 2, cpus: 16")
            .replace("rating: 10kW", "rating: 20kW")
            .replace("capacity: 10kW", "capacity: 20kW")
            .replace("cap: 8kW", "cap: 18kW")
            for name, region in AGENTS.items()
        )
        nodes = self.cluster.nodes
        hall = _HALL.format(count=len(nodes), hosts=json.dumps(nodes))
        names = [HALL, *AGENTS]
        links = [
            {"name": f"{one}-{other}", "between": [one, other], "bandwidth": "1Gbps", "latency": "10ms"}
            for number, one in enumerate(names)
            for other in names[number + 1 :]
        ]
        (self.root / "facility.yaml").write_text(
            f"facility: besieged\nsites:{hall}{sites}links: {json.dumps(links)}\n"
        )
        (self.root / "policy.yaml").write_text(json.dumps(_POLICY))


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
