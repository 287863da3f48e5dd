"""Kernel: is there compiled code that splits numbers of two bytes and pairs their exponents?

It does in one pass over memory what takes NumPy a dozen, and gives the same bytes. `kernel.c` is compiled
when the package is installed; where that could not be done, or it cannot be loaded, NumPy does the work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from wattline.checkpoint.codecs.planes import Bytes, Numbers

_LIBRARY = Path(__file__).with_name("libkernel.so")
_INTERFACE = 1  # as in kernel.c

_Function = Callable[[int, int, int, int, int, int], int]


def kernel_in_use() -> str:
    """Compiled or NumPy, and then why."""
    loaded = load(_LIBRARY)
    return f"NumPy, as {loaded}" if isinstance(loaded, str) else "compiled"


def split_and_pair(numbers: Numbers, lowest: int) -> tuple[Bytes, Bytes, Bytes] | None:
    """The lower plane of turned numbers, pairs of the upper one and what is apart; None without a kernel."""
    function = load(_LIBRARY)
    if isinstance(function, str):
        return None
    raw = np.ascontiguousarray(numbers).view(np.uint8)
    count = len(raw) // 2
    pairs_at, apart_at = count, count + (count + 1) // 2
    room = np.empty(apart_at + count, np.uint8)
    start = room.ctypes.data
    apart_count = function(raw.ctypes.data, count, lowest, start, start + pairs_at, start + apart_at)
    return room[:pairs_at], room[pairs_at:apart_at], room[apart_at : apart_at + apart_count]


@cache
def load(library: Path) -> _Function | str:
    """The compiled function, or why there is none; tried once in a process."""
    if not library.exists():
        return f"{library.name} was not built when the package was installed"
    try:
        loaded = ctypes.CDLL(str(library))
        interface = loaded.wattline_kernel_interface()
        function = loaded.wattline_split_and_pair
    except (OSError, AttributeError) as error:
        return f"{library.name} cannot be loaded: {error}"
    if interface != _INTERFACE:
        return f"{library.name} has interface {interface}, not {_INTERFACE}: install the package again"
    pointer = ctypes.c_void_p
    function.argtypes = (pointer, ctypes.c_size_t, ctypes.c_uint8, pointer, pointer, pointer)
    function.restype = ctypes.c_size_t
    return function
