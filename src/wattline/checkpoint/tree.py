"""Tree: what may a checkpoint hold, and how is each value written down?

A node of the manifest is null, a boolean, a string, a number that every JSON reader holds exactly, a list,
or an object with one key that says what it is: `dict`, `items` (a dict whose keys are not all strings),
`tuple`, `int` (hexadecimal, for random states), `float` (the bits of nan and the infinities), `tensor` or
`sharded` (a tensor in blocks). Nothing is ever pickled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.tensors import MAX_DIMENSIONS, Array, ShardedReference, TensorReference, is_allowed

MAX_DEPTH = 64
_EXACT_IN_JSON = 2**53

# Told of each tensor and its place in the tree.
Get = Callable[[TensorReference | ShardedReference, str], Any]


def encode(value: object, put: Callable[[Array, str], TensorReference], *, place: str = "") -> Any:
    """Describe a value for the manifest; `put` stores each array, in the order of the tree."""
    if place.count("/") > MAX_DEPTH:
        raise CheckpointError(f"{place[:80]}…: nested deeper than {MAX_DEPTH} levels")
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if isinstance(value, int) and kind is int:
        return value if abs(value) < _EXACT_IN_JSON else {"int": hex(value)}
    if isinstance(value, float) and kind is float:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if isinstance(value, np.ndarray) and kind in (np.ndarray, np.memmap):
        _require_storable(value, place)
        return {"tensor": put(value, place).to_node()}
    if isinstance(value, list | tuple):
        nodes = [encode(item, put, place=f"{place}/{index}") for index, item in enumerate(value)]
        return nodes if isinstance(value, list) else {"tuple": nodes}
    if isinstance(value, dict):
        return _encode_dict(value, put, place)
    raise CheckpointError(
        f"{place or 'the tree'}: a {kind.__module__}.{kind.__qualname__} cannot be kept in a checkpoint",
        hint="keep arrays, numbers, strings, lists and dicts; for a NumPy scalar use .item() or np.asarray",
    )


def _encode_dict(
    value: dict[Any, Any], put: Callable[[Array, str], TensorReference], place: str
) -> dict[str, Any]:
    for key in value:
        if type(key) not in (str, int):
            raise CheckpointError(f"{place or 'the tree'}: the key {key!r} is neither a string nor an int")
    nodes = [[key, encode(item, put, place=f"{place}/{key}")] for key, item in value.items()]
    if all(isinstance(key, str) for key in value):
        return {"dict": dict(nodes)}
    return {"items": [[encode(key, put), node] for key, node in nodes]}


def _require_storable(array: Array, place: str) -> None:
    if array.dtype.names is not None or not is_allowed(array.dtype.str):
        raise CheckpointError(
            f"{place or 'the tree'}: an array of dtype {array.dtype} cannot be kept in a checkpoint",
            hint="keep booleans, numbers, times or fixed text; fields of a record one by one",
        )
    if array.ndim > MAX_DIMENSIONS:
        raise CheckpointError(f"{place or 'the tree'}: {array.ndim} dimensions, at most {MAX_DIMENSIONS}")


def decode(node: Any, get: Get, *, place: str = "", depth: int = 0) -> Any:
    """Rebuild the value a node describes; `get` is asked for each array in the order it was put."""
    if depth > MAX_DEPTH:
        raise CheckpointError(f"the tree is nested deeper than {MAX_DEPTH} levels")
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [_decode_inner(item, get, place, index, depth) for index, item in enumerate(node)]
    if not isinstance(node, dict) or len(node) != 1:
        raise CheckpointError("a node of the tree is neither a value nor an object with one key")
    [(kind, content)] = node.items()
    match kind, content:
        case "dict", dict():
            return {key: _decode_inner(item, get, place, key, depth) for key, item in content.items()}
        case "items", list():
            return dict(_decode_item(item, get, place, depth) for item in content)
        case "tuple", list():
            return tuple(_decode_inner(item, get, place, index, depth) for index, item in enumerate(content))
        case "tensor", _:
            return get(TensorReference.from_node(content), place)
        case "sharded", _:
            return get(ShardedReference.from_node(content), place)
        case "int", str():
            return _decode_number(content, lambda text: int(text, 16))
        case "float", str():
            return _decode_number(content, lambda text: struct.unpack(">d", bytes.fromhex(text))[0])
    raise CheckpointError(f"a node of the tree has the unknown kind {kind[:40]!r}")


def _decode_inner(node: Any, get: Get, place: str, key: object, depth: int) -> Any:
    return decode(node, get, place=f"{place}/{key}", depth=depth + 1)


def _decode_item(item: Any, get: Get, place: str, depth: int) -> tuple[str | int, Any]:
    if not isinstance(item, list) or len(item) != 2:
        raise CheckpointError("an item of a dict is not a pair")
    key = decode(item[0], get, depth=depth + 1)
    if not isinstance(key, str | int):
        raise CheckpointError("a key of a dict is neither a string nor an int")
    return key, _decode_inner(item[1], get, place, key, depth)


def _decode_number(text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (ValueError, struct.error) as error:
        raise CheckpointError(f"{text[:40]!r} is not a number") from error
