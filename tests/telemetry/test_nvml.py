"""NVML: every meter is read, what is missing is None, and nothing is ever set.

The driver is a small shared library of our own; the binding loads it as it would load the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[..., Any]
# Twice, ten seconds apart.
READ = "[source.read(12.5), source.read(22.5)]"
SITE = """
from building import a_device, a_site
from wattline.facility import Source
source = NvmlSource(a_site(nodes=1, gpus=3, device=a_device()), Source(kind="nvml"))
"""


@pytest.fixture
def ask(driver: Path, tmp_path: Path) -> Ask:
    """Evaluate an expression in a process that finds the test driver."""

    def evaluate(expression: str, **environment: str) -> Any:
        script = (
            "import json, dataclasses\n"
            f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
            f"from wattline.telemetry.nvml import *\n{SITE}"
            f"print(json.dumps({expression}, default=dataclasses.asdict))"
        )
        found = {"LD_LIBRARY_PATH": str(driver), "FAKE_NVML_LOG": str(tmp_path / "calls")}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **found, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return evaluate


def test_a_device_tells_all_its_meters_and_limits(ask: Ask) -> None:
    assert ask("read_nvml_devices()")[0] == {
        "index": 0,
        "name": "NVIDIA A100-SXM4-80GB",
        "uuid": "GPU-0",
        "power_watts": pytest.approx(312.5),
        "limit_watts": pytest.approx(350.0),
        "default_limit_watts": pytest.approx(400.0),
        "least_limit_watts": pytest.approx(100.0),
        "most_limit_watts": pytest.approx(400.0),
        "celsius": 61.0,
        "utilisation": pytest.approx(0.87),
        "memory_total_bytes": 85899345920,
        "memory_used_bytes": 20000000000,
        "sm_clock_mhz": 1410,
        "energy_joules": pytest.approx(123456.789),
        "power_violation_seconds": pytest.approx(2.5),
        "thermal_violation_seconds": pytest.approx(0.5),
        "throttle_celsius": 85.0,
        "slowdown_celsius": 89.0,
        "shutdown_celsius": 92.0,
        "fault": None,
    }


def test_a_meter_that_a_device_lacks_is_none_and_the_others_are_read(ask: Ask) -> None:
    device = ask("read_nvml_devices()")[1]
    present = {name for name, value in device.items() if value is not None}
    assert present == {"index", "name", "uuid", "celsius"}


def test_a_lost_device_says_so_and_does_not_hide_the_others(ask: Ask) -> None:
    devices = ask("read_nvml_devices()")
    assert [device["fault"] for device in devices] == [None, None, "GPU is lost"]


def test_readings_carry_their_source_and_skip_missing_meters(ask: Ask) -> None:
    readings = ask(READ)[0]
    told = {(reading["subject"], reading["quantity"]): reading["value"] for reading in readings}
    assert told["zurich/r1-n1/gpu0", "gpu_watts"] == pytest.approx(312.5)
    assert told["zurich/r1-n1/gpu1", "gpu_celsius"] == 61.0
    assert ("zurich/r1-n1/gpu1", "gpu_watts") not in told
    assert {(reading["at"], reading["source"]) for reading in readings} == {(12.5, "nvml")}


def test_counters_give_energy_and_shares_from_the_second_look_on_and_a_lost_gpu_is_said_once(
    ask: Ask,
) -> None:
    first, second, remarks = ask(f"{READ} + [source.remarks.take()]")
    assert "gpu_joules" not in {reading["quantity"] for reading in first}
    told = {(reading["subject"], reading["quantity"]): reading["value"] for reading in second}
    assert told["zurich/r1-n1/gpu0", "gpu_joules"] == pytest.approx(123456.789)
    assert told["zurich/r1-n1/gpu0", "gpu_power_throttle_fraction"] == 0.0
    lacking = "gpu_watts, gpu_limit_watts, gpu_busy_fraction, gpu_joules, gpu_power_violation_seconds"
    assert remarks == [
        ["zurich", f"GPU 1 tells no {lacking}, gpu_thermal_violation_seconds"],
        ["zurich", "GPU 2 cannot be read: GPU is lost"],
    ]


def test_a_machine_with_fewer_gpus_than_its_document_says_so_once(ask: Ask) -> None:
    script = "[source.read(12.5), source.read(22.5), source.remarks.take(), source.remarks.take()]"
    few = "(source := NvmlSource(a_site(nodes=1, gpus=8, device=a_device()), Source(kind='nvml')))"
    *_, first, second = ask(f"{few} and {script}")
    assert ["zurich", "this machine has 3 GPUs, and its node in the facility 8"] in first
    assert second == []


def test_reading_never_sets_anything(ask: Ask, tmp_path: Path) -> None:
    ask("[read_nvml_devices(), source.read(0.0), nvml_unavailable_reason()]")
    calls = (tmp_path / "calls").read_text().split()
    assert "nvmlDeviceGetPowerUsage" in calls
    assert [call for call in calls if "Set" in call] == []
    assert calls.count("nvmlInitWithFlags") == calls.count("nvmlShutdown") == 3


def test_a_driver_that_does_not_start_gives_no_devices_and_a_reason(ask: Ask) -> None:
    devices, reason = ask("[read_nvml_devices(), nvml_unavailable_reason()]", FAKE_NVML_NO_DRIVER="1")
    assert devices == []
    assert reason == "NVML does not start: Driver Not Loaded"


def test_a_machine_without_the_library_gives_no_devices_and_a_reason(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    script = "[read_nvml_devices(), nvml_unavailable_reason()]"
    devices, reason = ask(script, LD_LIBRARY_PATH=str(tmp_path))
    if reason is None:
        pytest.skip("a real driver is installed here")
    assert devices == []
    assert "Not Found" in reason
