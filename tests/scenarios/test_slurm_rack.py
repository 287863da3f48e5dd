"""A rack of a real Slurm: a real Prometheus scrapes it, helpers set limits, and its cap is lowered.

What GPUs draw follows who runs there and the limits that helpers set through the test driver; all between is
real.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from cli.running import POLICY, TRAIN, Desk, assert_nothing_is_left, end, wait_until
from cli.test_run_slurm import a_facility
from metering import a_prometheus, reply, serving
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.state import ActionKind, Measured

pytestmark = [*ON_SLURM, pytest.mark.needs("prometheus")]

_GPUS = 8
_PHASES = ("left", "right")


class Rack:
    """Nodes of eight A100 and a kilowatt of other things each, behind a cap that can be lowered."""

    def __init__(self, folder: Path, cluster: SlurmCluster, hosts: list[str]) -> None:
        self._cluster, self._folder, self._hosts = cluster, folder, hosts
        self.cap_watts = 40_000.0
        for host in hosts:
            (folder / host).mkdir(parents=True)

    @property
    def watts(self) -> float:
        return sum(1000.0 + sum(self._gpus(host)) for host in self._hosts)

    def scraped(self) -> bytes:
        lines = [f'rack_watts{{rack="r1"}} {self.watts}', f'rack_cap_watts{{name="r1"}} {self.cap_watts}']
        for host in self._hosts:
            for gpu, watts in enumerate(self._gpus(host)):
                labels = f'{{Hostname="{host}",gpu="{gpu}"}}'
                lines.append(f"DCGM_FI_DEV_POWER_USAGE{labels} {watts}")
                lines.append(f"DCGM_FI_DEV_GPU_TEMP{labels} 55")
        return "".join(f"{line}\n" for line in lines).encode()

    def _gpus(self, host: str) -> list[float]:
        if not self._cluster.run("squeue", "-h", "-t", "R", "-w", host):
            return [60.0] * _GPUS
        files = [self._folder / host / str(gpu) for gpu in range(_GPUS)]
        return [int(file.read_text() or "400000") / 1000 if file.exists() else 400.0 for file in files]


def _helper(folder: Path, driver: Path) -> Path:
    """What `ssh {node} wattline node-helper` would be, on the driver of that node."""
    helper = folder / "helper"
    helper.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH={driver} FAKE_NVML_GPUS={_GPUS}\n"
        f"export FAKE_NVML_LIMITS={folder}/limits/$1\n"
        f"exec {sys.executable} -m wattline.actuators.node {folder}/helper-$1.json\n"
    )
    helper.chmod(0o755)
    return helper


def test_slurm_jobs_of_a_rack_whose_cap_is_lowered_draw_less_within_half_a_minute_and_finish(
    desk: Desk, slurm: SlurmCluster, driver: Path, tmp_path: Path
) -> None:
    hosts = slurm.nodes[:2]
    desk.write("params.json", {"steps": 250, "seconds": 0.1, "busy": False})
    desk.write("train.py", TRAIN)
    phase = {
        "run": "python train.py",
        "resources": {"gpus": _GPUS, "gpu": "A100"},
        "checkpoint": {"every": "1s"},
        "under_pressure": [{"cap_power": "50%"}, {"pause": "1min"}],
    }
    desk.pipeline(dict.fromkeys(_PHASES, phase), params="params.json")
    # A rung is given longer than meters need to show it: a second to be scraped, another to be asked.
    thresholds = {**POLICY["thresholds"], "settle": "10s"}
    desk.write("policy.yaml", {**POLICY, "thresholds": thresholds})
    rack = Rack(tmp_path / "limits", slurm, hosts)
    with (
        serving(lambda request: reply(request, rack.scraped(), kind="text/plain")) as target,
        a_prometheus(tmp_path, target) as url,
    ):
        facility = a_facility(hosts)
        facility["sites"]["hall"] |= {
            "telemetry": {
                "source": "prometheus",
                "url": url,
                "every": "1s",
                "series": {
                    "rack_watts": {"query": "rack_watts"},
                    "cap_watts": {"query": "rack_cap_watts", "label": "name"},
                },
            },
            "power_caps": {
                "by": "helper",
                "command": [str(_helper(tmp_path, driver)), "{node}"],
                "timeout": "30s",
            },
        }
        options = ("--facility", str(desk.write("facility.yaml", facility)))
        process = desk.start(*options, environment={"SLURM_CONF": slurm.environment["SLURM_CONF"]})
        wait_until(lambda: all(desk.found(f"runs/*/{one}/1/started.json") for one in _PHASES), process)
        wait_until(lambda: rack.watts == 8400.0, process)
        rack.cap_watts, lowered = 6000.0, time.monotonic()
        wait_until(lambda: rack.watts < 6000.0, process)
        took_seconds = time.monotonic() - lowered
        ran = end(process)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert took_seconds < 30
    for one in _PHASES:  # in the ladder's order, and no further than it had to
        assert desk.actions(one)[:2] == [ActionKind.START, ActionKind.CAP_POWER]
        assert ActionKind.PAUSE not in desk.actions(one)
    actions = [action for step in desk.steps() for action in step.decision.actions]
    because = [action.because for action in actions if action.rung == 0]
    assert because
    assert all("hall/r1" in reason for reason in because)
    told = {event.source for event in desk.events() if isinstance(event, Measured)}
    assert "prometheus" in told
    assert {file.read_text() for file in (tmp_path / "limits").glob("*/*")} <= {"", "400000"}  # put back
    assert_nothing_is_left(desk)
