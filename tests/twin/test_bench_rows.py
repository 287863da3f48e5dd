"""The twin's benchmark in short: a row is a process of its own and tells what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shared_data import shared_data


@pytest.mark.parametrize("more", [[], ["--weightless"], ["--copies", "2"]])
def test_a_row_of_the_benchmark_runs_all_of_its_jobs(more: list[str]) -> None:
    shared_data("jobs/philly.csv.gz")
    command = [sys.executable, "-m", "bench.twin", "--row", "philly", "--scale", "20", "--jobs", "150", *more]
    root = Path(__file__).parents[2]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, timeout=240)

    figures = json.loads(done.stdout)
    assert figures["jobs"] == (300 if "--copies" in more else 150)
    assert figures["cpu_seconds"] > 0
