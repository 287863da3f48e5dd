"""What did an evaluation measure?"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from wattline.errors import UnavailableError

MOST_BYTES = 2**20
LONGEST_NAME = 200
_EXAMPLE = 'write one object of names and numbers, such as {"accuracy": 0.93}'


def read_metrics(path: Path) -> dict[str, float]:
    """A flat JSON object of names and numbers.

    NaN and Infinity come through, as Python's own json writes them: a loss that diverged should fail its
    gate, not hide behind a file that cannot be read.
    """
    try:
        text = _read_bounded(path)
        pairs = json.loads(text, object_pairs_hook=tuple)
    except OSError as error:
        raise UnavailableError(f"metrics {path}: {error.strerror or error}", hint=_EXAMPLE) from error
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"metrics {path}: not JSON: {error}", hint=_EXAMPLE) from error
    if not isinstance(pairs, tuple):
        raise UnavailableError(f"metrics {path}: not an object but {_shown(pairs)}", hint=_EXAMPLE)
    metrics: dict[str, float] = {}
    for name, value in pairs:
        if name in metrics:
            raise UnavailableError(f"metrics {path}: {name!r} is there twice", hint="write each metric once")
        if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
            raise UnavailableError(
                f"metrics {path}: a name has 1 to {LONGEST_NAME} printable characters, got {name[:40]!r}",
                hint=_EXAMPLE,
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnavailableError(
                f"metrics {path}: {name!r} is {_shown(value)}, not a number", hint=_EXAMPLE
            )
        metrics[name] = _as_float(value)
    return metrics


def _read_bounded(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnavailableError(f"metrics {path}: not a regular file", hint=_EXAMPLE)
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnavailableError(f"metrics {path}: more than {MOST_BYTES} bytes", hint=_EXAMPLE)
    return data.decode("utf-8")


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _shown(value: object) -> str:
    """A value as a short word: what it is, not all it holds."""
    if isinstance(value, tuple):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)[:40]
