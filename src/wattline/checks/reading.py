"""Reading: what does a report from elsewhere say? It may come from a fork: bounded, checked before use."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path

import msgspec

from wattline.checks.report import VERSION, Report
from wattline.decoding import decode_json
from wattline.errors import UnavailableError

LARGEST_BYTES = 4 << 20


def encode_report(report: Report) -> bytes:
    """The JSON that every program reads."""
    return json.dumps(_plain(msgspec.to_builtins(report)), indent=2).encode() + b"\n"


def read_report(path: Path) -> Report:
    """A report in a file; a link is not followed, and nothing but a regular file is read."""
    return decode_report(_read_bytes(path), name=str(path))


def decode_report(raw: bytes, *, name: str) -> Report:
    try:
        version = decode_json(raw, _Versioned).version
        if version != VERSION:
            raise UnavailableError(
                f"{name}: the report has version {version}, and this wattline reads version {VERSION}",
                hint="make it and read it with the same wattline",
            )
        return decode_json(raw, Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnavailableError(
            f"{name}: this is no report of `wattline check`: {error}",
            hint="`wattline check --output json` writes one",
        ) from None


class _Versioned(msgspec.Struct):
    version: int


def _plain(value: object) -> object:
    """What is not a finite number is null; half of a character, as in a file's name, is a question mark."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value.encode(errors="replace").decode()
        case dict():
            return {_plain(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _read_bytes(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnavailableError(f"{path}: this is not a regular file")
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > LARGEST_BYTES:
        raise UnavailableError(f"{path}: a report has at most {LARGEST_BYTES >> 20} MiB")
    return raw
