"""A site on Slurm with an agent of its own: the server knows no Slurm, and either may be killed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.running import WATTLINE, Desk, kill, wait_until
from cli.test_run_slurm import a_facility
from slurm_cluster import ON_SLURM, SlurmCluster

pytestmark = ON_SLURM


class House:
    """A server, an agent in another state folder, and a person at another desk."""

    def __init__(self, desk: Desk, cluster: SlurmCluster, root: Path) -> None:
        self.desk, self.root = desk, root
        self.site_home = root / "site"
        self._conf = cluster.environment["SLURM_CONF"]
        self._processes: list[subprocess.Popen[bytes]] = []
        document = a_facility(cluster.nodes, power_license="kilowatts")
        document["sites"]["hall"]["agent"] = True
        facility = desk.write("facility.yaml", document)
        self.server_log = root / "server.log"
        listening = ["serve", "--listen", "127.0.0.1:0", "--facility", str(facility)]
        self.start(listening, self.server_log, WATTLINE_HOME=str(desk.home), SLURM_CONF="/nowhere")
        wait_until(lambda: re.search(r"http://\S+", self.server_log.read_text()) is not None)
        found = re.search(r"http://\S+", self.server_log.read_text())
        assert found is not None
        self.url = found[0]

    def start(self, words: list[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            process = subprocess.Popen(
                [str(WATTLINE), *words],
                env={**os.environ, "NO_COLOR": "1", **environment},
                stdout=file,
                stderr=file,
            )
        self._processes.append(process)
        return process

    def start_agent(self) -> subprocess.Popen[bytes]:
        words = ["agent", "--site", "hall", "--server", self.url]
        home = {"WATTLINE_HOME": str(self.site_home), "SLURM_CONF": self._conf}
        return self.start(words, self.root / "agent.log", **home)

    def ask(self, *words: str, environment: Mapping[str, str] | None = None) -> Any:
        home = {"WATTLINE_HOME": str(self.root / "client"), "WATTLINE_URL": self.url, "NO_COLOR": "1"}
        done = subprocess.run(
            [str(WATTLINE), *words, "--output", "json"],
            env={**os.environ, **home, **(environment or {})},
            cwd=self.desk.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def standing(self) -> str:
        return str(self.ask("status", "--site", "hall")["agent"]["standing"])

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def house(desk: Desk, slurm: SlurmCluster, tmp_path: Path) -> Iterator[House]:
    house = House(desk, slurm, tmp_path)
    yield house
    house.close()


def test_a_site_on_slurm_is_run_by_its_agent_and_a_killed_one_finds_its_job_again(
    house: House, slurm: SlurmCluster
) -> None:
    train = {"resources": {"gpus": 4, "gpu": "A100"}, "constraints": {"peak_power": "1.2kW"}}
    house.desk.training(steps=600, seconds=0.1, train=train)
    run = str(house.ask("submit")["run_id"])
    assert house.standing() == "regional_fallback"
    assert "waits for its first agent" in house.ask("status", "--site", "hall")["say"][0]
    assert slurm.run("squeue", "-h") == ""  # nothing begins before somebody is there
    agent = house.start_agent()
    wait_until(lambda: bool(list(house.site_home.glob("runs/*/train/1/started.json"))))
    assert house.standing() == "primary"
    (line,) = slurm.run("squeue", "-h", "-t", "R", "-o", "%j|%W").splitlines()
    assert line == f"{run}/train/1|kilowatts:2"
    kill(agent)  # type: ignore[arg-type]
    house.start_agent()
    house.desk.hurry()

    def ended() -> bool:
        return house.ask("status", run)["ended_at"] is not None

    wait_until(ended)
    told = house.ask("status", run)
    assert told["state"] in ("succeeded", "released"), told
    (phase,) = [one for one in told["phases"] if one["phase"] == "train"]
    assert [one["ending"] for one in phase["attempts"]] == ["succeeded"]
    wait_until(lambda: "Used=0" in slurm.run("scontrol", "-o", "show", "licenses"))
