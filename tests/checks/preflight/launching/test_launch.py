from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.asked import ask, outcomes
from wattline.checks import Check
from wattline.checks.preflight.launching.launch import check_launch


def checked(folder: Path, gpus: int = 8, gpu: list[str] | None = None, **launch: Any) -> list[Check]:
    resources = {"gpus": gpus, "gpu": gpu or []}
    phases = {"train": {"run": "true", "resources": resources, "launch": launch}}
    return list(check_launch(ask(folder, phases=phases)))


def outcome(checks: list[Check], name: str) -> str:
    return outcomes(checks)[f"launch.{name} train"]


def test_a_phase_without_a_launch_is_not_looked_at(tmp_path: Path) -> None:
    assert list(check_launch(ask(tmp_path))) == []


def test_what_is_not_said_is_skipped(tmp_path: Path) -> None:
    assert outcomes(checked(tmp_path)) == {
        "launch.processes train": "pass",
        "launch.parallel train": "pass",
        "launch.batch train": "skip",
        "launch.memory train": "skip",
    }


@pytest.mark.parametrize(("processes", "expected"), [(8, "pass"), (7, "fail"), (16, "fail")])
def test_there_is_one_process_for_each_gpu(tmp_path: Path, processes: int, expected: str) -> None:
    assert outcome(checked(tmp_path, processes=processes), "processes") == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ({"tensor_parallel": 4, "pipeline_parallel": 2}, "pass"),
        ({"tensor_parallel": 3}, "fail"),
        ({"pipeline_parallel": 4, "layers": 30}, "fail"),
        ({"tensor_parallel": 8, "heads": 12}, "fail"),
        ({"hidden": 100, "heads": 3}, "fail"),
    ],
)
def test_ranks_layers_and_heads_divide(tmp_path: Path, launch: dict[str, Any], expected: str) -> None:
    assert outcome(checked(tmp_path, **launch), "parallel") == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ({"global_batch": 64, "micro_batch": 8}, "pass"),
        ({"global_batch": 60, "micro_batch": 8}, "fail"),
        ({"global_batch": 12}, "fail"),
        ({"global_batch": 12, "tensor_parallel": 2}, "pass"),  # four data-parallel ranks
        ({"global_batch": 4, "micro_batch": 1}, "fail"),  # fewer samples than ranks
    ],
)
def test_a_batch_is_shared_evenly(tmp_path: Path, launch: dict[str, Any], expected: str) -> None:
    assert outcome(checked(tmp_path, **launch), "batch") == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [("4.8B", "pass"), ("4.9B", "warn"), ("5.3B", "warn"), ("5.4B", "fail")],  # 16 bytes each, of 80 GiB
)
def test_memory_is_tight_above_nine_tenths_and_too_little_above_all(
    tmp_path: Path, parameters: str, expected: str
) -> None:
    assert outcome(checked(tmp_path, gpu=["H100"], parameters=parameters), "memory") == expected


def test_of_named_gpus_the_smallest_decides_and_of_any_the_largest(tmp_path: Path) -> None:
    assert outcome(checked(tmp_path, gpu=["H200", "A100"], parameters="7B"), "memory") == "fail"
    assert outcome(checked(tmp_path, parameters="7B"), "memory") == "pass"
    assert outcome(checked(tmp_path, gpu=["Unheard-Of"], parameters="7B"), "memory") == "skip"


def test_the_message_has_the_numbers_and_the_fix_what_helps(tmp_path: Path) -> None:
    found = checked(tmp_path, gpu=["A100"], parameters="13B")
    (check,) = [check for check in found if check.check == "launch.memory"]
    parts = "24.2 weights + 24.2 gradients + 145.3 optimizer"
    assert (
        check.message == f"at least 193.7 GiB without activations ({parts}), 242% of the 80 GiB of one A100"
    )
    assert check.fix == "sharding: all divides weights, gradients and optimizer state by 8"
