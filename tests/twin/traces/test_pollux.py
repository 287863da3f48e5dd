from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wattline.errors import DocumentError, UnavailableError
from wattline.twin.traces import TraceJob, read_trace

HEADER = "name,time,application,num_replicas,batch_size"


def a_trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    """Beside profiles of one application: 4 seconds a step, and 10 and then 20 steps at a batch of 8."""
    folder = tmp_path / "pollux-throughput-profiles" / "bert"
    folder.mkdir(parents=True)
    tables = {
        "placements": "placement,local_bsz,step_time,sync_time\n"
        + "".join(f"{placement},{local},4.0,1.0\n" for placement in (1, 2, 4) for local in (1, 16)),
        "scalability": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n16,64,1,8.0,1.0\n",
        # No noise in its gradients: a larger batch gains nothing.
        "validation-8": "progress,iteration,metric,grad_sqr,grad_var\n10,10,0.1,1.0,0.0\n30,30,0.2,1.0,0.0\n",
        # Noise alone: twice the batch is twice the progress.
        "validation-16": "progress,iteration,metric,grad_sqr,grad_var\n10,5,0.1,0.0,1.0\n30,15,0.2,0.0,1.0\n",
    }
    for name, text in tables.items():
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    path = tmp_path / "workload.csv"
    path.write_text("\n".join([header, *rows]))
    return path


def test_the_run_time_is_all_progress_over_goodput(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "small,100,bert,1,8", "large,160,bert,4,16")

    assert list(read_trace(path).jobs) == [
        TraceJob(
            name="small", arrives_seconds=0.0, gpus=1, work_seconds=120.0, application="bert", batch_size=8
        ),
        TraceJob(
            name="large", arrives_seconds=60.0, gpus=4, work_seconds=60.0, application="bert", batch_size=16
        ),
    ]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("b,1,gpt,1,8", "no profile tells its run time"),
        ("b,1,../bert,1,8", "no profile tells its run time"),
        ("b,1,bert,1,17", "no profile tells its run time"),
        ("b,1,bert,0,8", "no GPU asked for"),
        ("b,1,bert,65,8", "more than the 64 GPUs that were profiled"),
        ("b,-1,bert,1,8", "the arrival is negative"),
        ("b,soon,bert,1,8", "time is not a number"),
        ("b,1,bert,1,", "batch_size is not a number"),
        ("a,1,bert,1,8", "the name was used before"),
        ("b\x07,1,bert,1,8", "the name is not printable, or longer than 200 characters"),
        ("b,1,bert", "wrong number of columns"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_rule(tmp_path: Path, row: str, rule: str) -> None:
    trace = read_trace(a_trace(tmp_path, "a,0,bert,1,8", row))

    assert trace.refused_by_rule == {rule: 1}
    assert trace.refused[0].line == 3
    assert [job.name for job in trace.jobs] == ["a"]


def test_without_profiles_beside_it_the_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(f"{HEADER}\na,0,bert,1,8\n")

    with pytest.raises(UnavailableError, match="have no run time") as raised:
        read_trace(path)
    assert str(tmp_path / "pollux-throughput-profiles") in raised.value.message


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"workload\.csv:1:23: num_replicas: this column is missing, got"):
        read_trace(a_trace(tmp_path, header="name,time,application,replicas,batch_size"))
