from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wattline.errors import DocumentError
from wattline.twin.traces import TraceJob, read_trace


def a_job(number: int = 7, **changes: Any) -> dict[str, Any]:
    """As Slurm 23.11 writes it, with some of what is not needed."""
    job = {
        "job_id": number,
        "account": "nlp",
        "name": "train",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "elapsed": 60,
            "submission": 1714557600 + number,
            "start": 1714557700,
            "limit": {"set": True, "infinite": False, "number": 5},
        },
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "id": 1, "count": 16},
                {"type": "gres", "name": "gpu", "id": 1001, "count": 4},
                {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 4},
            ],
            "requested": [],
        },
        "steps": [{"step": {"id": "7.batch"}}],
    }
    return job | changes


def a_trace(tmp_path: Path, *jobs: object) -> Path:
    path = tmp_path / "sacct.json"
    path.write_text(json.dumps({"meta": {"slurm": {}}, "jobs": jobs, "errors": []}, indent=1))
    return path


def test_a_job_of_the_list_becomes_a_job_of_its_account(tmp_path: Path) -> None:
    trace = read_trace(a_trace(tmp_path, a_job()))

    assert trace.kind == "slurm"
    assert list(trace.jobs) == [
        TraceJob(
            name="7",
            arrives_seconds=0.0,
            gpus=4,
            work_seconds=60.0,
            project="nlp",
            limit_seconds=300.0,
            cpus=16.0,
        )
    ]


def test_older_versions_write_plain_numbers_and_one_word_for_a_state(tmp_path: Path) -> None:
    time = {"elapsed": {"set": True, "number": 30}, "submission": 1714557600, "limit": 10}
    tres = {"allocated": [], "requested": [{"type": "gres", "name": "gpu:v100", "count": 2}]}
    (job,) = read_trace(a_trace(tmp_path, a_job(time=time, tres=tres, state={"current": "FAILED"}))).jobs

    assert (job.work_seconds, job.limit_seconds, job.gpus, job.cpus) == (30.0, 600.0, 2, 1.0)


def test_a_limit_without_end_is_none(tmp_path: Path) -> None:
    time = a_job()["time"] | {"limit": {"set": True, "infinite": True, "number": 0}}

    assert read_trace(a_trace(tmp_path, a_job(time=time))).jobs[0].limit_seconds is None


@pytest.mark.parametrize(
    ("job", "rule"),
    [
        (a_job(8, state={"current": ["RUNNING"]}), "it had not ended when this was recorded"),
        (a_job(8, tres={"allocated": [], "requested": []}), "no GPU asked for"),
        (a_job(8, time={"elapsed": 0, "submission": 5}), "the run time is zero"),
        (a_job(8, time={"elapsed": 5}), "the job is not what sacct --json writes"),
        ("what", "the job is not what sacct --json writes"),
        (a_job(7), "the name was used before"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_by_its_number_in_the_list(
    tmp_path: Path, job: object, rule: str
) -> None:
    trace = read_trace(a_trace(tmp_path, a_job(), job))

    assert trace.refused_by_rule == {rule: 1}
    assert trace.refused[0].line == 2


@pytest.mark.parametrize("text", ["{", '{"jobs": 3}', "{}", '{"jobs": [' + "[" * 100_000])
def test_another_document_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text.replace("[[", "[\n[", 1).replace("[[", "[\n["))

    with pytest.raises(DocumentError, match="this is not what sacct --json writes"):
        read_trace(path)
