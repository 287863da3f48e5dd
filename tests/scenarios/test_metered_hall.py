"""A hall with real meters: a real Prometheus scrapes it, a helper sets limits, and a rack's cap is lowered.

What the GPUs draw follows the limits that the helper sets through the test driver; all between is real.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.running import POLICY, TRAIN, WATTLINE, Desk, assert_nothing_is_left, end, model_of, wait_until
from metering import a_prometheus, reply, serving
from scenarios.halls import a_site
from wattline.state import Measured

pytestmark = [pytest.mark.needs("prometheus"), pytest.mark.xdist_group("prometheus")]


class Rack:
    """Two A100 and half a kilowatt of other things, behind a cap that can be lowered."""

    def __init__(self, limits: Path) -> None:
        self._limits, self.cap_watts, self.busy = limits, 9000.0, True
        limits.mkdir()

    def gpu_watts(self, gpu: int) -> float:
        file = self._limits / str(gpu)
        limit = int(file.read_text() or "400000") / 1000 if file.exists() else 400.0
        return limit if self.busy else 60.0

    @property
    def watts(self) -> float:
        return 500.0 + sum(self.gpu_watts(gpu) for gpu in range(2))

    def scraped(self) -> bytes:
        lines = [f'rack_watts{{rack="r1"}} {self.watts}', f'rack_cap_watts{{name="r1"}} {self.cap_watts}']
        for gpu in range(2):
            labels = f'{{Hostname="r1-n1",gpu="{gpu}"}}'
            lines.append(f"DCGM_FI_DEV_POWER_USAGE{labels} {self.gpu_watts(gpu)}")
            lines.append(f"DCGM_FI_DEV_GPU_TEMP{labels} 55")
        return "".join(f"{line}\n" for line in lines).encode()


@contextmanager
def a_hall(
    desk: Desk, folder: Path, driver: Path, ladder: list[dict[str, Any]], *, caps: bool, steps: int = 160
) -> Iterator[tuple[Rack, list[str]]]:
    desk.params(steps=steps, seconds=0.1)
    desk.write("train.py", TRAIN)
    train = {
        "run": "python train.py",
        "resources": {"gpus": 2},
        "checkpoint": {"every": "1s"},
        "under_pressure": ladder,
    }
    desk.pipeline({"train": train}, params="params.json")
    # A rung is given longer than meters need to show it: a second to be scraped, another to be asked.
    thresholds = {**POLICY["thresholds"], "settle": "10s"}
    desk.write("policy.yaml", {**POLICY, "thresholds": thresholds})
    rack = Rack(folder / "limits")
    helper = folder / "helper"
    helper.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH={driver} FAKE_NVML_GPUS=8 FAKE_NVML_LIMITS={folder}/limits\n"
        f"exec {sys.executable} -m wattline.actuators.node {folder}/helper.json\n"
    )
    helper.chmod(0o755)
    with (
        serving(lambda request: reply(request, rack.scraped(), kind="text/plain")) as target,
        a_prometheus(folder, target) as url,
    ):
        telemetry = {
            "source": "prometheus",
            "url": url,
            "every": "1s",
            "series": {
                "rack_watts": {"query": "rack_watts"},
                "cap_watts": {"query": "rack_cap_watts", "label": "name"},
            },
        }
        site = {**a_site(usd_per_kwh=0.1), "telemetry": telemetry}
        if caps:
            site["power_caps"] = {"by": "helper", "command": [str(helper)], "timeout": "30s"}
        facility = {"facility": "hall", "sites": {"north": site}}
        yield rack, ["--facility", str(desk.write("facility.yaml", facility))]


def said(desk: Desk, *words: str) -> str:
    """What a command that only looks says meanwhile, on lines as wide as it likes."""
    environment = {**os.environ, "WATTLINE_HOME": str(desk.home), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [str(WATTLINE), *words], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def is_training(desk: Desk) -> bool:
    return desk.found("runs/*/train/1/started.json") and desk.found(
        "sites/*/checkpoints/*/train/checkpoints/*"
    )


def test_a_rack_whose_cap_is_lowered_draws_less_within_half_a_minute_and_its_job_ends_the_same(
    desk: Desk, driver: Path, tmp_path: Path
) -> None:
    with a_hall(desk, tmp_path, driver, [{"cap_power": "50%"}, {"pause": "1s"}], caps=True) as (
        rack,
        options,
    ):
        process = desk.start(*options)
        wait_until(lambda: is_training(desk), process)
        assert rack.watts == 1300.0
        rack.cap_watts, lowered = 1000.0, time.monotonic()
        wait_until(lambda: rack.watts < 1000.0, process)
        assert time.monotonic() - lowered < 30
        ran = end(process)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    kinds = desk.actions("train")
    assert kinds[:2] == ["start", "cap_power"]
    assert "pause" not in kinds
    assert rack.watts == 1300.0  # as before it began
    told = [event for event in desk.events() if isinstance(event, Measured)]
    assert {event.source for event in told} == {"prometheus"}
    assert ran.json["energy_kwh"] > 0
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_where_nothing_sets_limits_the_job_pauses_instead_and_goes_on_when_there_is_room(
    desk: Desk, driver: Path, tmp_path: Path
) -> None:
    ladder = [{"cap_power": "50%"}, {"pause": "1s"}]
    with a_hall(desk, tmp_path, driver, ladder, caps=False, steps=1200) as (rack, options):
        process = desk.start(*options)
        wait_until(lambda: is_training(desk), process)
        assert "cap_power is not offered: nothing at north sets power limits" in said(desk, "explain")
        assert "nothing here sets power limits: no job is capped" in said(desk, "status", "--site", "north")
        rack.cap_watts = 1000.0
        wait_until(lambda: "pause" in desk.actions("train"), process)
        wait_until(lambda: desk.found("runs/*/train/1/result.json"), process)
        desk.hurry()
        rack.cap_watts = 9000.0
        ran = end(process)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert desk.actions("train") == ["start", "pause", "resume"]
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)
