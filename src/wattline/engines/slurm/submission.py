"""Submission: what is Slurm asked for, so that the job runs where it was placed and never twice?"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from wattline.engines import supervisor
from wattline.engines.contract import Launch
from wattline.engines.files import SUPERVISOR_LOG
from wattline.errors import UnavailableError

COMMENT = "wattline"
"""How the comment of every job of ours begins."""
# What sbatch sets for the job itself: which GPUs are its own, and what srun needs.
PASSES_ON = (
    "SLURM",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "GPU_DEVICE_ORDINAL",
)
_SUPERVISOR = Path(supervisor.__file__).parent
_SPARE_SECONDS = 60.0  # between the attempt's own end and Slurm's, which is not polite


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """What a site says of its Slurm."""

    partition: str = ""
    account: str = ""
    user: str = ""  # whom jobs run as; `submitter`: whoever submitted the run; empty: this process's own
    license: str = ""  # of the power budget
    watts_per_license: float = 1000.0
    python: str = ""  # as nodes know it; empty: the one that runs here, on a shared file system
    extra: tuple[str, ...] = ()  # for sbatch
    properties: Mapping[str, str | int | bool] = field(default_factory=dict)  # the same for slurmrestd
    hosts: Mapping[str, str] = field(default_factory=dict)  # what Slurm calls each node


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One batch job, however Slurm is asked for it. Recorded: whoever recovers asks for the same."""

    name: str
    comment: str
    directory: str
    output: str
    script: str
    cpus: int
    hosts: tuple[str, ...] = ()  # all of them, and no others
    gpus_each: int = 0  # on each host
    gpus: int = 0  # in all, where hosts differ
    minutes: int | None = None
    licenses: str = ""
    partition: str = ""
    account: str = ""
    user: str = ""  # empty: whoever asks
    extra: tuple[str, ...] = ()
    properties: dict[str, str | int | bool] = {}


def batch_script(directory: Path, options: SlurmOptions) -> str:
    """Slurm owns the supervisor, the supervisor owns the command."""
    python = options.python or sys.executable
    words = [python, "-I", "-S", "-X", "utf8", str(_SUPERVISOR), "--folder", str(directory)]
    return f"#!/bin/sh\nexec {shlex.join(words)}\n"


def submission_of(launch: Launch, directory: Path, options: SlurmOptions, user: str) -> Submission:
    """Placement is pinned, and so is what the job may draw."""
    gpus = tuple(launch.nodes.values())
    are_alike = len(set(gpus)) == 1
    minutes, licenses = None, ""
    if launch.max_duration_seconds is not None:
        seconds = launch.max_duration_seconds + launch.grace_seconds + _SPARE_SECONDS
        minutes = math.ceil(seconds / 60)
    if options.license and launch.peak_watts > 0:
        count = max(1, math.ceil(launch.peak_watts / options.watts_per_license))
        licenses = f"{options.license}:{count}"
    return Submission(
        name=launch.attempt,
        comment=comment_of(launch),
        directory=str(directory),
        output=str(directory / SUPERVISOR_LOG),
        script=batch_script(directory, options),
        cpus=max(1, math.ceil(launch.cpus)),
        hosts=tuple([host_of(node, options) for node in launch.nodes]),
        gpus_each=gpus[0] if are_alike else 0,
        gpus=0 if are_alike else sum(gpus),
        minutes=minutes,
        licenses=licenses,
        partition=options.partition,
        account=options.account,
        user=user,
        extra=options.extra,
        properties=dict(options.properties),
    )


def sbatch_arguments(asked: Submission) -> list[str]:
    """After a failure Slurm does not requeue: Wattline decides where it goes on."""
    arguments = [
        *("--parsable", "--no-requeue", "--kill-on-invalid-dep=yes"),
        f"--job-name={asked.name}",
        f"--comment={asked.comment}",
        f"--chdir={asked.directory}",
        f"--output={asked.output}",
        "--open-mode=append",
        f"--cpus-per-task={asked.cpus}",
    ]
    if asked.hosts:
        arguments += [
            f"--nodelist={','.join(asked.hosts)}",
            f"--nodes={len(asked.hosts)}",
            "--ntasks-per-node=1",
        ]
    named = {
        "--gres": f"gpu:{asked.gpus_each}" if asked.gpus_each else "",
        "--gpus": str(asked.gpus or ""),
        "--time": str(asked.minutes or ""),
        "--licenses": asked.licenses,
        "--partition": asked.partition,
        "--account": asked.account,
        "--uid": asked.user,
    }
    return [*arguments, *(f"{name}={value}" for name, value in named.items() if value), *asked.extra]


def comment_of(launch: Launch) -> str:
    """One line for squeue: which run, and why here."""
    words = f"{COMMENT} {launch.attempt}" + (f": {launch.comment}" if launch.comment else "")
    return "".join(letter if letter.isprintable() else " " for letter in words)[:250]


def host_of(node: str, options: SlurmOptions) -> str:
    """What Slurm calls a node of the facility."""
    host = options.hosts.get(node)
    if host is None:
        raise UnavailableError(
            f"node {node}: the site's Slurm has no host for it",
            hint="say `hosts` for it in the facility document",
        )
    return host
