"""Price: how much useful work does each rung of a ladder cost, in GPU-seconds?"""

from __future__ import annotations

from wattline.physics import predict_speed, transfer_seconds
from wattline.spec.ladder import Rung, RungKind
from wattline.state import Job, Snapshot

# Until a job has shown how long it takes to come back.
RESTART_SECONDS = 10.0
# Caps and smaller batches are priced over this long: about what a disturbance lasts.
_PRICED_SECONDS = 600.0


def price_rung(snapshot: Snapshot, job: Job, rung: Rung) -> float:
    """Useful GPU-seconds lost by taking this rung now."""
    gpus = max(1, job.request.gpus)
    if rung.kind is RungKind.CAP_POWER:
        return gpus * _PRICED_SECONDS * (1 - predict_speed(rung.amount))
    if rung.kind is RungKind.SHRINK_BATCH:
        return gpus * _PRICED_SECONDS * (1 - rung.amount)
    if rung.kind is RungKind.PAUSE:
        return gpus * rung.amount + leaving_gpu_seconds(job)
    if rung.kind is RungKind.MIGRATE:
        return gpus * move_seconds(snapshot, job) + leaving_gpu_seconds(job)
    return gpus * unsaved_seconds(snapshot, job)


def unsaved_seconds(snapshot: Snapshot, job: Job) -> float:
    """What is lost if the job is cut off now: all since its last checkpoint, or since it began."""
    since = job.saved.at if job.saved is not None else job.first_started_at
    return 0.0 if since is None else max(0.0, snapshot.at - since)


def move_seconds(snapshot: Snapshot, job: Job) -> float:
    """How long the newest checkpoint takes over the slowest link it might take."""
    if job.saved is None or job.place is None:
        return 0.0
    links = [link for pair, link in snapshot.plant.links.items() if job.place.site in pair]
    return max(
        (
            transfer_seconds(job.saved.size_bytes, link.bits_per_second, link.latency_seconds)
            for link in links
        ),
        default=0.0,
    )


def leaving_gpu_seconds(job: Job) -> float:
    """Useful work that is lost when a job saves, leaves and comes back."""
    return max(1, job.request.gpus) * (save_seconds(job) + RESTART_SECONDS)


def save_seconds(job: Job) -> float:
    """How long its last save took; a second where there was none."""
    return job.saved.seconds if job.saved is not None else 1.0
