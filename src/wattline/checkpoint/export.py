"""Export: how does a restored checkpoint leave for tools that have never heard of Wattline?

As safetensors, written here from the published format, or as the file that torch.save writes. Both appear
whole or not at all.

What the tree of a checkpoint cannot say by itself is a dict with one of three keys:
`torch.Tensor` (an array; `dtype` beside it where NumPy has no such type and the array is its bits),
`numpy.generic` (a NumPy scalar, as an array without dimensions) and `torch.state_dict` (a module's, with the
versions of its layers in `metadata` beside it).
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from wattline.checkpoint.errors import CheckpointError, storage_errors
from wattline.checkpoint.tensors import Array

TENSOR = "torch.Tensor"
SCALAR = "numpy.generic"
STATE_DICT = "torch.state_dict"
MARKERS = frozenset({TENSOR, SCALAR, STATE_DICT})

_SAFETENSORS_OF_NUMPY = {
    "|b1": "BOOL",
    "|u1": "U8",
    "|i1": "I8",
    "<u2": "U16",
    "<i2": "I16",
    "<f2": "F16",
    "<u4": "U32",
    "<i4": "I32",
    "<f4": "F32",
    "<u8": "U64",
    "<i8": "I64",
    "<f8": "F64",
    "<c8": "C64",
}
_SAFETENSORS_OF_TORCH = {
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
_MOST_HEADER_BYTES = 100_000_000  # what the format's own reader accepts
_HEADER_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array and, where NumPy has no such type, the name of the torch dtype whose bits it holds."""

    array: Array
    dtype: str | None


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    dtype: str
    array: Array  # contiguous, little endian


def tensor_in(value: object) -> Tensor | None:
    """The tensor that a value of a restored tree describes, if it is one."""
    if isinstance(value, np.ndarray):
        return Tensor(value, None)
    match value:
        case {"torch.Tensor": np.ndarray() as array, "dtype": str(dtype), **rest} if not rest:
            return Tensor(array, dtype)
        case {"torch.Tensor": np.ndarray() as array, **rest} if not rest:
            return Tensor(array, None)
        case {"numpy.generic": np.ndarray() as array, **rest} if not rest:
            return Tensor(array, None)
    return None


def to_torch(tensor: Tensor, place: str) -> Any:
    """The same memory as a torch tensor, where the array is little endian and contiguous."""
    torch = _torch(place)
    array = _little_endian(tensor.array)
    if not array.flags.writeable:  # torch has no tensors that may not be written to
        array = array.copy()
    try:
        plain = torch.from_numpy(array)
    except TypeError as error:
        raise CheckpointError(f"{place}: torch has no tensors of dtype {array.dtype}") from error
    if tensor.dtype is None:
        return plain
    dtype: Any = getattr(torch, tensor.dtype, None)
    known = isinstance(dtype, torch.dtype) and not tensor.dtype.startswith("q")
    if not known or dtype.itemsize != array.itemsize:
        raise CheckpointError(
            f"{place}: this torch has no dtype {tensor.dtype[:40]!r} of {array.itemsize} bytes",
            hint="install the version of torch that the checkpoint was written with, or a later one",
        )
    return plain.view(dtype)


def export_safetensors(tree: object, path: Path) -> None:
    """Write every tensor under its dotted name; all else is JSON in the file's metadata, under its own."""
    tensors: dict[str, _Named] = {}
    metadata: dict[str, str] = {}
    for name, value in _flat(tree):
        if name in tensors or name in metadata or name == "__metadata__":
            raise CheckpointError(
                f"{name}: two values would have this name in a safetensors file",
                hint="export the parts one by one, each into a file of its own",
            )
        tensor = tensor_in(value)
        if tensor is not None:
            tensors[name] = _named(name, tensor)
        else:
            metadata[name] = json.dumps(value)
    # The widest numbers first: everything is then aligned to its own size.
    ordered = sorted(tensors.values(), key=lambda each: (-each.array.itemsize, each.name))
    header = _header(ordered, metadata)
    with _appearing(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for each in ordered:
            if each.array.nbytes:
                file.write(each.array.reshape(-1).view(np.uint8).data)


def export_torch(tree: object, path: Path) -> None:
    """Write the tree as torch.save does; `torch.load(path, weights_only=True)` gives it back.

    NumPy arrays become tensors: loading anything else of NumPy's needs trust in the file.
    """
    state = _as_torch(tree, "")
    with _appearing(path) as file:
        _torch("export").save(state, file)


def _header(tensors: list[_Named], metadata: dict[str, str]) -> bytes:
    fields: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for each in tensors:
        end = at + each.array.nbytes
        fields[each.name] = {"dtype": each.dtype, "shape": list(each.array.shape), "data_offsets": [at, end]}
        at = end
    header = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % _HEADER_ALIGNMENT)
    if len(header) > _MOST_HEADER_BYTES:
        raise CheckpointError(
            f"the header would take {len(header)} bytes, and safetensors readers take {_MOST_HEADER_BYTES}",
            hint="export the parts one by one, or keep long lists of numbers as arrays",
        )
    return header


def _named(name: str, tensor: Tensor) -> _Named:
    little = _little_endian(tensor.array)
    if tensor.dtype is None:
        dtype = _SAFETENSORS_OF_NUMPY.get(little.dtype.str)
    else:
        dtype = _SAFETENSORS_OF_TORCH.get(tensor.dtype)
    if dtype is None:
        raise CheckpointError(
            f"{name}: a safetensors file cannot hold {tensor.dtype or tensor.array.dtype}",
            hint="export it for torch, or keep it as numbers that the format has",
        )
    return _Named(name, dtype, little)


def _little_endian(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names. Lists without tensors stay whole: a random state has hundreds of numbers."""
    if tensor_in(value) is not None or not isinstance(value, dict | list | tuple):
        if not name:
            raise CheckpointError("only a dict of named values can be exported")
        yield name, value
        return
    if isinstance(value, dict) and set(value) == {STATE_DICT, "metadata"}:
        yield from _flat(value[STATE_DICT], name)
        yield f"{name}._metadata", value["metadata"]
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    if name and (not value or (not isinstance(value, dict) and not _has_tensors(value))):
        yield name, value
        return
    for key, item in items:
        yield from _flat(item, f"{name}.{key}" if name else str(key))


def _has_tensors(value: object) -> bool:
    if tensor_in(value) is not None:
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(_has_tensors(item) for item in items)


def _as_torch(value: object, place: str) -> Any:
    tensor = tensor_in(value)
    if tensor is not None:
        return to_torch(tensor, place)
    if isinstance(value, dict) and set(value) == {STATE_DICT, "metadata"}:
        return state_dict_in(value, lambda item, key: _as_torch(item, f"{place}/{key}"))
    if isinstance(value, dict):
        return {key: _as_torch(item, f"{place}/{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_as_torch(item, f"{place}/{index}") for index, item in enumerate(value))
    return value


def state_dict_in(node: dict[str, Any], convert: Callable[[Any, Any], Any]) -> OrderedDict[Any, Any]:
    """A module's state_dict as torch makes it: the versions of its layers are an attribute."""
    state = OrderedDict((key, convert(item, key)) for key, item in node[STATE_DICT].items())
    state._metadata = OrderedDict(node["metadata"])  # type: ignore[attr-defined]  # noqa: SLF001  torch's name
    return state


def _torch(place: str) -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise CheckpointError(
            f"{place}: this needs torch, which is not installed here", hint="pip install torch"
        ) from error


@contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is complete and on disk; otherwise it leaves nothing."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with storage_errors(f"{path}: could not be written"):
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        finally:
            temporary.unlink(missing_ok=True)
