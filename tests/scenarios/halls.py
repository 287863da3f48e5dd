"""Two small halls with a link between them, and a training in the cheaper one, where something breaks."""

from __future__ import annotations

from typing import Any

from cli.running import POLICY, TRAIN, Desk

_SEED = "11"


def a_site(*, usd_per_kwh: float) -> dict[str, Any]:
    return {
        "region": "eu",
        "tariff": {"energy": usd_per_kwh},
        "carbon": {"zone": "CH", "intensity": 45},
        "feeds": {"main": {"rating": "20kW"}},
        "loops": {"crah": {"kind": "air", "capacity": "12kW", "supply": "20C"}},
        "racks": {
            "r1": {
                "cap": "9kW",
                "power": ["main"],
                "loop": "crah",
                "nodes": {"gpu": "A100", "gpus": 2, "cpus": 8, "other": "500W"},
            }
        },
        "storage": {"throughput": "1GB/s"},
        # Dies warm at their own pace, far slower than any rung: a busy machine changes no decision.
        "telemetry": {"source": "emulated"},
    }


STEPS = 1200


def a_scenario(desk: Desk, fault: dict[str, Any], ladder: list[dict[str, Any]]) -> list[str]:
    """Train for a minute, or until told to hurry, in the cheaper site, where `fault` begins at step 5."""
    desk.params(steps=STEPS, seconds=0.05, busy=True)
    desk.write("train.py", TRAIN)
    train = {
        "run": "python train.py",
        "resources": {"gpus": 2},
        "checkpoint": {"every": "1s"},
        "under_pressure": ladder,
    }
    desk.pipeline({"train": train}, params="params.json")
    desk.write("policy.yaml", POLICY)
    facility = {
        "facility": "two-halls",
        "sites": {"north": a_site(usd_per_kwh=0.05), "south": a_site(usd_per_kwh=0.5)},
        "links": [{"name": "n-s", "between": ["north", "south"], "bandwidth": "10Gbps", "latency": "5ms"}],
    }
    named = {"name": "trip", "at": {"phase": "train", "step": 5}} | fault
    return [
        "--facility",
        str(desk.write("facility.yaml", facility)),
        "--faults",
        str(desk.write("faults.yaml", {"faults": [named]})),
        "--seed",
        _SEED,
    ]
