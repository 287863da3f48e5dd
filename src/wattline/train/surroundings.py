"""Surroundings: was this script started by a control plane, and what was it given?

Everything comes from the environment. Without it the script runs alone: no mailbox, no checkpoints unless it
asks for them, results in `./out`.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wattline.checkpoint import AutoCadence
from wattline.train.errors import ScriptError

DEFAULT_CADENCE = "seconds:30"
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often to save: every so many steps, or every so many seconds."""

    steps: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> Cadence:
        unit, _, amount = text.partition(":")
        try:
            if unit == "steps" and int(amount) >= 1:
                return cls(steps=int(amount))
            if unit == "seconds" and 0 < float(amount) < math.inf:
                return cls(seconds=float(amount))
        except ValueError:
            pass  # the sentence below says more than Python's own
        raise ScriptError(
            f"WATTLINE_CHECKPOINT_EVERY is {text!r}", hint="write auto, or steps:50 or seconds:30, above zero"
        )

    def is_due(self, *, steps: int, seconds: float) -> bool:
        """Is it time, so many steps and seconds after the last save?"""
        if self.steps is not None:
            return steps >= self.steps
        return self.seconds is not None and seconds >= self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the environment says; `attempt` is set when a control plane watches."""

    attempt: Path | None
    epoch: int
    checkpoints: Path | None
    cadence: Cadence | AutoCadence
    keep: int | None
    travels: bool  # checkpoints are copied to other sites as they come
    out: Path
    cpus: int
    lineage: Mapping[str, str]
    gpus: int = 0  # as many as it was given; an elastic phase may get fewer or more than it asked for
    rehearsed_steps: int | None = None  # of a tiny pass before the run; None: it is no rehearsal

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Surroundings:
        """Relative paths are fixed now: a script that changes directory keeps its places."""
        lineage = {
            name: environment[variable]
            for name, variable in (("run", "WATTLINE_RUN"), ("phase", "WATTLINE_PHASE"))
            if variable in environment
        }
        return cls(
            attempt=_path(environment, "WATTLINE_ATTEMPT"),
            epoch=_whole(environment, "WATTLINE_EPOCH", at_least=0) or 0,
            checkpoints=_path(environment, "WATTLINE_CHECKPOINTS"),
            cadence=_cadence(environment.get("WATTLINE_CHECKPOINT_EVERY") or DEFAULT_CADENCE),
            keep=_whole(environment, "WATTLINE_CHECKPOINT_KEEP", at_least=1),
            travels=environment.get("WATTLINE_CHECKPOINT_TRAVELS") == "1",
            out=_path(environment, "WATTLINE_OUT") or Path("out").absolute(),
            cpus=_whole(environment, "WATTLINE_CPUS", at_least=1) or len(os.sched_getaffinity(0)),
            lineage=lineage,
            gpus=_whole(environment, "WATTLINE_GPUS", at_least=0) or 0,
            rehearsed_steps=_whole(environment, "WATTLINE_REHEARSE", at_least=1),
        )


def _cadence(text: str) -> Cadence | AutoCadence:
    return AutoCadence.from_text(text) if text.partition(":")[0] == "auto" else Cadence.parse(text)


def warn_unless_pinned(environment: Mapping[str, str] = os.environ) -> None:
    """More than one BLAS thread hides work from `in_flight` and may change the last bits of a sum."""
    everywhere = environment.get("OMP_NUM_THREADS")
    loose = [name for name in _THREAD_VARIABLES if environment.get(name, everywhere) != "1"]
    if loose:
        warnings.warn(
            f"BLAS threads are not pinned: set OMP_NUM_THREADS=1 ({' and '.join(loose)} would follow it)",
            RuntimeWarning,
            stacklevel=3,
        )


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return Path(text).absolute() if text else None


def _whole(environment: Mapping[str, str], name: str, *, at_least: int) -> int | None:
    text = environment.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= at_least):
        raise ScriptError(f"{name} is {text[:40]!r}", hint=f"write a whole number of at least {at_least}")
    return int(text)
