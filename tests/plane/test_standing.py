"""How a job that waits is told in a few words: the reason that `explain` names, or whom it is behind."""

from __future__ import annotations

import pytest

from building import GPU_WATTS, Hall, a_job, a_policy, a_site, a_world
from wattline.plane.standing import why_not
from wattline.policy import explain
from wattline.state import JobState

HOUR = 3600.0


def told(hall: Hall, job: str) -> str:
    return why_not(hall.state, hall.job(job))


def test_of_several_reasons_the_one_that_explain_names_is_told() -> None:
    policy = a_policy(teams={"nlp": {"quota": {"gpu_hours": 8}}})
    hall = a_world(a_site(nodes=1, rack_cap_watts=7 * GPU_WATTS), policy=policy)
    hall.run(a_job("r1/train", gpus=5, max_duration_seconds=HOUR))
    hall.submit(a_job("r2/train", gpus=3, max_duration_seconds=2 * HOUR))
    hall.decide()
    rules = [verdict.rule for verdict in hall.job("r2/train").verdicts if not verdict.allows]
    assert rules == ["power.rack", "quota.gpu_hours"]
    blocked = explain(hall.snapshot(), hall.policy, "r2/train").blocked_by
    assert blocked is not None
    assert told(hall, "r2/train") == "quota.gpu_hours nlp 3 GPU-hours short"
    assert blocked.rule == "quota.gpu_hours"


@pytest.mark.parametrize(
    ("project", "said"),
    [("nlp", "behind r2/train"), ("vision", "behind a job of 8 GPUs that came first")],
    ids=["its own", "another's, whose name is nobody's business"],
)
def test_a_job_that_is_not_tried_is_behind_the_first_of_its_shape(project: str, said: str) -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r1/train", gpus=8))
    hall.submit(a_job("r2/train", gpus=8))
    hall.decide()
    hall.wait(1.0)
    hall.submit(a_job("r3/train", gpus=8, project=project))
    hall.decide()
    assert told(hall, "r2/train") == "gpus zurich 8 GPUs short"
    assert told(hall, "r3/train") == said


def test_who_comes_first_once_another_has_gone_is_told_that_there_is_no_place() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r1/train", gpus=8))
    for job in ("r2/train", "r3/train"):
        hall.wait(1.0)
        hall.submit(a_job(job, gpus=8))
        hall.decide()
    hall.ended("r1/train")
    hall.obey(hall.decide())
    assert hall.job("r2/train").state is JobState.RUNNING
    assert not hall.job("r3/train").verdicts, "it was not tried: all was taken again"
    assert told(hall, "r3/train") == "no place yet for its 8 GPUs"


def test_what_runs_or_comes_after_another_waits_for_nothing() -> None:
    hall = a_world(a_site(nodes=1))
    hall.run(a_job("r1/train", gpus=8))
    assert told(hall, "r1/train") == ""
