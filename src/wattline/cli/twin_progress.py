"""How far has the twin come? A live bar on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from wattline.cli.printing import plain
from wattline.twin.run import Glimpse
from wattline.twin.wording import one_line

INTERRUPTED_EXIT_CODE = 130
_REFRESH_SECONDS = 0.125
_LINE_SECONDS = 10.0
_DAY_SECONDS = 86400.0
_WIDEST_LABEL = 20  # what a bar and its figures leave of eighty columns


@dataclass(slots=True)
class _Run:
    began: float
    ended_before: int
    shown_at: float
    task: TaskID | None


class TwinProgress:
    """The runs that are under way. Ctrl-C inside it ends the command, with a sentence."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        is_live = sys.stderr.isatty() and not self._console.is_dumb_terminal
        self._bars = _bars(self._console) if is_live else None
        self._runs: dict[str, _Run] = {}
        self._reached = ""

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            where = f" at {self._reached}" if self._reached else ""
            sys.stderr.write(f"wattline: interrupted{where}; there is no report\n")
            raise SystemExit(INTERRUPTED_EXIT_CODE) from None

    def say(self, text: str) -> None:
        """A line that stays, above whatever moves."""
        self._console.print(plain(text), soft_wrap=True)

    def tell(self, label: str, glimpse: Glimpse, jobs: int, until_seconds: float | None = None) -> None:
        """How far one run of so many jobs has come; it is shown now and then."""
        now = time.monotonic()
        run = self._runs.get(label) or self._begin(label, now, glimpse.ended)
        if now - run.shown_at < (_LINE_SECONDS if self._bars is None else _REFRESH_SECONDS):
            return
        run.shown_at = now
        said = say_glimpse(glimpse, jobs)
        self._reached = f"{label}: {said}" if label else said
        rate = f"{(glimpse.ended - run.ended_before) / (now - run.began):,.0f} jobs/s"
        if self._bars is None or run.task is None:
            self.say(f"{self._reached}, {rate}")
            return
        self._bars.update(run.task, completed=share_of(glimpse, jobs, until_seconds), said=f"{said}, {rate}")
        self._bars.refresh()

    def end(self, label: str) -> None:
        """That run is over: its bar goes."""
        run = self._runs.pop(label, None)
        if self._bars is not None and run is not None and run.task is not None:
            self._bars.remove_task(run.task)

    def _begin(self, label: str, now: float, ended: int) -> _Run:
        task = None
        if self._bars is not None:
            task = self._bars.add_task(one_line(plain(label), _WIDEST_LABEL), total=1.0, said="")
        self._runs[label] = run = _Run(began=now, ended_before=ended, shown_at=now, task=task)
        return run


def say_glimpse(glimpse: Glimpse, jobs: int) -> str:
    day = glimpse.passed_seconds // _DAY_SECONDS + 1
    return f"{glimpse.ended:,} of {jobs:,} jobs, day {day:,.0f}, {glimpse.waiting:,} waiting"


def share_of(glimpse: Glimpse, jobs: int, until_seconds: float | None) -> float:
    """Of the whole run, which ends with its jobs or its time."""
    by_time = glimpse.passed_seconds / until_seconds if until_seconds else 0.0
    return min(1.0, max(by_time, glimpse.ended / jobs))


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[said]}", markup=False),
        console=console,
        # Refreshed by hand: a thread would take its share of the core that runs the twin.
        auto_refresh=False,
        transient=True,
        expand=True,
        # Data on stdout is never drawn around.
        redirect_stdout=False,
        redirect_stderr=False,
    )
