"""How many bytes are through? A live bar on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from wattline.units import format_bytes

_LINE_SECONDS = 10.0


class BytesProgress:
    """One bar for each thing that is on its way."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        is_live = sys.stderr.isatty() and not self._console.is_dumb_terminal
        self._bars = _bars(self._console) if is_live else None
        self._tasks: dict[str, TaskID] = {}
        self._told_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def follow(self, label: str) -> Callable[[int, int], None]:
        """To be told the bytes that are through, and the bytes in all."""
        return lambda done, whole: self._tell(label, done, whole)

    def _tell(self, label: str, done: int, whole: int) -> None:
        said = f"{format_bytes(done)} of {format_bytes(whole)}"
        if self._bars is not None:
            if label not in self._tasks:
                self._tasks[label] = self._bars.add_task(label, total=whole, said="")
            self._bars.update(self._tasks[label], completed=done, total=whole, said=said)
        elif time.monotonic() - self._told_at > _LINE_SECONDS:
            self._told_at = time.monotonic()
            self._console.print(f"{label}: {said}", soft_wrap=True)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[said]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
