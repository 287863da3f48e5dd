"""Parts: how is each thing a script trains with captured, and put back exactly as it was?

A part is a nested dict of arrays, tensors and plain values (restored in place, so that the script's own
references see it), a NumPy Generator, or anything that gives its state and takes it back: a module, an
optimizer, a scheduler, a gradient scaler, `random`, `numpy.random`, `torch`, and what has the same methods.
Tensors travel as arrays that share their memory; torch is never imported here unless a checkpoint holds some.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from wattline.checkpoint import Still
from wattline.checkpoint.export import MARKERS, SCALAR, STATE_DICT, TENSOR, Tensor, state_dict_in, tensor_in
from wattline.checkpoint.export import to_torch as tensor_to_torch
from wattline.train.errors import ScriptError

_STATES = (
    ("state_dict", "load_state_dict"),  # torch, and what follows its example
    ("getstate", "setstate"),  # random
    ("get_state", "set_state"),  # numpy.random, RandomState, torch.Generator
    ("get_rng_state", "set_rng_state"),  # torch, torch.cuda
)
_NUMPY_HAS = frozenset(
    {"bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32"}
    | {"uint64", "int64", "float64", "complex64", "complex128"}
)
_NONE: frozenset[int] = frozenset()
_BITS = {1: "uint8", 2: "uint16", 4: "uint32"}


def capture(parts: Mapping[str, Any], *, until_step: bool = False) -> dict[str, Any]:
    """The state of every part as a tree that a checkpoint can hold; arrays are not copied.

    `until_step`: what a torch optimizer among the parts changes, and only in its step, is marked as still.
    """
    owned = frozenset(_owned_by_optimizers(parts)) if until_step else _NONE
    return {name: _captured(part, name, owned) for name, part in parts.items()}


def call_before_steps(release: Callable[[], None]) -> bool:
    """Have every torch optimizer of this process call this before it steps; False while there is no torch.

    Held weakly: a hook cannot be taken out while another thread steps.
    """
    optimizers = sys.modules.get("torch.optim.optimizer")
    if optimizers is None:
        return False
    held = weakref.WeakMethod(release)

    def hook(*_: Any) -> None:
        if (alive := held()) is not None:
            alive()

    optimizers.register_optimizer_step_pre_hook(hook)
    return True


def put_back(parts: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Restore every part; raises before anything is used if the script no longer has the same parts."""
    _require_same(set(parts), set(saved), "the script")
    for name, part in parts.items():
        _filled(part, saved[name], name)


def require_parts(parts: Mapping[str, Any]) -> None:
    """Say at once, and not at the first save, that a part is of no kind that can be kept."""
    for name, part in parts.items():
        if not isinstance(part, dict | np.random.Generator) and _state_methods(part) is None:
            raise ScriptError(
                f"part {name!r} is a {type(part).__qualname__}, which cannot be saved",
                hint="give a dict of arrays, a numpy Generator, or something with state_dict/load_state_dict",
            )


