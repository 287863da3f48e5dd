"""Endings: what does the way a process ended say about the job?"""

from __future__ import annotations

import signal

from wattline.engines import Result
from wattline.state import Ending
from wattline.train import FENCED_EXIT_CODE, PAUSED_EXIT_CODE

_BY_REASON = {
    "timeout": Ending.TIMED_OUT,
    "lease-lost": Ending.LOST,
    "node-lost": Ending.LOST,
    "not-started": Ending.NOT_STARTED,
    "signaled": Ending.FAILED,
}
_MEANINGS = {
    PAUSED_EXIT_CODE: "saved and left",
    FENCED_EXIT_CODE: "found that a newer attempt holds its checkpoints",
}


def ending_of(result: Result, *, pausing: bool, stopping: bool, by_signals: bool, recovered: bool) -> Ending:
    """Tell apart what the job did from what was done to it; only the first uses up its restarts.

    `by_signals` is a script that knows no pause: asked to save and finish, whatever it ends with is a pause.
    `recovered` is an attempt of an earlier control process. What ends without a result while this one looks
    on has only itself to blame: taken for lost, it would be started again without end. So would one that
    leaves as if paused, or fenced, though it was neither.
    """
    if pausing and by_signals and result.reason in ("exited", "signaled", "stopped"):
        return Ending.PAUSED
    if result.reason == "exited":
        if result.code == PAUSED_EXIT_CODE and (pausing or stopping or recovered):
            return Ending.STOPPED if stopping else Ending.PAUSED
        return Ending.SUCCEEDED if result.code == 0 else Ending.FAILED
    if result.reason == "stopped":  # also when somebody else ended its supervisor, as a shutdown does
        return Ending.STOPPED if stopping else Ending.LOST
    if result.reason == "lost":
        return Ending.LOST if recovered else Ending.FAILED
    return _BY_REASON[result.reason]


def say_of(result: Result) -> str:
    """How it ended, as one would say it."""
    if result.reason == "exited":
        return "finished" if result.code == 0 else f"exit code {result.code}{_meaning(result.code)}"
    if result.reason == "signaled":
        return f"killed by signal {result.signal}{_signal_name(result.signal)}"
    if result.reason == "timeout":
        return f"ran past its max_duration, {result.wall_seconds:.0f} s"
    return result.message or result.reason


def _meaning(code: int | None) -> str:
    """Commands run below a shell, which tells that a signal killed one of them by a code above 128."""
    if code in _MEANINGS:
        return f", {_MEANINGS[code]}"
    name = "" if code is None else _signal_name(code - 128)
    return f", killed by signal {code - 128}{name}" if code is not None and name else ""


def _signal_name(number: int | None) -> str:
    return next((f" ({known.name})" for known in signal.Signals if known == number), "")
