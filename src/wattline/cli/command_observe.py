"""The observe command: what did a cluster lose, and what would Wattline have decided?"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from wattline.cli.command_replay import prepare_pictures
from wattline.cli.observe_text import print_observation
from wattline.cli.printing import plain, print_json
from wattline.errors import UnavailableError, UsageError
from wattline.observing import ReadOnly, Seen, Wanted, conclude, see
from wattline.observing.asking import QUERY_SECONDS
from wattline.observing.page import write_observation
from wattline.observing.throttling import device_of
from wattline.plane.writing import write_atomically
from wattline.spec.telemetry import check_url
from wattline.telemetry.asking import Asker
from wattline.units import DURATION

_LABEL = r'[A-Za-z_][A-Za-z0-9_]*(?:=|!=|=~|!~)"(?:[^"\\\n]|\\.){0,500}"'
_MATCH = re.compile(rf"{_LABEL}(?:,{_LABEL}){{0,20}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveAsked:
    """What stands on the command line."""

    slurm: bool
    prometheus: str | None
    since: str
    until: str | None
    sacct: Path | None
    scontrol: Path | None
    racks: Path | None
    facility: str | None
    gpu: str
    match: str
    secret_file: Path | None
    write_facility: Path | None
    html: Path | None
    replays: bool


def observe_cluster(asked: ObserveAsked, *, as_json: bool) -> int:
    _check(asked)
    prepare_pictures(None, asked.html)
    progress = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def tell(text: str) -> None:
        progress.print(plain(text), style="dim", soft_wrap=True)

    url = _url(asked.prometheus)
    ask = ReadOnly(slurm=asked.slurm, prometheus=None if url is None else _asker(url, asked.secret_file))
    wanted = Wanted(
        since_seconds=_seconds(asked.since),
        until=_moment(asked.until),
        sacct=asked.sacct,
        scontrol=asked.scontrol,
        racks=asked.racks,
        facility=asked.facility,
        gpu=asked.gpu,
        match=asked.match,
        prometheus=url or "",
    )
    try:
        seen = see(wanted, ask, tell)
        report = conclude(seen, wanted, ask, replays=asked.replays, tell=tell)
    finally:
        ask.close()
    written = _write(asked, seen)
    if asked.html is not None:
        write_observation(report, seen, asked.html)
        written.append(asked.html)
    if as_json:
        print_json(report)
    else:
        print_observation(report)
    for path in written:
        tell(f"wrote {path}")
    return 0


def _check(asked: ObserveAsked) -> None:
    if not asked.slurm and asked.scontrol is None:
        raise UsageError(
            "there is no cluster to look at",
            hint="--slurm where Slurm's clients are; or --scontrol FILE and --sacct FILE, saved there",
        )
    if asked.gpu and device_of(asked.gpu) is None:
        raise UsageError(f"--gpu: not a known model: {asked.gpu!r}", hint="A100, H100, H200, B200, V100")
    if asked.match and _MATCH.fullmatch(asked.match) is None:
        raise UsageError(f"--match: not labels: {asked.match[:80]!r}", hint='such as cluster="a",room="1"')
    if asked.secret_file is not None and not os.access(asked.secret_file, os.R_OK):
        raise UnavailableError(
            f"--secret-file {asked.secret_file}: cannot be read", hint="it holds a token and nothing else"
        )
    if asked.write_facility is not None and asked.write_facility.exists():
        raise UsageError(
            f"{asked.write_facility}: this file is there already", hint="--write-facility names a new file"
        )
    if asked.write_facility is not None and asked.facility is not None:
        raise UsageError(
            "--facility names the document, and --write-facility asks for one", hint="give one of them"
        )


def _write(asked: ObserveAsked, seen: Seen) -> list[Path]:
    if asked.write_facility is None:
        return []
    if seen.proposal is None:
        raise UnavailableError(
            "no facility can be proposed: no node has GPUs of a model that is known",
            hint="--gpu H100 says what they are",
        )
    write_atomically(asked.write_facility, seen.proposal.text.encode())
    return [asked.write_facility]


def _url(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return check_url(text)
    except ValueError as error:
        raise UsageError(f"--prometheus: {error}", hint="such as http://prometheus:9090") from None


def _asker(url: str, secret_file: Path | None) -> Asker:
    secret = "" if secret_file is None else str(secret_file)
    return Asker(url, timeout_seconds=QUERY_SECONDS, secret_file=secret)


def _seconds(text: str) -> float:
    try:
        return float(DURATION.parse(text))
    except ValueError as error:
        raise UsageError(f"--since: {error}", hint="such as 7d or 6h") from None


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--until: not a time, got {text[:80]!r}", hint="such as 2026-03-01T08:00Z"
        ) from None
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()
