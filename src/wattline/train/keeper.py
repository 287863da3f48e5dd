"""Keeper: when is this run's state saved, and where does it continue?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattline import checkpoint
from wattline.train.errors import ScriptError
from wattline.train.parts import capture, put_back
from wattline.train.surroundings import Cadence


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The checkpoint that holds the state of a step; `seconds` is what saving it took."""

    step: int
    path: Path
    digest: str
    total_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where the run continues; no path when every checkpoint was damaged and it starts again."""

    step: int
    path: Path | None
    rejected: tuple[checkpoint.Rejected, ...]


class Keeper:
    """One run's use of one checkpoint repository."""

    def __init__(
        self, root: Path, *, epoch: int, cadence: Cadence, keep: int | None, lineage: Mapping[str, str]
    ) -> None:
        self._root = root
        self._epoch = epoch
        self._cadence = cadence
        self._keep = keep
        self._lineage = lineage
        self._last: Kept | None = None
        self._tried_step = 0
        self._tried_at = time.monotonic()

    def resume(self, parts: Mapping[str, Any]) -> Resumed | None:
        """Put every part back as the newest good checkpoint has it; None when there is nothing yet.

        Older attempts are fenced off first, so that what is read here is the last they published.
        """
        checkpoint.fence(self._root, self._epoch)
        try:
            restored = checkpoint.restore(self._root)
        except checkpoint.NothingUsableError as error:
            warnings.warn(f"starting from the beginning: {error.message}", RuntimeWarning, stacklevel=4)
            return Resumed(step=0, path=None, rejected=error.rejected)
        if restored is None:
            return None
        if not isinstance(restored.tree, dict):
            raise ScriptError(f"{restored.path}: was not written by a training run")
        put_back(parts, restored.tree)
        self._tried_step = restored.step
        self._last = Kept(
            step=restored.step,
            path=restored.path,
            digest=restored.digest,
            total_bytes=restored.total_bytes,
            seconds=0.0,
        )
        return Resumed(step=restored.step, path=restored.path, rejected=restored.rejected)

    def is_due(self, step: int) -> bool:
        """Has the cadence come round?"""
        return self._cadence.is_due(steps=step - self._tried_step, seconds=time.monotonic() - self._tried_at)

    def keep(self, parts: Mapping[str, Any], step: int) -> Kept:
        """Save, unless this very step is saved already. A failed save waits for the next turn as well."""
        self._tried_step, self._tried_at = step, time.monotonic()
        if self._last is not None and self._last.step == step:
            return self._last
        saved = checkpoint.save(
            self._root,
            capture(parts),
            step=step,
            epoch=self._epoch,
            keep=self._keep,
            lineage=self._lineage,
        )
        seconds = time.monotonic() - self._tried_at
        self._tried_at = time.monotonic()
        self._last = Kept(
            step=step, path=saved.path, digest=saved.digest, total_bytes=saved.total_bytes, seconds=seconds
        )
        return self._last
