"""A hall in which runs of a pipeline really ended, with what they used."""

from __future__ import annotations

from building import Hall, a_job
from wattline.policy import decide
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    Ending,
    GatesJudged,
    Progressed,
    RunConcluded,
    RunSubmitted,
    usage_of,
)

KILOWATTS = 0.2  # what a GPU draws on average: half of what it may


def record_run(
    hall: Hall,
    name: str,
    seconds: float,
    *,
    gpus: int = 1,
    steps: int | None = None,
    accuracy: float | None = None,
    ending: Ending = Ending.SUCCEEDED,
) -> None:
    """Submit, run and end it; then a minute passes."""
    request = a_job(f"{name}/train", gpus=gpus)
    hall.fold(RunSubmitted(at=hall.at, run=name, pipeline="p", jobs=(request,), project="nlp"))
    decision = decide(hall.snapshot(), hall.policy)
    hall.state.settle(decision)
    hall.fold(AttemptStarted(at=hall.at, job=request.job, attempt=1))
    hall.wait(seconds)
    if steps is not None:
        hall.fold(Progressed(at=hall.at, job=request.job, attempt=1, step=steps, total=steps))
    place = hall.job(request.job).place
    assert place is not None
    gpu_hours = gpus * seconds / 3600.0
    usage = usage_of(gpu_hours, gpu_hours * KILOWATTS, place, hall.state.plant)
    hall.fold(AttemptEnded(at=hall.at, job=request.job, attempt=1, ending=ending, usage=usage))
    if accuracy is not None:
        result: dict[str, object] = {"gate": "accuracy >= 0.9", "values": {"accuracy": accuracy}}
        hall.fold(GatesJudged(at=hall.at, run=name, passed=True, results=(result,)))
    hall.fold(RunConcluded(at=hall.at, run=name, status="succeeded"))
    hall.wait(60.0)
