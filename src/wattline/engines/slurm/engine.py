"""The Slurm engine: attempts as batch jobs, each under a supervisor on its node.

Slurm is asked for three things: to start a job, to list them all about once a second, and to end one that
does not obey. Everything else goes through the attempt's folder on the shared file system, so that pausing,
throttling and hearing of an end also work while slurmctld is away.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from wattline.engines.contract import (
    EngineEvent,
    Launch,
    NodeSeen,
    Result,
    UnknownAttemptError,
    check_share,
)
from wattline.engines.desired import Desired
from wattline.engines.files import LAUNCH, ORDERS, write_document
from wattline.engines.ordering import orders_of, record_launch
from wattline.engines.recovery import lost, read_result
from wattline.engines.slurm.attempt import Sight, SlurmAttempt
from wattline.engines.slurm.client import SlurmClient
from wattline.engines.slurm.cluster import Cluster
from wattline.engines.slurm.folders import hand_over, user_of
from wattline.engines.slurm.listing import OVER, QueuedJob
from wattline.engines.slurm.submission import (
    PASSES_ON,
    SlurmOptions,
    submission_of,
)
from wattline.engines.slurm.submitting import Submitter
from wattline.engines.slurm.sweeping import sweep
from wattline.engines.slurm.wanted import Wanted
from wattline.engines.slurm.watching import QueueWatch
from wattline.errors import UnavailableError

PERIOD_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.1
_RENEW_SECONDS = 3.0


class SlurmEngine:
    """A LeasedEngine on one cluster, for one control process and one thread of it. Attempts outlive both:
    those with a lease for as long as it is renewed, the others for as long as they need."""

    name = "slurm"

    def __init__(
        self,
        options: SlurmOptions | None = None,
        cluster: Cluster | None = None,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self.options = options or SlurmOptions()
        self._cluster: Cluster = cluster or SlurmClient()
        self._wake = threading.Event()
        self._watch = QueueWatch(self._cluster, period_seconds, self._wake)
        self._submitter = Submitter(self._cluster, self._wake)
        self._running: dict[str, SlurmAttempt] = {}
        self._ended: set[str] = set()
        self._own_jobs: set[str] = set()
        self._queue: dict[str, QueuedJob] = {}
        self._is_up: dict[str, bool] = {}
        self._was_down = False

    def look_now(self) -> None:
        """See the queue before the first poll tells of it; trouble is told then, too."""
        self._watch.look_now()

    def start(self, launch: Launch) -> None:
        if launch.attempt in self._running or launch.attempt in self._ended:
            return
        directory = launch.directory.resolve()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            was_begun = (directory / LAUNCH).exists()
            if not was_begun:
                self._lay_out(launch, directory)
        except OSError as error:
            raise UnavailableError(
                f"attempt {launch.attempt}: its orders could not be written to {directory}: {error}",
                hint="check the folder's space and rights; nodes must see it under the same path",
            ) from error
        self._take_on(SlurmAttempt(directory), sought=was_begun)

    def throttle(self, attempt: str, duty: float) -> None:
        check_share(attempt, "duty", duty)
        for known in self._known(attempt):
            known.want(replace(known.wanted, duty=duty))

    def shrink(self, attempt: str, in_flight: float) -> None:
        check_share(attempt, "in_flight", in_flight)
        for known in self._known(attempt):
            known.desire(known.desired.shrunk(in_flight))

    def request_checkpoint(self, attempt: str) -> None:
        for known in self._known(attempt):
            known.desire(known.desired.with_checkpoint())
            if known.recorded.checkpoint_signal is not None:
                known.want(replace(known.wanted, checkpoint=known.wanted.checkpoint + 1))

    def request_pause(self, attempt: str) -> None:
        for known in self._known(attempt):
            if known.never_began():
                self._cancel(known)
                continue
            known.desire(known.desired.paused())
            if known.recorded.checkpoint_signal is not None:
                known.want(replace(known.wanted, pause=True))

    def freeze(self, attempt: str) -> None:
        for known in self._known(attempt):
            known.want(replace(known.wanted, frozen=True))

    def thaw(self, attempt: str) -> None:
        for known in self._known(attempt):
            known.want(replace(known.wanted, frozen=False))

    def stop(self, attempt: str) -> None:
        for known in self._known(attempt):
            if known.stop():
                self._cancel(known)

    def renew(self, attempt: str, until: float) -> None:
        """Written down for the node only now and then: a file system is shared by everybody."""
        for known in self._known(attempt):
            if until >= known.lives_until + _RENEW_SECONDS:
                known.lives_until = until
                known.want(known.wanted.leased(until))

    def end(self, attempt: str) -> None:
        for known in self._known(attempt):
            if not known.never_began():
                known.want(replace(known.wanted, end=True))
            self._cancel(known)

    def living(self) -> Collection[str]:
        return self._running.keys()

    def leave(self) -> None:
        self.close()

    def poll(self) -> list[EngineEvent]:
        self._wake.clear()
        look = self._watch.turn()
        if look is not None:
            self._queue = look.jobs
            if look.nodes is not None:
                self._is_up = {host: node.is_up for host, node in look.nodes.items()}
            for attempt in self._running.values():
                attempt.see(Sight(look.at, look.jobs.get(attempt.job)))
        self._note_outage()
        for attempt, outcome in self._submitter.turn(is_down=self._watch.trouble is not None):
            if outcome == "":
                attempt.conclude("lost", "Slurm knows no job of it any more")
            elif isinstance(outcome, str):
                attempt.submitted(outcome)
                self._own_jobs.add(outcome)
            elif attempt.take_back():
                attempt.conclude("not-started", outcome.message)
        events: list[EngineEvent] = []
        for name, attempt in list(self._running.items()):
            events.extend(attempt.poll())
            if attempt.needs_cancelling:
                self._cancel(attempt)
            if attempt.result is None and attempt.is_forgotten:
                attempt.forget_job()
                self._submitter.add(attempt, sought=True)
            if attempt.result is not None:
                if attempt.result.reason in ("lost", "node-lost"):  # a node that is cut off may still run it
                    self._cancel(attempt)
                del self._running[name]
                self._ended.add(name)
        return events

    def wait(self, timeout_seconds: float) -> None:
        if self._running:
            timeout_seconds = min(timeout_seconds, _LOOK_AGAIN_SECONDS)
        self._wake.wait(max(0.0, timeout_seconds))

    def recover(self, directories: Iterable[Path], timeout_seconds: float = 10.0) -> dict[Path, Result]:
        """Nothing is waited for: what has no result is taken on, and the queue tells what became of it."""
        del timeout_seconds
        recovered: dict[Path, Result] = {}
        for directory in directories:
            result = read_result(directory)
            if result is None and not (directory / LAUNCH).exists():
                result = lost(directory, "it was never submitted")
            if result is not None:
                recovered[directory] = result
            else:
                self._take_on(SlurmAttempt(directory.resolve()), sought=True)
        return recovered

    def sweep(self, root: Path, known: Collection[Path], before: float = math.inf) -> list[str]:
        held = [attempt.directory for attempt in list(self._running.values())]
        return sweep(self._cluster, root, [*known, *held], before)

    def nodes(self) -> list[NodeSeen]:
        """What is known of its nodes: do they take work, and how many GPUs do others hold there?"""
        others: dict[str, int] = {}
        for job in self.foreign_jobs():
            for host in job.hosts:
                others[host] = others.get(host, 0) + job.gpus_each
        return [
            NodeSeen(node=node, is_up=self._is_up[host], others_gpus=others.get(host, 0))
            for node, host in self.options.hosts.items()
            if host in self._is_up
        ]

    def foreign_jobs(self) -> list[QueuedJob]:
        """What runs there that this engine did not start."""
        return [
            job
            for job in self._queue.values()
            if job.hosts and not self._is_own(job) and job.state not in (*OVER, "PENDING")
        ]

    def _is_own(self, job: QueuedJob) -> bool:
        return job.job in self._own_jobs and (job.name in self._running or job.name in self._ended)

    def close(self) -> None:
        """Jobs go on; whoever comes next recovers them. What was asked for already is still done."""
        self._watch.close()
        self._submitter.close()
        self._running.clear()

    def _lay_out(self, launch: Launch, directory: Path) -> None:
        """Orders first, then the record: where there is a record and no orders, somebody has taken them."""
        user = user_of(launch, self.options.user)
        orders = orders_of(launch, directory)
        submission = submission_of(launch, directory, self.options, user)
        environment = {"environment": dict(launch.environment), "passes_on": PASSES_ON}
        Desired().write(directory)
        Wanted().leased(launch.lease_until).write(directory)
        write_document(directory, ORDERS, orders | environment, durable=True, mode=0o600)
        asked = {"hosts": submission.hosts, "submission": msgspec.to_builtins(submission)}
        record_launch(launch, directory, orders | asked)
        hand_over(launch, directory, user)

    def _take_on(self, attempt: SlurmAttempt, *, sought: bool) -> None:
        self._running[attempt.attempt] = attempt
        if attempt.job:
            self._own_jobs.add(attempt.job)
        elif read_result(attempt.directory) is None:
            self._submitter.add(attempt, sought=sought)

    def _cancel(self, attempt: SlurmAttempt) -> None:
        if attempt.job:
            attempt.cancelled()
            self._submitter.cancel(attempt)

    def _note_outage(self) -> None:
        """Told once when it begins and once when it is over."""
        trouble = self._watch.trouble
        if (trouble is not None) is self._was_down:
            return
        self._was_down = trouble is not None
        words = "Slurm answers again" if trouble is None else f"{trouble.message}; what was seen last is kept"
        for attempt in self._running.values():
            attempt.note(words)

    def _known(self, attempt: str) -> list[SlurmAttempt]:
        """The attempt if it runs, nothing if it has ended."""
        if attempt in self._running:
            return [self._running[attempt]]
        if attempt in self._ended:
            return []
        raise UnknownAttemptError(
            f"attempt {attempt}: this engine has not started it",
            hint="after a restart, recover it first",
        )
