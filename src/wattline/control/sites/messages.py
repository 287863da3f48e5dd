"""The messages: what do an agent and the hub say to each other?

One pair. The agent asks every few seconds; the answer renews its lease, says what to do and how much of what
it told is written down. Both are whole states rather than changes: one that is lost, late or comes twice does
no harm. Numbers make that so: `number` orders requests, `after` and `through` the agent's own journal.
"""

from __future__ import annotations

import msgspec

from wattline.errors import UsageError
from wattline.state import (
    Acknowledged,
    Acted,
    Action,
    ActionFailed,
    AttemptEnded,
    AttemptStarted,
    CheckpointCopied,
    CheckpointSaved,
    Job,
    Measured,
    NodeSlept,
    NodeWoke,
    Noticed,
    Progressed,
    Run,
)

PROTOCOL = 1
MOST_EVENTS = 2000
MOST_BYTES = 4 << 20

Told = (
    AttemptStarted
    | Progressed
    | CheckpointSaved
    | CheckpointCopied
    | AttemptEnded
    | Acknowledged
    | ActionFailed
    | Acted
    | Noticed
    | NodeSlept
    | NodeWoke
)
"""What an agent may tell for the journal. Readings are told beside it: only the newest count."""

TOLD = (
    AttemptStarted,
    Progressed,
    CheckpointSaved,
    CheckpointCopied,
    AttemptEnded,
    Acknowledged,
    ActionFailed,
    Acted,
    Noticed,
    NodeSlept,
    NodeWoke,
)


class Held(msgspec.Struct, frozen=True, array_like=True):
    """An attempt of which something may run at the site."""

    job: str
    attempt: int


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    seconds: float  # from when the request was sent that this answers, on the agent's own clock
    grace_seconds: float  # without a word: then who may not go on alone saves and leaves
    sync_seconds: float  # how often to ask
    supervisor_seconds: float  # how long an attempt goes on without its agent
    envelope: tuple[tuple[str, float], ...] = ()  # watts that each feed and loop of the site may carry


class Order(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action for the site, and for a beginning all that it needs to know of the job."""

    action: Action
    jobs: tuple[Job, ...] = ()  # those before it, then the job itself
    run: Run | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why an agent gets nothing, and what would help."""

    say: str
    hint: str = ""


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    site: str
    agent: str  # which agent, by a name that its home keeps
    number: int  # only grows, also over restarts
    clock: float  # the agent's calendar
    protocol: int = PROTOCOL
    version: str = ""
    epoch: int = 0  # of the lease it holds, or held last; 0: none yet
    receives_at: str = ""  # where other sites may send checkpoints to; "": it takes none
    accepts: int = 0  # the epoch that the last answer offered
    holds: tuple[Held, ...] = ()
    after: int = 0  # `events` are all that its journal tells after this number …
    through: int = 0  # … up to this one
    events: tuple[Told, ...] = ()
    readings: tuple[Measured, ...] = ()


class SyncReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int  # of the request that this answers
    heard: int = 0  # the agent's journal is written down up to here
    lease: Lease | None = None
    orders: tuple[Order, ...] = ()
    offer: int = 0  # to a site that comes back: the epoch it will have, once it says that it has read this
    disowned: tuple[Held, ...] = ()  # what the site holds and may not: to be stopped at once
    refusal: Refusal | None = None
    adopted: dict[str, str] = {}  # documents in force, by digest
    receivers: dict[str, str] = {}  # by site, where known; its own: of a server that ran it before
    soon: bool = False  # ask again at once: something is being written down first


_encode = msgspec.json.Encoder().encode
_decode_request = msgspec.json.Decoder(SyncRequest).decode
_decode_reply = msgspec.json.Decoder(SyncReply).decode


def encode_message(message: SyncRequest | SyncReply) -> bytes:
    return _encode(message)


def decode_request(raw: bytes) -> SyncRequest:
    """From outside: bounded, and every field of its kind."""
    if len(raw) > MOST_BYTES:
        raise UsageError(f"sync: a request has at most {MOST_BYTES} bytes, this one {len(raw)}")
    try:
        request = _decode_request(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(
            f"sync: the request cannot be read: {error}",
            hint="agent and server must be of versions that know each other",
        ) from error
    if len(request.events) > MOST_EVENTS:
        raise UsageError(f"sync: at most {MOST_EVENTS} events at once, got {len(request.events)}")
    return request


def decode_reply(raw: bytes) -> SyncReply:
    try:
        return _decode_reply(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(f"sync: the answer cannot be read: {error}") from error
