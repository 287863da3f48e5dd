"""Tree: what may a checkpoint hold, and how is each value written down?

A node of the manifest is null, a boolean, a string, a number that every JSON reader holds exactly, a list,
or an object with one key that says what it is: `dict`, `items` (a dict whose keys are not all strings),
`tuple`, `int` (hexadecimal, for random states), `float` (the bits of nan and the infinities) or `tensor`.
Nothing is ever pickled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wattline.checkpoint.errors import CheckpointError

_TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
ALLOWED_DTYPES = frozenset(f"{order}{name}" for order in "<>|" for name in _TYPES)
MAX_DEPTH = 64
MAX_DIMENSIONS = 32
_EXACT_IN_JSON = 2**53

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorReference:
    """Where a tensor lies in `tensors.bin`, what it is, and the hash of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    blake3: str

    @classmethod
    def from_node(cls, node: object) -> TensorReference:
        """Believe nothing: sizes must agree with each other before anything is allocated for them."""
        if not isinstance(node, dict) or set(node) != {"dtype", "shape", "offset", "nbytes", "blake3"}:
            raise CheckpointError("a tensor reference has the wrong fields")
        dtype, shape, digest = node["dtype"], node["shape"], node["blake3"]
        if not isinstance(dtype, str) or dtype not in ALLOWED_DTYPES:
            raise CheckpointError(f"a tensor has dtype {dtype!r}, which is not allowed")
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not isinstance(digest, str):
            raise CheckpointError("a tensor reference has a shape or a hash of the wrong kind")
        sizes = [*shape, node["offset"], node["nbytes"]]
        if any(type(size) is not int or size < 0 for size in sizes):
            raise CheckpointError(f"a tensor reference has sizes {sizes} that are not whole and positive")
        if math.prod(shape) * np.dtype(dtype).itemsize != node["nbytes"]:
            raise CheckpointError(f"a tensor of shape {shape} and {dtype} cannot take {node['nbytes']} bytes")
        return cls(
            dtype=dtype, shape=tuple(shape), offset=node["offset"], nbytes=node["nbytes"], blake3=digest
        )

    def to_node(self) -> dict[str, Any]:
        """The reference as the manifest holds it."""
        return {**asdict(self), "shape": list(self.shape)}


def encode(value: object, put: Callable[[Array], TensorReference], *, place: str = "") -> Any:
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
        return {"tensor": put(value).to_node()}
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
    value: dict[Any, Any], put: Callable[[Array], TensorReference], place: str
) -> dict[str, Any]:
    for key in value:
        if type(key) not in (str, int):
            raise CheckpointError(f"{place or 'the tree'}: the key {key!r} is neither a string nor an int")
    nodes = [[key, encode(item, put, place=f"{place}/{key}")] for key, item in value.items()]
    if all(isinstance(key, str) for key in value):
        return {"dict": dict(nodes)}
    return {"items": [[encode(key, put), node] for key, node in nodes]}


def _require_storable(array: Array, place: str) -> None:
    if array.dtype.str not in ALLOWED_DTYPES:
        raise CheckpointError(
            f"{place or 'the tree'}: an array of dtype {array.dtype} cannot be kept in a checkpoint",
            hint="keep booleans, integers, floats up to 64 bits or complex numbers up to 128",
        )
    if array.ndim > MAX_DIMENSIONS:
        raise CheckpointError(f"{place or 'the tree'}: {array.ndim} dimensions, at most {MAX_DIMENSIONS}")


def decode(node: Any, get: Callable[[TensorReference], Array], *, depth: int = 0) -> Any:
    """Rebuild the value a node describes; `get` is asked for each array in the order it was put."""
    if depth > MAX_DEPTH:
        raise CheckpointError(f"the tree is nested deeper than {MAX_DEPTH} levels")
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [decode(item, get, depth=depth + 1) for item in node]
    if not isinstance(node, dict) or len(node) != 1:
        raise CheckpointError("a node of the tree is neither a value nor an object with one key")
    [(kind, content)] = node.items()
    match kind, content:
        case "dict", dict():
            return {key: decode(item, get, depth=depth + 1) for key, item in content.items()}
        case "items", list():
            return dict(_decode_item(item, get, depth) for item in content)
        case "tuple", list():
            return tuple(decode(item, get, depth=depth + 1) for item in content)
        case "tensor", _:
            return get(TensorReference.from_node(content))
        case "int", str():
            return _decode_number(content, lambda text: int(text, 16))
        case "float", str():
            return _decode_number(content, lambda text: struct.unpack(">d", bytes.fromhex(text))[0])
    raise CheckpointError(f"a node of the tree has the unknown kind {kind[:40]!r}")


def _decode_item(item: Any, get: Callable[[TensorReference], Array], depth: int) -> tuple[str | int, Any]:
    if not isinstance(item, list) or len(item) != 2:
        raise CheckpointError("an item of a dict is not a pair")
    key = decode(item[0], get, depth=depth + 1)
    if not isinstance(key, str | int):
        raise CheckpointError("a key of a dict is neither a string nor an int")
    return key, decode(item[1], get, depth=depth + 1)


def _decode_number(text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (ValueError, struct.error) as error:
        raise CheckpointError(f"{text[:40]!r} is not a number") from error
