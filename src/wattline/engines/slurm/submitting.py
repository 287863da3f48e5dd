"""Submitting: how does an attempt become a job, exactly one, though any call may be lost on the way?

A submission whose answer was lost is looked for by name and folder before it is made again. Should that miss
it, the attempt's orders still go to one job alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from wattline.engines.files import ORDERS
from wattline.engines.slurm.attempt import SlurmAttempt
from wattline.engines.slurm.cluster import Cluster, SlurmDownError
from wattline.errors import UnavailableError, WattlineError

_AGAIN_SECONDS = 2.0


class Submitter:
    """One call after the other in the background; what Slurm did not answer is asked again."""

    def __init__(self, cluster: Cluster, wake: threading.Event) -> None:
        self._cluster = cluster
        self._wake = wake
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wattline-sbatch")
        self._asked: dict[str, Future[str]] = {}
        self._waiting: dict[str, SlurmAttempt] = {}
        self._sought: set[str] = set()
        self._again_at = 0.0
        self._is_closed = False

    def add(self, attempt: SlurmAttempt, *, sought: bool) -> None:
        """`sought`: it may have been submitted before."""
        self._waiting[attempt.attempt] = attempt
        if sought:
            self._sought.add(attempt.attempt)
        self._begin()

    def cancel(self, attempt: SlurmAttempt) -> None:
        """Nothing waits for the answer: who is still there is cancelled again."""
        if not self._is_closed:
            self._thread.submit(self._cluster.cancel, attempt.job, attempt.attempt)

    def turn(self, *, is_down: bool) -> Iterator[tuple[SlurmAttempt, str | WattlineError]]:
        """Attempts that have a job now, or never will have one."""
        for name, asked in list(self._asked.items()):
            if not asked.done():
                continue
            del self._asked[name]
            attempt = self._waiting[name]
            try:
                outcome: str | WattlineError = asked.result()
            except SlurmDownError:
                self._sought.add(name)
                self._again_at = time.monotonic() + _AGAIN_SECONDS
                continue
            except WattlineError as error:
                outcome = error
            except OSError as error:
                outcome = UnavailableError(f"attempt {name}: {error}")
            del self._waiting[name]
            self._sought.discard(name)
            yield attempt, outcome
        if not is_down and time.monotonic() >= self._again_at:
            self._begin()

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=False)  # a cancellation that waits in line is not dropped

    def _begin(self) -> None:
        if self._is_closed:
            return
        for name, attempt in self._waiting.items():
            if name not in self._asked:
                asked = self._thread.submit(self._submit, attempt, name in self._sought)
                asked.add_done_callback(lambda _: self._wake.set())
                self._asked[name] = asked

    def _submit(self, attempt: SlurmAttempt, sought: bool) -> str:
        asked = attempt.recorded.submission
        if sought and (found := self._cluster.find(attempt.attempt, attempt.directory)):
            return found
        if asked is None or not (attempt.directory / ORDERS).exists():
            return ""  # it has run, or was taken back; Slurm has forgotten it
        return self._cluster.submit(asked)
