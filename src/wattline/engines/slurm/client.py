"""The client: how is Slurm asked by its commands, so that no answer is without end in time or size?

With slurmctld down its clients try again for minutes; every call here has a timeout of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from wattline.engines.slurm.cluster import CALL_SECONDS, SlurmRefusedError, down, is_down
from wattline.engines.slurm.listing import (
    ALIVE,
    NODE_FIELDS,
    QUEUE_FIELDS,
    QueuedJob,
    SlurmNode,
    format_of,
    read_folders,
    read_nodes,
    read_queue,
)
from wattline.engines.slurm.submission import Submission, sbatch_arguments
from wattline.errors import UnavailableError

_MOST_OUTPUT_BYTES = 64 << 20
_MOST_WORDS = 500
_LICENSE = re.compile(r"^LicenseName=(\S+)", re.MULTILINE)
_PASSED_ON = ("PATH", "HOME", "LANG", "SLURM_CONF", "LD_LIBRARY_PATH", "USER", "LOGNAME")


class SlurmClient:
    """One cluster, by its command line."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float = CALL_SECONDS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are for the clients alone, such as how they write times."""
        known = os.environ if environment is None else environment
        # Nothing else goes along: sbatch would hand the control plane's secrets to the job.
        passed_on = {name: known[name] for name in _PASSED_ON if name in known}
        self._environment = passed_on | dict(settings or {})
        self._timeout_seconds = timeout_seconds

    def call(self, *command: str, text: str = "") -> str:
        """Run one client; what it printed."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                done = subprocess.run(
                    command,
                    input=text.encode(),
                    stdout=output,
                    stderr=errors,
                    env=self._environment,
                    timeout=self._timeout_seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise down(command[0], f"no answer within {self._timeout_seconds:g} s") from None
            except FileNotFoundError:
                raise UnavailableError(
                    f"Slurm: {command[0]} is not installed here",
                    hint="install Slurm's clients on this machine",
                ) from None
            said = _read(errors, _MOST_WORDS * 4).decode(errors="replace").strip()
            if done.returncode != 0:
                if is_down(said):
                    raise down(command[0], said)
                raise SlurmRefusedError(f"Slurm: {command[0]}: {' '.join(said.split())[:_MOST_WORDS]}")
            answer = _read(output, _MOST_OUTPUT_BYTES + 1)
        if len(answer) > _MOST_OUTPUT_BYTES:
            raise UnavailableError(
                f"Slurm: {command[0]} printed more than {_MOST_OUTPUT_BYTES >> 20} MiB",
                hint="Wattline reads one line for each job; are there millions of them?",
            )
        return answer.decode(errors="replace")

    def queue(self) -> dict[str, QueuedJob]:
        return read_queue(self.call("squeue", "-h", "-t", "all", "-O", format_of(QUEUE_FIELDS)))

    def nodes(self, partition: str = "") -> dict[str, SlurmNode]:
        options = [f"--partition={partition}"] if partition else []
        return read_nodes(self.call("sinfo", "-h", "-N", *options, "-O", format_of(NODE_FIELDS)))

    def licenses(self) -> frozenset[str]:
        return frozenset(_LICENSE.findall(self.call("scontrol", "-o", "show", "licenses")))

    def submit(self, asked: Submission) -> str:
        answer = self.call("sbatch", *sbatch_arguments(asked), text=asked.script)
        return answer.strip().partition(";")[0]

    def cancel(self, job: str, name: str) -> None:
        self.call("scancel", f"--name={name}", job)

    def find(self, name: str, directory: Path) -> str:
        listed = self.call("squeue", "-h", "-t", "all", f"--name={name}", "-O", "JobID:|,WorkDir:|")
        found = [int(job) for job, folder in read_folders(listed) if folder == str(directory)]
        return str(max(found)) if found else ""

    def living(self) -> list[tuple[str, str]]:
        return list(read_folders(self.call("squeue", "-h", "-t", ",".join(ALIVE), "-O", "JobID:|,WorkDir:|")))

    def cancel_in(self, job: str, directory: Path) -> bool:
        # Asked for alone: a folder's name is a user's to choose, and one with a line break in it might have
        # spoken of somebody else's job.
        try:
            found = self.call("squeue", "-h", f"--jobs={job}", "-O", "WorkDir:|")
        except SlurmRefusedError:  # it has ended meanwhile
            return False
        if found.strip().rstrip("|").strip() != str(directory):
            return False
        self.call("scancel", job)
        return True


def _read(file: IO[bytes], limit_bytes: int) -> bytes:
    file.seek(0)
    return file.read(limit_bytes)
