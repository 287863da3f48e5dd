from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from wattline.errors import DocumentError, UnavailableError
from wattline.twin.traces import Flawed, TraceJob, read_trace

TABLE = {
    "v100": {
        "('LM (batch size 5)', 1)": {"null": 100.0, "('A3C', 1)": [50.0, 3.0]},
        "('LM (batch size 5)', 2)": {"null": 160.0},
        "('A3C', 1)": {"null": 4},
        "('A3C', 2)": {"null": 0.0},
    },
    "k80": {"('LM (batch size 5)', 8)": {"null": 1.0}},
}


def a_row(
    job_type: str = "LM (batch size 5)", steps: object = 1000, at: object = 0.0, gpus: object = 1
) -> str:
    return f"{job_type}\tcd %s && python3 main.py\t--steps\t1\t{steps}\t{at}\t{gpus}"


def a_trace(tmp_path: Path, *rows: str, table: object = TABLE) -> Path:
    (tmp_path / "gavel-throughputs.json.gz").write_bytes(gzip.compress(json.dumps(table).encode()))
    path = tmp_path / "some.trace"
    path.write_text("\n".join(rows))
    return path


def test_steps_over_the_rate_of_the_scale_factor_are_the_run_time(tmp_path: Path) -> None:
    path = a_trace(tmp_path, a_row(), a_row(at=30, gpus=2, steps=1600), a_row("A3C", at=40.5))

    trace = read_trace(path)
    assert trace.kind == "gavel"
    assert list(trace.jobs) == [
        TraceJob(
            name="gavel-1", arrives_seconds=0.0, gpus=1, work_seconds=10.0, application="LM", batch_size=5
        ),
        TraceJob(
            name="gavel-2", arrives_seconds=30.0, gpus=2, work_seconds=10.0, application="LM", batch_size=5
        ),
        TraceJob(name="gavel-3", arrives_seconds=40.5, gpus=1, work_seconds=250.0, application="A3C"),
    ]


@pytest.mark.parametrize(
    ("row", "rule", "value"),
    [
        (a_row(gpus=8), "no throughput on V100 for this job type and scale factor", "LM (batch size 5), 8"),
        (a_row("A3C", gpus=2), "no throughput on V100 for this job type and scale factor", "A3C, 2"),
        (a_row("GPT"), "no throughput on V100 for this job type and scale factor", "GPT, 1"),
        (a_row(gpus=0), "no GPU asked for", "0"),
        (a_row(steps=-5), "the run time is negative", "-0.05"),
        (a_row(steps="many"), "total steps is not a number", "many"),
        (a_row(at="nan"), "the arrival is not finite", "nan"),
        ("LM (batch size 5)\t7", "wrong number of columns", "2 instead of 7"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_rule(
    tmp_path: Path, row: str, rule: str, value: str
) -> None:
    trace = read_trace(a_trace(tmp_path, a_row(), row))

    assert trace.refused == (Flawed(line=2, rule=rule, value=value),)
    assert len(trace.jobs) == 1


def test_without_the_table_of_throughputs_it_is_said_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "some.trace"
    path.write_text(a_row())

    with pytest.raises(UnavailableError, match=r"gavel-throughputs\.json, is not beside it"):
        read_trace(path)


@pytest.mark.parametrize("table", [[], {"v100": 3}, {"v100": {"a": []}}, {"k80": {}}])
def test_a_table_of_another_shape_is_named(tmp_path: Path, table: object) -> None:
    with pytest.raises(DocumentError, match=r"gavel-throughputs\.json\.gz"):
        read_trace(a_trace(tmp_path, a_row(), table=table))