def _owned_by_optimizers(value: Any) -> Iterator[int]:
    """Where the memory begins of all that the torch optimizers among the parts change."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if isinstance(value, torch.optim.Optimizer):
        for group in value.param_groups:
            yield from _memory(group["params"], torch)
        yield from _memory(value.state, torch)
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _owned_by_optimizers(item)


def _memory(value: Any, torch: Any) -> Iterator[int]:
    if isinstance(value, torch.Tensor):
        if value.device.type == "cpu" and value.layout is torch.strided and not value.is_inference():
            yield value.untyped_storage().data_ptr()
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _memory(item, torch)


def _captured(value: Any, place: str, owned: frozenset[int]) -> Any:
    """What the script holds: a thing that has a state is represented by it."""
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    methods = _state_methods(value)
    if methods is not None:
        return _plain(getattr(value, methods[0])(), place, owned)
    if isinstance(value, dict):
        _require_no_marker(value, place)
        return {key: _captured(item, f"{place}/{key}", owned) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_captured(item, f"{place}/{index}", owned) for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    return _plain(value, place, owned)


def _plain(value: Any, place: str, owned: frozenset[int]) -> Any:
    """What a state consists of; nothing of it is there when it comes back, so each value says what it is."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _tensor_node(value, torch, place, owned)
    if isinstance(value, np.generic):
        return {SCALAR: np.asarray(value)}
    if isinstance(value, dict):
        _require_no_marker(value, place)
        items = {key: _plain(item, f"{place}/{key}", owned) for key, item in value.items()}
        metadata = getattr(value, "_metadata", None)
        return items if metadata is None else {STATE_DICT: items, "metadata": _plain(metadata, place, _NONE)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        raise ScriptError(
            f"{place}: a {type(value).__qualname__} would come back as a plain tuple",
            hint="give a dict or a tuple in its state_dict, and make the named tuple in load_state_dict",
        )
    if isinstance(value, list | tuple):
        items_of = [_plain(item, f"{place}/{index}", owned) for index, item in enumerate(value)]
        return items_of if isinstance(value, list) else tuple(items_of)
    return value


def _tensor_node(tensor: Any, torch: Any, place: str, owned: frozenset[int]) -> dict[str, Any]:
    reason = _why_not(tensor, torch)
    if reason is not None:
        raise ScriptError(f"{place}: {reason[0]} cannot be kept in a checkpoint", hint=reason[1])
    here = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = str(here.dtype).removeprefix("torch.")
    array = here.numpy() if name in _NUMPY_HAS else _bits(here, torch).numpy()
    leaf = _still(array, tensor) if owned and here.untyped_storage().data_ptr() in owned else array
    return {TENSOR: leaf} if name in _NUMPY_HAS else {TENSOR: leaf, "dtype": name}


def _still(array: np.ndarray[Any, Any], tensor: Any) -> Still:
    """torch counts the changes of a tensor, all but those past it: by `.data`, or through NumPy."""
    version = tensor._version  # noqa: SLF001  the name it has had all along
    return Still(array, lambda: bool(tensor._version != version))  # noqa: SLF001


def _why_not(tensor: Any, torch: Any) -> tuple[str, str] | None:
    if torch.nn.parameter.is_lazy(tensor):
        return "a parameter that is not initialised yet", "run the model once before the first save"
    if tensor.is_nested:
        return "a nested tensor", "keep its values and offsets, or pad it"
    if tensor.layout is not torch.strided:
        layout = str(tensor.layout).removeprefix("torch.")
        return f"a tensor of layout {layout}", "keep it dense, or its indices and values"
    if tensor.is_quantized:
        return "a quantised tensor", "keep its int_repr() with the scale and zero point"
    if tensor.device.type == "meta":
        return "a tensor without data (on the meta device)", "give it a device first"
    if type(tensor.detach()) is not torch.Tensor:
        kind = type(tensor)
        return f"a {kind.__module__}.{kind.__qualname__}", "keep the plain tensors that it is made of"
    return None


def _bits(tensor: Any, torch: Any) -> Any:
    """The same memory as whole numbers where NumPy has no such type, and torch not every operation."""
    if str(tensor.dtype).removeprefix("torch.") in _NUMPY_HAS:
        return tensor
    return tensor.view(getattr(torch, _BITS[tensor.element_size()]))


def _restored(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        if SCALAR in value:
            return value[SCALAR][()]
        if TENSOR in value:
            return tensor_to_torch(_tensor(value, place), place)
        if STATE_DICT in value:
            return state_dict_in(value, lambda item, key: _restored(item, f"{place}/{key}"))
        return {key: _restored(item, f"{place}/{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_restored(item, f"{place}/{index}") for index, item in enumerate(value))
    return value


def _filled(present: Any, saved: Any, place: str) -> Any:
    """What the script shall hold: what it has, changed in place, wherever that can be."""
    torch = sys.modules.get("torch")
    methods = _state_methods(present)
    if isinstance(present, np.random.Generator):
        present.bit_generator.state = saved
    elif methods is not None:
        getattr(present, methods[1])(_restored(saved, place))
    elif isinstance(present, dict):
        _fill(present, saved, place)
    elif isinstance(present, np.ndarray):
        return _filled_array(present, saved, place)
    elif torch is not None and isinstance(present, torch.Tensor):
        return _filled_tensor(present, saved, torch, place)
    elif isinstance(present, list | tuple) and isinstance(saved, list | tuple) and len(present) == len(saved):
        pairs = enumerate(zip(present, saved, strict=True))
        items = [_filled(*pair, f"{place}/{index}") for index, pair in pairs]
        if isinstance(present, list):
            present[:] = items
        else:
            return type(present)._make(items) if hasattr(present, "_make") else tuple(items)
    else:
        return _restored(saved, place)
    return present


def _fill(target: dict[Any, Any], saved: Any, place: str) -> None:
    if not isinstance(saved, dict) or not MARKERS.isdisjoint(saved):
        raise ScriptError(f"{place}: the checkpoint holds no dict here")
    _require_same(set(target), set(saved), place)
    for key, value in saved.items():
        target[key] = _filled(target[key], value, f"{place}/{key}")


def _filled_array(target: np.ndarray[Any, Any], saved: Any, place: str) -> np.ndarray[Any, Any]:
    if not isinstance(saved, np.ndarray) or (saved.dtype, saved.shape) != (target.dtype, target.shape):
        raise _changed(place, f"{target.dtype} {target.shape}", saved)
    if not target.flags.writeable:  # nobody has changed it in place either
        return saved
    np.copyto(target, saved)
    return target


def _filled_tensor(target: Any, saved: Any, torch: Any, place: str) -> Any:
    described = f"{target.dtype} {tuple(target.shape)}"
    if not isinstance(saved, dict) or TENSOR not in saved:
        raise _changed(place, described, saved)
    tensor = tensor_to_torch(_tensor(saved, place), place)
    if (tensor.dtype, tensor.shape) != (target.dtype, target.shape):
        raise _changed(place, described, saved)
    if any(stride == 0 and size > 1 for stride, size in zip(target.stride(), target.shape, strict=True)):
        return tensor.to(target.device)  # expanded: one place in memory cannot be written for several
    _bits(target.detach(), torch).copy_(_bits(tensor, torch))
    return target


def _changed(place: str, present: str, saved: Any) -> ScriptError:
    tensor = tensor_in(saved)
    if tensor is None:
        kept = type(saved).__name__
    else:
        kind = "" if isinstance(saved, np.ndarray) else "torch."
        kept = f"{kind}{tensor.dtype or tensor.array.dtype} {tensor.array.shape}"
    return ScriptError(
        f"{place}: the script has {present}, the checkpoint {kept}",
        hint="train the new shape from the beginning: point it at an empty checkpoint directory",
    )


def _tensor(value: dict[Any, Any], place: str) -> Tensor:
    tensor = tensor_in(value)
    if tensor is None:
        raise ScriptError(f"{place}: what the checkpoint holds here is not a tensor")
    return tensor


def _state_methods(value: Any) -> tuple[str, str] | None:
    return next((pair for pair in _STATES if all(hasattr(value, name) for name in pair)), None)


def _require_no_marker(value: dict[Any, Any], place: str) -> None:
    taken = MARKERS.intersection(value)
    if taken:
        raise ScriptError(f"{place}: the key {min(taken)!r} has a meaning of its own", hint="rename it")


def _require_same(present: set[Any], saved: set[Any], place: str) -> None:
    if present != saved:
        raise ScriptError(
            f"{place}: only here {sorted(map(str, present - saved))}, "
            f"only in the checkpoint {sorted(map(str, saved - present))}",
            hint="resume with the script that wrote the checkpoint, or point it at an empty directory",
        )
