"""How are facts written, so that the same facts always have the same hash?

JSON with sorted keys, no spaces, UTF-8 and a newline at the end. What is read must be in that form too: a
repeated key, an unknown field or another spelling of the same number would not come out as it went in.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from wattline.decoding import decode_json
from wattline.errors import UnavailableError, UsageError

T = TypeVar("T")


def encode_canonical(value: object) -> bytes:
    """The one spelling of these facts."""
    try:
        return msgspec.json.encode(value, order="sorted", enc_hook=_plain) + b"\n"
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object[:80]!r} is not text that UTF-8 can hold") from error


def decode_canonical(data: bytes, kind: type[T], *, what: str, most_bytes: int) -> T:
    """Read what `encode_canonical` wrote; `what` names it in the error."""
    if len(data) > most_bytes:
        raise UnavailableError(f"{what} has {len(data)} bytes; at most {most_bytes} are read")
    try:
        value = decode_json(data, kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise UnavailableError(f"{what} cannot be read: {error}") from error
    if encode_canonical(value) != data:
        raise UnavailableError(
            f"{what} is not in canonical form: a key is repeated or unknown, or a value is spelled otherwise"
        )
    return value


def _plain(value: object) -> str:
    """A digest is a str with more to it; in JSON it is just text."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no place in canonical JSON")


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
