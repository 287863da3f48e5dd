"""What may a checkpoint hold, and how is each value written down?"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from wattline.checkpoint import CheckpointError
from wattline.checkpoint.tensors import Array, TensorReference
from wattline.checkpoint.tree import decode, encode


def refuse_arrays(array: Array, place: str) -> TensorReference:
    raise AssertionError("no array was expected")


def refuse_references(reference: object, place: str) -> Array:
    raise AssertionError("no tensor was expected")


@pytest.mark.parametrize(
    ("value", "node"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, {"int": "0x20000000000000"}),
        (-(2**128), {"int": "-0x100000000000000000000000000000000"}),
        (float("inf"), {"float": "7ff0000000000000"}),
        ((1, [2]), {"tuple": [1, [2]]}),
        ({"a": {"tensor": 1}}, {"dict": {"a": {"dict": {"tensor": 1}}}}),
        ({0: "x", "0": "y"}, {"items": [[0, "x"], ["0", "y"]]}),
    ],
)
def test_a_value_is_written_so_that_any_json_reader_holds_it_exactly(value: object, node: object) -> None:
    assert encode(value, refuse_arrays) == node
    assert decode(json.loads(json.dumps(node)), refuse_references) == value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        np.float64(1.0),
        np.int32(1),
        {1.5: "key"},
        {True: "key"},
        np.array([object()]),
        np.zeros(2, dtype=[("a", "f4")]),
        np.ma.masked_array([1, 2], mask=[True, False]),
        b"bytes",
        {1, 2},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_the_same_is_refused(value: object) -> None:
    with pytest.raises(CheckpointError, match="model"):
        encode({"model": value}, refuse_arrays)


def test_nesting_is_bounded_both_ways() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(CheckpointError, match="deeper than 64"):
        encode(deep, refuse_arrays)
    with pytest.raises(CheckpointError, match="deeper than 64"):
        decode(deep, refuse_references)


@pytest.mark.parametrize(
    "node",
    [
        {"pickle": "gASVBA=="},
        {"dict": 1},
        {"dict": {}, "tuple": []},
        {},
        {"items": [[1]]},
        {"items": [[None, 1]]},
        {"int": "0xzz"},
        {"float": "7ff0"},
        {"float": "zz"},
    ],
    ids=str,
)
def test_a_node_of_no_known_kind_is_refused(node: object) -> None:
    with pytest.raises(CheckpointError):
        decode(node, refuse_references)


GOOD = {"dtype": "<f4", "shape": [2, 3], "chunks": ["00"]}


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "|O"},
        {"dtype": "O"},
        {"dtype": "<f3"},
        {"dtype": "<M8[fortnight]"},
        {"dtype": "<f4\n"},
        {"dtype": ["<f4"]},
        {"shape": [2, -3]},
        {"shape": [2, True]},
        {"shape": [1] * 33},
        {"shape": 6},
        {"chunks": "00"},
        {"chunks": [None]},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_tensor_reference_of_the_wrong_kind_is_refused(change: dict[str, object]) -> None:
    TensorReference.from_node(GOOD)
    with pytest.raises(CheckpointError):
        TensorReference.from_node({**GOOD, **change})
