"""A quota that a job waits for: it is named where it is what is short, and with what frees it."""

from __future__ import annotations

import pytest

from building import GPU_WATTS, Hall, a_job, a_policy, a_site, a_world, kinds
from wattline.state import JobState, Outcome, Usage, Verdict

HOUR = 3600.0
TIGHT_WATTS = 1.9 * GPU_WATTS  # two GPUs are just too much for a rack elsewhere


def a_hall(gpu_hours: float) -> Hall:
    """Zurich has room; oslo lacks a little of what two GPUs draw. Four GPUs run for an hour at most."""
    policy = a_policy(teams={"nlp": {"quota": {"gpu_hours": gpu_hours}}})
    hall = a_world(a_site("zurich"), a_site("oslo", rack_cap_watts=TIGHT_WATTS), policy=policy)
    hall.run(a_job("r1/train", gpus=4, max_duration_seconds=HOUR))
    return hall


def against(hall: Hall, job: str) -> list[Verdict]:
    return [verdict for verdict in hall.job(job).verdicts if not verdict.allows]


def test_who_can_pay_starts_though_a_longer_job_cannot_and_a_rack_elsewhere_is_short() -> None:
    hall = a_hall(gpu_hours=5)
    hall.submit(a_job("r2/train", gpus=2, max_duration_seconds=HOUR))
    hall.wait(1)
    hall.submit(a_job("r3/train", gpus=2, max_duration_seconds=HOUR / 2))
    assert kinds(hall.decide()) == [("start", "r3/train")]


def test_a_quota_is_what_a_job_waits_for_where_there_is_room_for_it() -> None:
    hall = a_hall(gpu_hours=5)
    hall.submit(a_job("r2/train", gpus=2, max_duration_seconds=HOUR))
    hall.decide()
    assert [verdict.rule for verdict in against(hall, "r2/train")] == ["quota.gpu_hours"]


@pytest.mark.parametrize(
    ("used_gpu_hours", "change"),
    [
        (0.0, "a job of nlp ends having used less than it may, the week ends, or an exception is approved"),
        (4.0, "the week ends, or an exception is approved"),
    ],
    ids=["promised", "used"],
)
def test_what_was_promised_comes_back_and_what_was_used_does_not(used_gpu_hours: float, change: str) -> None:
    hall = a_hall(gpu_hours=9)
    hall.ended("r1/train", usage=Usage(gpu_hours=used_gpu_hours))
    hall.run(a_job("r2/train", gpus=4, max_duration_seconds=HOUR))
    hall.submit(a_job("r3/train", gpus=6, max_duration_seconds=HOUR))
    hall.decide()
    (verdict,) = against(hall, "r3/train")
    assert (verdict.outcome, verdict.change) == (Outcome.WAIT, change)


def test_more_than_the_week_has_is_refused_by_the_quota_and_not_by_a_rack_that_it_need_not_use() -> None:
    hall = a_hall(gpu_hours=5)
    hall.submit(a_job("r2/train", gpus=6, max_duration_seconds=HOUR))
    hall.decide()
    assert hall.job("r2/train").state is JobState.REFUSED
    assert [verdict.rule for verdict in against(hall, "r2/train")] == ["quota.gpu_hours"]
    assert hall.job("r2/train").say.endswith("ask for less, or for an exception")
