"""Ordering: what is a supervisor told to run, and what of that is written down?"""

from __future__ import annotations

import time
from pathlib import Path

from wattline.engines.contract import Launch
from wattline.engines.files import LAUNCH, write_document


def orders_of(launch: Launch, directory: Path) -> dict[str, object]:
    """All but the environment, which may hold secrets, and what only one kind of engine has to say."""
    return {
        "epoch": launch.epoch,
        "directory": str(directory),
        "working_directory": str(launch.working_directory.absolute()),
        "command": launch.command,
        "max_duration_seconds": launch.max_duration_seconds,
        "grace_seconds": launch.grace_seconds,
        "checkpoint_signal": launch.checkpoint_signal,
        "finish_signal": int(launch.finish_signal),
        "output_limit_bytes": launch.output_limit_bytes,
        "cpus": launch.cpus,
        "cgroup": None,
        "control_pid": None,
        "lease_until": launch.lease_until,
    }


def record_launch(launch: Launch, directory: Path, orders: dict[str, object]) -> None:
    """Before anything is started, so that what comes later can tell that somebody was about to."""
    record = {"attempt": launch.attempt, "at": time.time(), "site": launch.site} | orders
    names = sorted(launch.environment)
    write_document(directory, LAUNCH, record | {"environment_names": names})
