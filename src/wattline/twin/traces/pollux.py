"""Pollux: `name,time,application,num_replicas,batch_size`. How long does a job run that says only what it is?

Until its application has made all the progress of its epochs, at the rate that was measured for that many
GPUs and that batch: see `wattline.twin.pollux`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wattline.errors import UnavailableError
from wattline.twin.pollux import Profiles
from wattline.twin.traces.flaws import FlawError, check_gpus, count_of, number_of, split_row
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.header import Header
from wattline.twin.traces.lines import shown

POLLUX_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
PROFILES = "pollux-throughput-profiles"
MOST_PROFILED_GPUS = 64  # the largest cluster that was measured


def pollux_rows(header: Header, gathering: Gathering, trace: Path) -> Callable[[int, str], None]:
    """How one line is taken."""
    name, at, application, replicas, batch_size = header.require(
        POLLUX_COLUMNS, *((column,) for column in POLLUX_COLUMNS)
    )
    width = header.width
    profiles = _find_profiles(trace)

    def take_row(line: int, text: str) -> None:
        fields = [field.strip() for field in split_row(text, width)]
        gpus = count_of("num_replicas", fields[replicas])
        batch = count_of("batch_size", fields[batch_size])
        gathering.take(
            line,
            number_of("time", fields[at]),
            gpus,
            _work_seconds(profiles, fields[application], batch, gpus),
            name=fields[name],
            application=fields[application],
            batch_size=batch,
        )

    return take_row


def _find_profiles(trace: Path) -> Profiles:
    folder = trace.parent / PROFILES
    if not folder.is_dir():
        raise UnavailableError(
            f"{shown(trace)}: jobs of a Pollux trace have no run time; it follows from the profiles of their "
            f"applications, and {shown(folder)} is not there",
            hint=f"put simulator/traces of petuum/adaptdl, branch osdi21-artifact, beside it as {PROFILES}",
        )
    return Profiles(folder)


def _work_seconds(profiles: Profiles, application: str, batch_size: int, gpus: int) -> float:
    check_gpus(gpus)
    if gpus > MOST_PROFILED_GPUS:
        raise FlawError(f"more than the {MOST_PROFILED_GPUS} GPUs that were profiled", gpus)
    try:
        return profiles.undisturbed_seconds(application, batch_size, gpus)
    except UnavailableError as error:
        raise FlawError("no profile tells its run time", error.message) from error
