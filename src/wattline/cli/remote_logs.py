"""How is what a job prints followed over a network? From offset to offset, each call waiting for more."""

from __future__ import annotations

import codecs
import sys

from wattline.cli.printing import plain, print_json
from wattline.cli.remote import RemoteError, Server, path_of_job
from wattline.errors import UnavailableError, UsageError
from wattline.plane.told import LogTold

_INTERRUPTED_EXIT_CODE = 130


def follow_remote(
    server: Server, name: str | None, *, attempt: int | None, follow: bool, as_json: bool
) -> int:
    """As `wattline logs` does here."""
    jobs = server.jobs_of(name)
    if attempt is not None and len(jobs) > 1:
        raise UsageError("--attempt is of one job", hint=f"name the job, such as {jobs[-1]}")
    told: list[LogTold] = []
    try:
        for job in jobs:
            told += _one(server, job, attempt, follow=follow, with_title=len(jobs) > 1, quiet=as_json)
    except KeyboardInterrupt:
        return _INTERRUPTED_EXIT_CODE
    if not told and not follow:
        raise UnavailableError(
            f"{jobs[0] if len(jobs) == 1 else 'this run'} has not started yet, so it printed nothing",
            hint="`wattline explain` says why; --follow waits for it",
        )
    if as_json:
        print_json({"logs": told})
    return 0


def _one(
    server: Server, job: str, attempt: int | None, *, follow: bool, with_title: bool, quiet: bool
) -> list[LogTold]:
    """One attempt of a job; where it is followed, those after it too."""
    found: list[LogTold] = []
    number = attempt
    while True:
        try:
            log = _attempt(
                server, job, number, follow=follow, with_title=with_title or bool(found), quiet=quiet
            )
        except RemoteError as error:
            if error.status in (404, 422) and (found or attempt is None):
                return found
            raise
        found.append(log)
        if not follow or attempt is not None:
            return found
        number = log["attempt"] + 1


def _attempt(
    server: Server, job: str, number: int | None, *, follow: bool, with_title: bool, quiet: bool
) -> LogTold:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    offset, text, path = 0, "", ""
    while True:
        query: dict[str, str | int] = {"offset": offset}
        if number:
            query["attempt"] = number
        if follow:
            query["follow"] = "true"
        answered = server.get(f"{path_of_job(job)}/log", accept="text/plain", **query)
        number = int(answered.headers["wattline-attempt"]) or number
        path = answered.headers.get("wattline-path", path)
        piece = answered.body
        if quiet:
            text += decoder.decode(piece)
        elif piece or (not offset and not follow):
            if with_title and not offset:
                sys.stdout.write(f"==> {job}, attempt {number} <==\n")
            _write(piece, decoder)
        offset += len(piece)
        over = answered.headers["wattline-over"] == "true"
        if over or (not piece and not follow):
            return {"job": job, "attempt": number or 0, "path": path, "text": text}


def _write(data: bytes, decoder: codecs.IncrementalDecoder) -> None:
    """As it is into a file or a pipe; on a terminal, text only."""
    if sys.stdout.isatty():
        sys.stdout.write(plain(decoder.decode(data)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    sys.stdout.flush()
