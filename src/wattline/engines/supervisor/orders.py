"""Orders: what is this supervisor to run, and within which bounds?"""

from __future__ import annotations

import json


class Orders:
    """The first line on standard input. It is never written down whole: the environment may hold secrets."""

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
        self.control_pid: int = given["control_pid"]
