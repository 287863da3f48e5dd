"""What does a plain YAML scalar mean? The YAML 1.2 core schema, so that `no`, `on` and `22:30` stay text."""

from __future__ import annotations

import math
import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})

# int() refuses very long digit strings, and no figure in a document has this many.
_LONGEST_NUMBER = 64


def resolve(text: str) -> object:
    """The value of a scalar written without quotes."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text in _NAN:
        return math.nan
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite[1] == "-" else math.inf
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INT.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
