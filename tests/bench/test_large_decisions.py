"""The benchmark of large decisions, on a facility of a tenth: it decides, explains and counts."""

from __future__ import annotations

from bench.large_decisions import a_large_facility, fill, measure


def test_a_short_run_starts_jobs_and_explains_those_that_wait() -> None:
    figures = measure(fill(a_large_facility(2, 5), 0.95), samples=3, waiting=120)
    assert figures.gpus == 8000
    assert figures.taken > 0.9
    assert figures.waiting > 100
    assert figures.started > 0
    assert len(figures.decisions_ms) == len(figures.admissions_ms) == 3
    assert max(figures.options) > 0
