"""Asking: what may `observe` ask of a cluster, and what exactly did it ask?

This is the one module of the room that runs a command or opens a connection. What is not in the closed set
below is not asked, whoever wants it; all that was asked is kept, and the report ends with it.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from wattline.engines.slurm import SlurmClient
from wattline.errors import UsageError, WattlineError
from wattline.telemetry.asking import Asker

# Commands by how they begin. None of them has an option that changes anything.
READING_COMMANDS = (("scontrol", "-o", "show"), ("scontrol", "show"), ("sacct",), ("squeue",))
# Endpoints of a Prometheus, asked with GET.
READING_ENDPOINTS = ("/api/v1/query", "/api/v1/query_range")
# Times as seconds since 1970, whatever zone the machine is in.
SLURM_SETTINGS = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}
SACCT_SECONDS = 120.0  # over a day of a busy cluster
QUERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, as it was put."""

    what: str
    seconds: float
    outcome: str  # answered, or why not


class ReadOnly:
    """A cluster that can be looked at and not touched."""

    def __init__(self, *, slurm: bool = False, prometheus: Asker | None = None) -> None:
        self._slurm = SlurmClient(settings=SLURM_SETTINGS) if slurm else None
        self._accounts = SlurmClient(settings=SLURM_SETTINGS, timeout_seconds=SACCT_SECONDS)
        self._prometheus = prometheus
        self.asked: list[Asked] = []

    @property
    def has_slurm(self) -> bool:
        return self._slurm is not None

    @property
    def has_prometheus(self) -> bool:
        return self._prometheus is not None

    def slurm(self, *command: str) -> str:
        """What one of Slurm's clients prints."""
        if not any(command[: len(known)] == known for known in READING_COMMANDS):
            raise UsageError(
                f"{shlex.join(command)[:200]}: not among the commands that only read",
                hint=f"these are: {', '.join(' '.join(known) for known in READING_COMMANDS)}",
            )
        assert self._slurm is not None
        began = time.monotonic()
        try:
            client = self._accounts if command[0] == "sacct" else self._slurm
            answer = client.call(*command)
        except WattlineError as error:
            self._note(shlex.join(command), began, error.message)
            raise
        self._note(shlex.join(command), began, "answered")
        return answer

    def prometheus(self, endpoint: str, parameters: Mapping[str, str], *, most_bytes: int) -> bytes:
        """The JSON that a query comes to."""
        if endpoint not in READING_ENDPOINTS:
            raise UsageError(
                f"{endpoint[:200]}: not among the endpoints that only read",
                hint=f"these are: {', '.join(READING_ENDPOINTS)}",
            )
        assert self._prometheus is not None
        said = f"GET {endpoint} {' '.join(f'{name}={value}' for name, value in parameters.items())}"
        began = time.monotonic()
        try:
            answer = self._prometheus.ask(f"{endpoint}?{urlencode(parameters)}", most_bytes=most_bytes)
        except WattlineError as error:
            self._note(said, began, error.message)
            raise
        self._note(said, began, "answered")
        return answer

    def close(self) -> None:
        if self._prometheus is not None:
            self._prometheus.close()

    def _note(self, what: str, began: float, outcome: str) -> None:
        self.asked.append(Asked(what=what, seconds=round(time.monotonic() - began, 3), outcome=outcome))
