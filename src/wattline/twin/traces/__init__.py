"""Workloads that others recorded: lines of a trace file become jobs that arrive.

`read_trace` tells the format by itself: Philly and Pollux CSV, Gavel TSV, Standard Workload Format, Slurm
accounting (`sacct --parsable2` or `--json`) and our own journal. What cannot be used is counted and kept with
its line, never dropped unseen.
"""

from wattline.twin.traces.job import TraceJob
from wattline.twin.traces.reading import read_trace, trace_of
from wattline.twin.traces.trace import Flawed, Kind, Trace

__all__ = ["Flawed", "Kind", "Trace", "TraceJob", "read_trace", "trace_of"]
