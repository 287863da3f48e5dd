"""Workload: what does a line of a trace ask for, and what does it truly do?

A trace says how many GPUs a job held and for how long. What it drew is not known: a lot of its own decides,
so that over many jobs the draw is that of a real cluster. The policy sees the request only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import msgspec

from wattline.physics.cap_curve import OwnCurve
from wattline.physics.draw_lots import predict_draw_utilisation
from wattline.state import JobRequest
from wattline.twin.traces import TraceJob
from wattline.units import SECONDS_PER_HOUR

# From here on a job is large enough to be worth a cap before a pause; smaller ones give way first.
_LARGE_GPUS = 8
LARGE_CLASS, SMALL_CLASS = "high-density-training", "low-power-experiment"
# What traces do not say; assumed.
SAVED_EVERY_SECONDS = 0.5 * SECONDS_PER_HOUR
SAVED_BYTES_PER_GPU = 8e9


class Arrival(msgspec.Struct, frozen=True):
    """A job on its way: when it comes, what it asks for, what it truly does."""

    at: float
    request: JobRequest
    work_seconds: float  # undisturbed, on as many GPUs as it asks for
    utilisation: float  # of the way from a device's idle draw to its limit; a little over 1 at most
    saved_every_seconds: float = SAVED_EVERY_SECONDS
    application: str = ""
    batch_size: int | None = None
    curve: OwnCurve | None = None  # what it draws and how fast it is under caps; None: as its device has it

    @property
    def saved_bytes(self) -> float:
        return self.request.gpus * SAVED_BYTES_PER_GPU


def arrivals_of(
    jobs: Iterable[TraceJob], begins_at: float, seed: int, utilisation: Callable[[str], float] | None = None
) -> Iterator[Arrival]:
    """The jobs of a trace in order of arrival, made when they are wanted: there may be a million."""
    draw = utilisation or (lambda name: draw_utilisation(seed, name))
    for job in jobs:
        yield Arrival(
            at=begins_at + job.arrives_seconds,
            request=JobRequest(
                job=f"{job.name}/train",
                run=job.name,
                project=job.project,
                scheduling_class=LARGE_CLASS if job.gpus >= _LARGE_GPUS else SMALL_CLASS,
                gpus=job.gpus,
                cpus=job.cpus,
                max_duration_seconds=job.limit_seconds,
                checkpoints=True,
            ),
            work_seconds=job.work_seconds,
            utilisation=draw(job.name),
            application=job.application,
            batch_size=job.batch_size,
        )


def draw_utilisation(seed: int, name: str) -> float:
    """A job's own lot: the same whatever came before it."""
    drawn = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    first, second = int.from_bytes(drawn[:8], "big"), int.from_bytes(drawn[8:], "big")
    return predict_draw_utilisation(first / 2**64, second / 2**64)
