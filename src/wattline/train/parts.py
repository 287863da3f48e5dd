"""Parts: how is each thing a script trains with captured, and put back exactly as it was?

A part is a nested dict of arrays and plain values (restored in place, so that the script's own references
see it), a NumPy Generator, or anything with `state_dict()` and `load_state_dict()`. Torch tensors inside a
state_dict travel as arrays; torch is never imported here unless a checkpoint holds its tensors.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from wattline.train.errors import ScriptError

_TENSOR = "torch.Tensor"


def capture(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The state of every part as a tree that a checkpoint can hold; arrays are not copied."""
    return {name: _capture(part) for name, part in parts.items()}


def put_back(parts: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Restore every part; raises before anything is used if the script no longer has the same parts."""
    _require_same(set(parts), set(saved), "the script")
    for name, part in parts.items():
        _put_back(part, saved[name], name)


def require_parts(parts: Mapping[str, Any]) -> None:
    """Say at once, and not at the first save, that a part is of no kind that can be kept."""
    for name, part in parts.items():
        if not isinstance(part, dict | np.random.Generator) and not _has_state_dict(part):
            raise ScriptError(
                f"part {name!r} is a {type(part).__qualname__}, which cannot be saved",
                hint="give a dict of arrays, a numpy Generator, or something with state_dict/load_state_dict",
            )


def _capture(part: Any) -> Any:
    if isinstance(part, np.random.Generator):
        return part.bit_generator.state
    if _has_state_dict(part):
        return _without_tensors(part.state_dict())
    return part


def _put_back(part: Any, saved: Any, place: str) -> None:
    if isinstance(part, np.random.Generator):
        part.bit_generator.state = saved
    elif _has_state_dict(part):
        part.load_state_dict(_with_tensors(saved))
    else:
        _fill(part, saved, place)


def _has_state_dict(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def _fill(target: dict[Any, Any], saved: Any, place: str) -> None:
    if not isinstance(saved, dict):
        raise ScriptError(f"{place}: the checkpoint holds no dict here")
    _require_same(set(target), set(saved), place)
    for key, value in saved.items():
        target[key] = _filled(target[key], value, f"{place}/{key}")


def _filled(present: Any, saved: Any, place: str) -> Any:
    if isinstance(present, dict):
        _fill(present, saved, place)
    elif isinstance(present, np.ndarray):
        _fill_array(present, saved, place)
    elif isinstance(present, list) and isinstance(saved, list) and len(present) == len(saved):
        present[:] = [
            _filled(*pair, f"{place}/{index}") for index, pair in enumerate(zip(present, saved, strict=True))
        ]
    else:
        return saved
    return present


def _fill_array(target: np.ndarray[Any, Any], saved: Any, place: str) -> None:
    if not isinstance(saved, np.ndarray) or (saved.dtype, saved.shape) != (target.dtype, target.shape):
        kept = f"{saved.dtype} {saved.shape}" if isinstance(saved, np.ndarray) else type(saved).__name__
        raise ScriptError(
            f"{place}: the script has {target.dtype} {target.shape}, the checkpoint {kept}",
            hint="train the new shape from the beginning: point it at an empty checkpoint directory",
        )
    np.copyto(target, saved)


def _require_same(present: set[Any], saved: set[Any], place: str) -> None:
    if present != saved:
        raise ScriptError(
            f"{place}: only here {sorted(map(str, present - saved))}, "
            f"only in the checkpoint {sorted(map(str, saved - present))}",
            hint="resume with the script that wrote the checkpoint, or point it at an empty directory",
        )


def _without_tensors(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return {_TENSOR: value.detach().cpu().numpy()}
    if isinstance(value, dict):
        return {key: _without_tensors(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_tensors(item) for item in value)
    return value


def _with_tensors(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_TENSOR}:
            return importlib.import_module("torch").from_numpy(value[_TENSOR])
        return {key: _with_tensors(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_with_tensors(item) for item in value)
    return value
