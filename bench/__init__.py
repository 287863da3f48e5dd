"""Benchmarks and soaks: figures for docs/benchmarks.md, never part of the test run's timing."""
