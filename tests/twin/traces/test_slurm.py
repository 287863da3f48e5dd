from __future__ import annotations

from pathlib import Path

import pytest

from wattline.errors import DocumentError
from wattline.twin.traces import TraceJob, read_trace

HEADER = "JobID|JobName|Account|Submit|Elapsed|Timelimit|State|AllocCPUS|AllocTRES|ReqTRES"
TRES = "billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,gres/gpumem=40G,mem=64G,node=1"


def a_row(job: str = "7", **changes: str) -> str:
    row = {
        "job": job,
        "name": "train",
        "account": "nlp",
        "submit": "2024-05-01T10:00:00",
        "elapsed": "1-02:03:04",
        "limit": "2-00:00:00",
        "state": "COMPLETED",
        "cpus": "8",
        "tres": TRES,
        "requested": TRES,
    }
    return "|".join((row | changes).values())


def a_trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([header, *rows]))
    return path


def test_a_line_becomes_a_job_of_its_account(tmp_path: Path) -> None:
    trace = read_trace(a_trace(tmp_path, a_row()))

    assert trace.kind == "slurm"
    assert list(trace.jobs) == [
        TraceJob(
            name="7",
            arrives_seconds=0.0,
            gpus=2,
            work_seconds=93784.0,
            project="nlp",
            limit_seconds=172800.0,
            cpus=8.0,
        )
    ]


def test_steps_of_a_job_are_no_jobs(tmp_path: Path) -> None:
    trace = read_trace(
        a_trace(tmp_path, a_row(), a_row("7.batch"), a_row("7.extern"), a_row("8_3"), a_row("9+0"))
    )

    assert [job.name for job in trace.jobs] == ["7", "8_3", "9+0"]
    assert trace.refused_jobs == 0


@pytest.mark.parametrize(
    ("elapsed", "seconds"), [("00:01", 1.0), ("10:00", 600.0), ("01:00:00", 3600.0), ("05:00.250", 300.25)]
)
def test_durations_are_read_as_slurm_writes_them(tmp_path: Path, elapsed: str, seconds: float) -> None:
    assert read_trace(a_trace(tmp_path, a_row(elapsed=elapsed))).jobs[0].work_seconds == seconds


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", "", "INVALID"])
def test_a_limit_that_nobody_gave_is_none(tmp_path: Path, limit: str) -> None:
    assert read_trace(a_trace(tmp_path, a_row(limit=limit))).jobs[0].limit_seconds is None


@pytest.mark.parametrize(
    ("header", "fields", "gpus"),
    [
        ("AllocTRES", "cpu=4,gres/gpu:a100=2,gres/gpu:h100=1", 3),
        ("AllocTRES|ReqTRES", "|gres/gpu=6", 6),
        ("AllocGRES", "gpu:4", 4),
        ("AllocGRES", "gpu:a100:2(S:0-1)", 2),
        ("AllocGRES", "craynetwork:1,gpu:a100:2,gpu:v100:1", 3),
        ("ReqGRES", "gpu", 1),
        ("ReqGRES|NNodes", "gpu:2|4", 8),
        ("ReqGRES|NNodes", "gres:gpu:tesla:2|", 2),
    ],
)
def test_gpus_are_counted_however_they_are_written(
    tmp_path: Path, header: str, fields: str, gpus: int
) -> None:
    path = a_trace(
        tmp_path, f"1|2024-05-01T10:00:00|60|{fields}", header=f"JobID|SubmitTime|ElapsedRaw|{header}"
    )

    assert read_trace(path).jobs[0].gpus == gpus


def test_start_and_end_tell_the_run_time_where_elapsed_is_not_there(tmp_path: Path) -> None:
    path = a_trace(
        tmp_path,
        "1|1714557600|1714557660|1714557700|gres/gpu=1",
        "2|2024-05-01T10:00:00|2024-05-01T10:01:00|Unknown|gres/gpu=1",
        header="JobID|Submit|Start|End|AllocTRES",
    )

    trace = read_trace(path)
    assert [job.work_seconds for job in trace.jobs] == [40.0]
    assert trace.refused_by_rule == {"End is not a time": 1}


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (a_row("8", state="RUNNING"), "it had not ended when this was recorded"),
        (a_row("8", state="PENDING", elapsed="00:00:00"), "it had not ended when this was recorded"),
        (a_row("8", state="CANCELLED by 1000", elapsed="00:00:00"), "the run time is zero"),
        (a_row("8", elapsed="soon"), "Elapsed is not a duration, such as 1-02:03:04"),
        (a_row("8", submit="Unknown"), "Submit is not a time"),
        (a_row("8", tres="cpu=8", requested="cpu=8"), "no GPU asked for"),
        (a_row("8", tres="gres/gpu=x"), "TRES is not a number"),
        (a_row("8", name="a|b"), "wrong number of columns"),
        (a_row("7"), "the name was used before"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_rule(tmp_path: Path, row: str, rule: str) -> None:
    trace = read_trace(a_trace(tmp_path, a_row(), row))

    assert trace.refused_by_rule == {rule: 1}
    assert trace.refused[0].line == 3


def test_the_older_parsable_output_ends_its_lines_with_a_bar(tmp_path: Path) -> None:
    assert len(read_trace(a_trace(tmp_path, a_row() + "|", header=HEADER + "|")).jobs) == 1


def test_columns_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        read_trace(a_trace(tmp_path, header="JobID|Submitted|State|AllocTRESS"))

    assert [(problem.field, problem.value) for problem in raised.value.problems] == [
        ("Elapsed", None),
        ("Submit", "'submitted'"),
        ("AllocTRES", "'alloctress'"),
    ]
