"""slurmrestd: how is Slurm asked where there are no commands, with the same answers?

Its API of version 0.0.38, as 22.05 speaks it. Two properties that it takes are not in its description:
`nodelist`, which pins a job, and `no_requeue` (`requeue: false` is accepted, and requeues). What it does not
know it refuses, so neither can be lost in silence. It cannot cancel by number and name at once, as `scancel`
can: the name is looked at first.
"""

from __future__ import annotations

import os
import pwd
import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from wattline.decoding import decode_json
from wattline.engines.slurm.cluster import SlurmDownError, SlurmRefusedError, down, is_down
from wattline.engines.slurm.listing import ALIVE, QueuedJob, SlurmNode, expand_hosts, gpus_in, gpus_of
from wattline.engines.slurm.submission import Submission
from wattline.errors import UnavailableError
from wattline.facility import Slurmrestd

API = "v0.0.38"
_MOST_BYTES = 256 << 20  # four kilobytes for each job
_MOST_TOKEN_BYTES = 8192
_MOST_WORDS = 300
_PIECE_BYTES = 1 << 18
# Slurm's own numbers of what it refuses, and slurmrestd's of what it cannot read. Others are of lines that
# broke and of tokens that fail; an answer without a number is somebody else's, such as a proxy's.
_REFUSALS = (range(2000, 5000), range(9000, 10_000))
_NOT_UP = frozenset({"DRAIN", "FAIL", "MAINTENANCE", "REBOOT_ISSUED", "INVALID_REG"})
_PATH = "/usr/local/bin:/usr/bin:/bin"  # of the script, which names its programs by their whole paths


class _Fault(msgspec.Struct):
    error: str = ""
    description: str = ""
    error_number: int | None = None
    error_code: int | None = None


class _Job(msgspec.Struct):
    job_id: int
    job_state: str
    name: str | None = None
    user_name: str | None = None
    nodes: str | None = None
    tres_alloc_str: str | None = None
    state_reason: str | None = None
    current_working_directory: str | None = None


class _Node(msgspec.Struct):
    name: str
    state: str
    state_flags: list[str] = []
    gres: str | None = None
    cpus: int = 0
    partitions: list[str] = []


class _License(msgspec.Struct):
    LicenseName: str


class _Faults(msgspec.Struct):
    errors: list[_Fault] = []


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


class _Nodes(msgspec.Struct):
    nodes: list[_Node]


class _Licenses(msgspec.Struct):
    licenses: list[_License]


class _Submitted(msgspec.Struct):
    job_id: int


Answer = TypeVar("Answer")


