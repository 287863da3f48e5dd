"""Staging: how does a save get a copy of the state while training goes on?

What may change at any moment is copied before `begin` returns. What its owner keeps still for a while, such
as parameters until the optimizer's next step, is copied behind the owner's back, who waits for it before the
change. A change that came all the same is found where it can be, and then nothing is saved.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.tensors import Array

_COPIERS = min(4, len(os.sched_getaffinity(0)))
_SMALL_BYTES = 64 * 1024  # up to there copying takes less time than arranging for it
_GLANCES = 64


class DisturbedError(CheckpointError):
    """What was promised to hold still was changed while it was copied: that copy is of no moment in time."""


@dataclass(frozen=True, slots=True, eq=False)
class Still:
    """A leaf of the tree: an array that its owner changes only after `Series.release`.

    `has_changed` tells of changes since it was made that the owner can see.
    """

    array: Array
    has_changed: Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class _Watched:
    place: str
    still: Still
    buffer: Array
    seen: bytes


class Staging:
    """Copies a tree, into buffers that are there already where they fit: new memory costs more than that."""

    def __init__(self, spare: dict[str, Array], *, trusts: bool = True) -> None:
        self._spare, self._trusts = spare, trusts
        self._copies: list[tuple[Array, Array]] = []  # into which, from which
        self._watched: list[_Watched] = []
        self._is_copied = self._is_over = False
        self._disturbed: str | None = None
        self._lock = threading.Lock()

    def stage(self, tree: Any) -> Any:
        """The same tree with arrays of its own; those that hold still are filled by `copy_watched`.

        What `tree.encode` refuses, such as a masked array, stays as it is and is refused there.
        """
        staged = self._stage(tree, "")
        if self._copies:  # one thread does not take all that memory gives
            with ThreadPoolExecutor(_COPIERS, thread_name_prefix="copy") as pool:
                list(pool.map(lambda each: np.copyto(*each), self._copies))
            self._copies.clear()
        return staged

    def _stage(self, value: Any, place: str) -> Any:
        if type(value) in (np.ndarray, np.memmap):
            buffer = self._buffer(value, place)
            if value.nbytes < _SMALL_BYTES:
                np.copyto(buffer, value)
            else:
                self._copies.append((buffer, value))
            return buffer
        if type(value) is Still:
            array = value.array
            if not self._trusts or array.nbytes < _SMALL_BYTES or not array.flags.c_contiguous:
                return self._stage(array, place)
            buffer = self._buffer(array, place)
            self._watched.append(_Watched(place, value, buffer, _glance(array)))
            return buffer
        if isinstance(value, dict):
            return {key: self._stage(item, f"{place}/{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):  # a named tuple is kept as a tuple
            staged = [self._stage(item, f"{place}/{index}") for index, item in enumerate(value)]
            return staged if isinstance(value, list) else tuple(staged)
        return value

    def _buffer(self, array: Array, place: str) -> Array:
        buffer = self._spare.pop(place, None)
        if buffer is None or (buffer.dtype, buffer.shape) != (array.dtype, array.shape):
            buffer = np.empty(array.shape, array.dtype)
        return buffer

    def copy_watched(self) -> None:
        """What holds still; returns when it need not any longer."""
        for each in self._watched:
            np.copyto(each.buffer, each.still.array)
        for each in self._watched:
            if _glance(each.buffer) != each.seen:
                self._disturbed = self._disturbed or each.place
        self._is_copied = True

    def let_go(self) -> None:
        """By the owner, before the first change that is allowed: from now on changes mean nothing."""
        with self._lock:
            self._look()
            self._is_over = True

    def require_undisturbed(self) -> None:
        """Raise where the copy may be of no moment in time."""
        assert self._is_copied
        with self._lock:
            self._look()
            if self._disturbed is not None:
                raise DisturbedError(
                    f"{self._disturbed.lstrip('/')} was changed while it was copied",
                    hint="nothing to do: this save is left out, and the next copies everything at once",
                )

    def _look(self) -> None:
        if self._is_over or self._disturbed is not None:
            return
        self._disturbed = next((each.place for each in self._watched if each.still.has_changed()), None)


def _glance(array: Array) -> bytes:
    """A few numbers from all over it: shows most changes, also those that nobody counted."""
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // _GLANCES)].tobytes()
