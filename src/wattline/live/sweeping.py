"""Sweeping: who looks for what runs for nobody, and gives back what it holds?

Whoever made an allocation may have died before its teardown, or have asked for that while nobody answered. It
is looked for when a control process starts, and every few minutes from then on, in a thread of its own; where
the engine does not answer, again soon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

from wattline.engines import Engine
from wattline.errors import WattlineError
from wattline.state import Event, Noticed

_AGAIN_SECONDS = 300.0
_SOON_SECONDS = 5.0
# An attempt begins while others are looked at; calendars may be set back meanwhile.
_SPARED_SECONDS = 60.0


class Sweeper:
    """For one engine and one state folder."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine, self._root = engine, root
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wattline-sweep")
        self._looking: Future[list[str]] | None = None
        self._next_at = 0.0
        self._is_in_trouble = self._is_closed = False

    def look_now(self, known: Collection[Path], at: float) -> list[Event]:
        """Before anything is under way; waits for the answer."""
        if self._is_closed:
            return []
        self._looking = self._thread.submit(self._engine.sweep, self._root, known)
        return self._told(self._looking, at)

    def poll(self, known: Callable[[], Collection[Path]], at: float) -> list[Event]:
        """What was swept meanwhile; looks again when that is due."""
        found: list[Event] = []
        if self._looking is not None and self._looking.done():
            found = self._told(self._looking, at)
        if self._looking is None and time.monotonic() >= self._next_at and not self._is_closed:
            before = time.time() - _SPARED_SECONDS
            self._looking = self._thread.submit(self._engine.sweep, self._root, known(), before)
        return found

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _told(self, looking: Future[list[str]], at: float) -> list[Event]:
        try:
            said, wait_seconds = looking.result(), _AGAIN_SECONDS
            self._is_in_trouble = False
        except CancelledError:
            return []
        except (WattlineError, OSError) as error:
            was_in_trouble, self._is_in_trouble = self._is_in_trouble, True
            words = error.message if isinstance(error, WattlineError) else str(error)
            said, wait_seconds = [f"what nobody holds could not be looked for: {words}"], _SOON_SECONDS
            if was_in_trouble:  # told once, until it answers again
                said = []
        self._looking, self._next_at = None, time.monotonic() + wait_seconds
        return [Noticed(at=at, subject=self._engine.name, say=one) for one in said]