class SlurmRest:
    """One cluster, by its slurmrestd. Each call has a connection of its own, so that any thread may ask."""

    def __init__(self, rest: Slurmrestd) -> None:
        self._rest = rest
        self._name = rest.socket or rest.url
        self._parts = urlsplit(rest.url)

    def queue(self) -> dict[str, QueuedJob]:
        return {str(job.job_id): _queued(job) for job in self._ask("GET", "/jobs", _Jobs).jobs}

    def nodes(self, partition: str = "") -> dict[str, SlurmNode]:
        return {
            node.name: SlurmNode(
                host=node.name, state=_state(node), gpus=gpus_in(node.gres or ""), cpus=node.cpus
            )
            for node in self._ask("GET", "/nodes", _Nodes).nodes
            if not partition or partition in node.partitions
        }

    def licenses(self) -> frozenset[str]:
        found = self._ask("GET", "/licenses", _Licenses).licenses
        return frozenset(known.LicenseName for known in found)

    def submit(self, asked: Submission) -> str:
        document = {"script": asked.script, "job": properties_of(asked)}
        told = self._ask("POST", "/job/submit", _Submitted, body=document, user=asked.user)
        return str(told.job_id)

    def cancel(self, job: str, name: str) -> None:
        for found in self._job(job):
            if found.name == name:
                self._ask("DELETE", f"/job/{int(job)}", _Faults)

    def find(self, name: str, directory: Path) -> str:
        jobs = self._ask("GET", "/jobs", _Jobs).jobs
        found = [
            job.job_id for job in jobs if job.name == name and job.current_working_directory == str(directory)
        ]
        return str(max(found)) if found else ""

    def living(self) -> list[tuple[str, str]]:
        jobs = self._ask("GET", "/jobs", _Jobs).jobs
        return [
            (str(job.job_id), job.current_working_directory or "") for job in jobs if job.job_state in ALIVE
        ]

    def cancel_in(self, job: str, directory: Path) -> bool:
        for found in self._job(job):
            if found.current_working_directory == str(directory):
                self._ask("DELETE", f"/job/{int(job)}", _Faults)
                return True
        return False

    def _job(self, job: str) -> list[_Job]:
        try:
            return self._ask("GET", f"/job/{int(job)}", _Jobs).jobs
        except SlurmRefusedError:  # it has ended, and Slurm has forgotten it
            return []

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[Answer],
        *,
        body: Mapping[str, object] | None = None,
        user: str = "",
    ) -> Answer:
        """One question. A name in `user` is asked for by the token of who may act for others."""
        headers = {"Accept": "application/json", "User-Agent": "wattline", "Connection": "close"}
        if self._rest.token_file:
            headers["X-SLURM-USER-NAME"] = user or self._rest.user or pwd.getpwuid(os.geteuid()).pw_name
            headers["X-SLURM-USER-TOKEN"] = _read_token(self._rest.token_file)
        raw = None
        if body is not None:
            raw, headers["Content-Type"] = msgspec.json.encode(body), "application/json"
        deadline = time.monotonic() + self._rest.timeout_seconds
        connection = self._connection()
        try:
            connection.request(method, f"{self._parts.path}/slurm/{API}{path}", raw, headers)
            with connection.getresponse() as response:
                status, told = response.status, self._read(response, deadline)
        except (OSError, HTTPException) as error:
            raise self._unanswered(path, str(error) or type(error).__name__) from None
        finally:
            connection.close()
        return self._understand(path, status, told, kind)

    def _connection(self) -> HTTPConnection:
        timeout_seconds = self._rest.timeout_seconds
        if self._rest.socket:
            return _OverSocket(self._rest.socket, timeout_seconds)
        way = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return way(self._parts.hostname or "", self._parts.port, timeout=timeout_seconds)

    def _read(self, response: HTTPResponse, deadline: float) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise UnavailableError(
                    f"Slurm: {self._name}: the answer is larger than {_MOST_BYTES >> 20} MiB",
                    hint="Wattline asks for all jobs at once; are there a hundred thousand of them?",
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f"the answer took longer than {self._rest.timeout_seconds:g} s")
        return b"".join(pieces)

    def _understand(self, path: str, status: int, told: bytes, kind: type[Answer]) -> Answer:
        if status == 200:
            try:
                return decode_json(told, kind)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise UnavailableError(
                    f"Slurm: {self._name}{path}: no answer of slurmrestd {API}: {error}"[:_MOST_WORDS]
                ) from None
        words = _printable(told)
        if status == 401:
            raise UnavailableError(
                f"Slurm: {self._name}{path}: slurmrestd lets nobody in with this: {words}",
                hint="see which -a it was started with, and SLURM_JWT=daemon in its environment",
            )
        if status == 404:
            raise UnavailableError(
                f"Slurm: {self._name}{path}: no {API} there: {words}",
                hint="start slurmrestd with that version of its API, which 22.05 to 23.11 have",
            )
        raise self._fault(path, status, told)

    def _fault(self, path: str, status: int, told: bytes) -> SlurmDownError | SlurmRefusedError:
        """Of a line that broke and of a token that is not believed it says the same: nothing."""
        try:
            faults = decode_json(told, _Faults).errors
        except (msgspec.MsgspecError, RecursionError):
            faults = []
        said = "; ".join(dict.fromkeys(fault.description or fault.error for fault in faults))
        numbers = [fault.error_number or fault.error_code or 0 for fault in faults]
        is_refusal = any(number in refusals for refusals in _REFUSALS for number in numbers)
        if is_refusal and not is_down(said):
            return SlurmRefusedError(f"Slurm: {self._name}{path}: {said or _printable(told)}"[:_MOST_WORDS])
        return self._unanswered(path, said or f"slurmrestd answered with {status}")

    def _unanswered(self, path: str, why: str) -> SlurmDownError:
        token = ", or does not believe the token" if self._rest.token_file else ""
        return down(f"{self._name}{path}", why, token)


class _OverSocket(HTTPConnection):
    def __init__(self, path: str, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def properties_of(asked: Submission) -> dict[str, object]:
    """A submission in slurmrestd's words."""
    count = len(asked.hosts)
    named: dict[str, object] = {
        "nodelist": ",".join(asked.hosts),
        "nodes": [count, count] if count else "",
        "tasks_per_node": 1 if count else "",
        "gres": f"gpu:{asked.gpus_each}" if asked.gpus_each else "",
        "gpus": str(asked.gpus or ""),
        "time_limit": asked.minutes or "",
        "licenses": asked.licenses,
        "partition": asked.partition,
        "account": asked.account,
    }
    return {
        "name": asked.name,
        "comment": asked.comment,
        "current_working_directory": asked.directory,
        "standard_output": asked.output,
        "open_mode": "append",
        "cpus_per_task": asked.cpus,
        "no_requeue": True,
        "kill_on_invalid_dependency": True,
        "environment": {"PATH": _PATH},
        **{name: value for name, value in named.items() if value},
        **asked.properties,
    }


def _queued(job: _Job) -> QueuedJob:
    return QueuedJob(
        job=str(job.job_id),
        state=job.job_state,
        user=job.user_name or "",
        hosts=expand_hosts(job.nodes or ""),
        gpus=gpus_of(job.tres_alloc_str or ""),
        reason=job.state_reason or "None",
        name=job.name or "",
    )


def _state(node: _Node) -> str:
    """As sinfo would write it, as far as it matters: does it answer, and does it take anybody?"""
    flags = frozenset(node.state_flags)
    state = "drained" if flags & _NOT_UP else node.state
    return f"{state}*" if "NOT_RESPONDING" in flags else state


def _read_token(path: str) -> str:
    """Read each time: tokens expire, and whoever renews one writes a file."""
    try:
        with Path(path).open("rb") as file:
            token = file.read(_MOST_TOKEN_BYTES + 1).decode("ascii").strip().removeprefix("SLURM_JWT=")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UnavailableError(f"{path}: the token cannot be read: {why}") from None
    if not token or len(token) > _MOST_TOKEN_BYTES or not token.isprintable():
        raise UnavailableError(
            f"{path}: is no token", hint=f"scontrol token username=… lifespan=… > {path}, now and then"
        )
    return token


def _printable(told: bytes) -> str:
    words = " ".join(told[: _MOST_WORDS * 4].decode(errors="replace").split())[:_MOST_WORDS]
    return "".join(letter if letter.isprintable() else "�" for letter in words)
