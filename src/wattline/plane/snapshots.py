"""Snapshots: what stands here, for a check elsewhere to be held against.

A build machine has no queue of its own: it asks a server for one, or reads a file that a platform team writes
now and then. It holds the facility and policy documents, jobs with their requests, and accounts; no source,
log or secret.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wattline.decoding import decode_json
from wattline.errors import UnavailableError
from wattline.plane.finding import View
from wattline.plane.writing import write_atomically
from wattline.spec import FacilityDocument, Policy, build_facility, parse_document
from wattline.state import State, dump_state, load_state

_VERSION = 1
_MOST_BYTES = 256 << 20


class _File(msgspec.Struct, frozen=True, kw_only=True):
    wattline_snapshot: int
    at: float
    facility: str
    policy: str
    state: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A state to hold a pipeline against, and the policy in force there."""

    state: State
    policy: Policy
    at: float


def write_snapshot(view: View, path: Path) -> int:
    """Write what a view shows; how many bytes that takes."""
    data = encode_snapshot(view)
    write_atomically(path, data)
    return len(data)


def encode_snapshot(view: View) -> bytes:
    adopted = view.state.adopted
    file = _File(
        wattline_snapshot=_VERSION,
        at=view.at,
        facility=view.session.document_text(adopted["facility_sha256"]),
        policy=view.session.document_text(adopted["policy_sha256"]),
        state=msgspec.Raw(dump_state(view.state)),
    )
    return msgspec.json.encode(file)


def read_snapshot(path: Path) -> Standing:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror or error}") from error
    return decode_snapshot(data, source=str(path))


def decode_snapshot(data: bytes, *, source: str) -> Standing:
    """`source`: where it came from, as errors name it."""
    if len(data) > _MOST_BYTES:
        raise UnavailableError(f"{source}: larger than {_MOST_BYTES >> 20} MiB, so it is no snapshot")
    try:
        found = decode_json(data, _File)
    except msgspec.MsgspecError as error:
        hint = "`wattline snapshot FILE` writes one"
        raise UnavailableError(f"{source}: is no snapshot: {error}", hint=hint) from error
    if found.wattline_snapshot != _VERSION:
        raise UnavailableError(
            f"{source}: is a snapshot of version {found.wattline_snapshot}, this reads version {_VERSION}",
            hint="write it anew with the same version of wattline",
        )
    facility = build_facility(
        parse_document(found.facility.encode(), FacilityDocument, file=f"{source}: facility"), source=source
    )
    policy = parse_document(found.policy.encode(), Policy, file=f"{source}: policy")
    try:
        state = load_state(facility, bytes(found.state))
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as error:
        raise UnavailableError(f"{source}: its state cannot be read: {error}") from error
    return Standing(state=state, policy=policy, at=max(found.at, state.at))


def age_seconds(standing: Standing) -> float:
    return max(0.0, time.time() - standing.at)
