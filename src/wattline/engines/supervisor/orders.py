"""Orders: what is this supervisor to run, and within which bounds?"""

from __future__ import annotations

import json
import os

from wattline.engines.files import ORDERS, read_bounded

LONGEST_ORDERS_BYTES = 8 << 20  # they carry a whole environment


class Orders:
    """The first line on standard input, or a file that is removed as it is read: the environment may hold
    secrets."""

    def __init__(self, line: bytes) -> None:
        given = json.loads(line)
        self.epoch: int = given["epoch"]
        self.directory: str = given["directory"]
        self.working_directory: str = given["working_directory"]
        self.command: str = given["command"]
        self.environment: dict[str, str] = given["environment"]
        self.max_duration_seconds: float | None = given["max_duration_seconds"]
        self.grace_seconds: float = given["grace_seconds"]
        self.checkpoint_signal: int | None = given["checkpoint_signal"]
        self.finish_signal: int = given["finish_signal"]
        self.output_limit_bytes: int = given["output_limit_bytes"]
        self.cpus: float = given["cpus"]
        self.cgroup: str | None = given["cgroup"]
        self.control_pid: int | None = given["control_pid"]
        self.lease_until: float | None = given.get("lease_until")
        self.passes_on: tuple[str, ...] = tuple(given.get("passes_on", ()))
        """How names begin of what the command gets from the supervisor's own environment."""


def take_orders(directory: str) -> bytes | None:
    """Take the orders away, so that nobody else ever runs them; None where somebody has.

    The one who renames them has them: a job that a scheduler starts twice finds nothing the second time.
    """
    mine = f".{ORDERS}.{os.getpid()}"
    try:
        os.rename(f"{directory}/{ORDERS}", f"{directory}/{mine}")  # noqa: PTH104
    except FileNotFoundError:
        return None
    orders = read_bounded(directory, mine, limit_bytes=LONGEST_ORDERS_BYTES)
    os.unlink(f"{directory}/{mine}")  # noqa: PTH108
    return orders
