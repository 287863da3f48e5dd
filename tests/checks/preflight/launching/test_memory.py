from __future__ import annotations

from typing import Any

import pytest

from wattline.checks.preflight.launching.memory import Memory, estimate_memory
from wattline.spec.preparation import Launch

GIB = 2**30
SHAPE: dict[str, Any] = {
    "parameters": "7B",
    "layers": 32,
    "hidden": 4096,
    "heads": 32,
    "sequence": 2048,
    "micro_batch": 1,
}


def estimate(data_parallel: int = 1, **launch: Any) -> Memory:
    found = estimate_memory(Launch.model_validate(launch), data_parallel=data_parallel)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("launch", "bytes_each"),
    [
        ({}, 16),
        ({"precision": "fp32"}, 16),
        ({"optimizer": "sgd"}, 12),
        ({"optimizer": "none"}, 2),
        ({"precision": "fp32", "optimizer": "none"}, 4),
    ],
)
def test_bytes_for_each_parameter_are_as_published(launch: dict[str, Any], bytes_each: int) -> None:
    total = estimate(parameters=1_000_000_000, **launch).total_gib
    assert total == pytest.approx(1e9 * bytes_each / GIB)


@pytest.mark.parametrize(
    ("sharding", "bytes_each"),
    [("none", 16), ("optimizer", 4 + 12 / 8), ("gradients", 2 + 14 / 8), ("all", 2)],
)
def test_sharding_divides_over_data_parallel_ranks(sharding: str, bytes_each: float) -> None:
    total = estimate(8, parameters=1_000_000_000, sharding=sharding).total_gib
    assert total == pytest.approx(1e9 * bytes_each / GIB)


def test_tensor_and_pipeline_parallelism_divide_all_state() -> None:
    one = estimate(parameters="8B").total_gib
    assert estimate(parameters="8B", tensor_parallel=4, pipeline_parallel=2).total_gib == pytest.approx(
        one / 8
    )


def test_activations_of_a_layer_are_34_bytes_for_each_value_of_its_input() -> None:
    activations = estimate(**SHAPE).activations_gib
    assert activations is not None
    assert activations == pytest.approx(2048 * 4096 * 34 * 32 / GIB)
    assert estimate(**SHAPE, tensor_parallel=2).activations_gib == pytest.approx(activations / 2)


def test_the_first_stage_of_a_pipeline_holds_as_many_micro_batches_as_there_are_stages() -> None:
    whole = estimate(**SHAPE).activations_gib
    assert estimate(**SHAPE, pipeline_parallel=4).activations_gib == pytest.approx(whole)
    assert whole is not None
    only_one = estimate(**SHAPE, pipeline_parallel=4, global_batch=1).activations_gib
    assert only_one == pytest.approx(whole / 4)


def test_what_is_computed_again_is_not_kept() -> None:
    kept = estimate(**SHAPE, recompute="full").activations_gib
    assert kept == pytest.approx(2048 * 4096 * (2 * 32 + 34) / GIB)


def test_a_launch_that_does_not_say_its_size_is_not_estimated() -> None:
    assert estimate_memory(Launch(), data_parallel=1) is None
    assert estimate(parameters="1B").activations_gib is None
