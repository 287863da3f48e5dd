"""One step of the loop as the journal keeps it: what came in, what was true then, what was decided."""

from __future__ import annotations

import msgspec

from wattline.state import Decision, Event


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    digest: str  # of the state after folding the events; "" where it was not taken
    decision: Decision
    decided: bool = True  # False: only taken note of, between turns, by a process that does not conduct


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(StepRecord).decode


def encode_step(record: StepRecord) -> bytes:
    """The same step gives the same bytes."""
    return _encode(record)


def decode_step(payload: bytes) -> StepRecord:
    return _decode(payload)


def encode_decision(decision: Decision) -> bytes:
    return _encode(decision)
