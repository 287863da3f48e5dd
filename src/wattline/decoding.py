"""Decoding: how does JSON become a value of a type, in whichever thread?

msgspec keeps with a type what it knows of it, and puts that there before it is complete: a second thread that
decodes the same type for the first time meanwhile ends the process. Here one at a time makes a type ready.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_ready: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = threading.Lock()


def decode_json(data: bytes | str, kind: type[T]) -> T:
    """A value of this type; raises as msgspec does."""
    decoder: msgspec.json.Decoder[T] | None = _ready.get(kind)
    if decoder is None:
        with _making:
            decoder = msgspec.json.Decoder(kind)
        _ready[kind] = decoder
    return decoder.decode(data)
