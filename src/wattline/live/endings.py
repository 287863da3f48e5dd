"""Endings: what does the way a process ended say about the job?"""

from __future__ import annotations

from wattline.engines import Result
from wattline.state import Ending

# What the training runtime exits with: saved and left, or found that a newer attempt has taken over.
PAUSED_EXIT_CODE = 75
FENCED_EXIT_CODE = 76

_BY_REASON = {
    "timeout": Ending.TIMED_OUT,
    "stopped": Ending.STOPPED,
    "lease-lost": Ending.LOST,
    "lost": Ending.LOST,
    "not-started": Ending.NOT_STARTED,
    "signaled": Ending.FAILED,
}


def ending_of(result: Result, *, pausing: bool, stopping: bool, by_signals: bool) -> Ending:
    """Tell apart what the job did from what was done to it.

    `by_signals` is a script that knows no pause: asked to save and finish, whatever it ends with is a pause.
    """
    if pausing and by_signals and result.reason in ("exited", "signaled", "stopped"):
        return Ending.PAUSED
    if result.reason == "exited":
        if result.code == 0:
            return Ending.SUCCEEDED
        if result.code == PAUSED_EXIT_CODE:
            return Ending.STOPPED if stopping else Ending.PAUSED
        return Ending.LOST if result.code == FENCED_EXIT_CODE else Ending.FAILED
    return _BY_REASON[result.reason]


def say_of(result: Result) -> str:
    """How it ended, as one would say it."""
    if result.reason == "exited":
        return "finished" if result.code == 0 else f"exit code {result.code}"
    if result.reason == "signaled":
        return f"killed by signal {result.signal}"
    if result.reason == "timeout":
        return f"ran past its max_duration, {result.wall_seconds:.0f} s"
    return result.message or result.reason
