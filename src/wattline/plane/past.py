"""The past: how did this state folder stand at an earlier time, as its journal has it?"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import msgspec

from wattline.control import Difference, Opinion, Sides, StepRecord, Tally, Turn, refold, turns, until
from wattline.decoding import decode_json
from wattline.errors import UnavailableError, UsageError
from wattline.plane.moments import clock, iso
from wattline.plane.session import Session
from wattline.spec import Policy
from wattline.state import State, load_state
from wattline.store import Snapshot
from wattline.store.steps import read_steps
from wattline.units import DURATION, QuantityError

_SOON_SECONDS = 1.0  # clocks of people who type are no better
_SAY_EVERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """All that was known at a time, after the last decision up to then."""

    state: State
    seq: int  # of the last record that it holds
    at: float  # … and when that was decided
    policy: Policy  # in force then


class _Head(msgspec.Struct, frozen=True):
    """What of a snapshot says when it was taken, on what."""

    at: float
    adopted: dict[str, str]


def read_moment(text: str, now: float | None = None, *, option: str = "--at") -> float:
    """An ISO time, local where it names no zone; or so long ago, such as -2h."""
    now = time.time() if now is None else now
    try:
        if text.startswith("-"):
            return now - DURATION.parse(text[1:])
        at = datetime.fromisoformat(text).timestamp()
    except (QuantityError, ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{option} {text[:100]!r} is no time",
            hint="write it as 2026-05-01T14:20Z, or as -2h: two hours ago",
        ) from error
    if at > now + _SOON_SECONDS:
        raise UsageError(f"{option} {text} has not come yet", hint="name a time that has passed")
    return at


def go_back(session: Session, at: float) -> Past:
    """The state folded up to a time, from the newest snapshot before it or from the first record."""
    state, seq = _start(session, at=at)
    if state is None:
        _check_reaches(session, at)

    def noted() -> Iterator[tuple[int, StepRecord]]:
        nonlocal seq
        for number, record in until(read_steps(session.store.journal, seq), at):
            seq = number
            yield number, record

    state = refold(state, noted(), session.documents)
    assert state is not None  # the first record adopts
    policy = session.policy_of(state.adopted["policy_sha256"])
    return Past(state=state, seq=seq, at=state.at, policy=policy)


def ask_since(
    session: Session, policy: Policy, tally: Tally, *, after_seq: int, at: float
) -> Iterator[Difference]:
    """What another policy would have decided otherwise, after a record and up to a time."""
    state, seq = _start(session, seq=after_seq)
    opinion = Opinion(policy)
    for turn in turns(state, until(read_steps(session.store.journal, seq), at), session.documents):
        if turn.seq > after_seq:
            decided = turn.record.decision
            would = opinion.ask(turn.state, decided.at)
            yield from tally.take(turn.state, Sides(decided, would, turn.in_force, policy), turn.seq)


def turns_since(session: Session, since: float | None, say: Callable[[str], None]) -> Iterator[Turn]:
    """Every recorded turn from a time on, all of them where none is named; each before it was settled.

    There may be a million: `say` hears now and then how far it has come.
    """
    said_at, count = time.monotonic(), 0
    state, seq = (None, 0) if since is None else _start(session, at=since)
    if state is None:
        _check_reaches(session)
    for turn in turns(state, read_steps(session.store.journal, seq), session.documents):
        if since is not None and turn.record.decision.at < since:
            continue
        yield turn
        count += 1
        if time.monotonic() - said_at >= _SAY_EVERY_SECONDS:
            said_at = time.monotonic()
            say(f"{count:,} recorded decisions, up to {clock(turn.record.decision.at)}")


def _start(session: Session, *, seq: int | None = None, at: float | None = None) -> tuple[State | None, int]:
    """The newest snapshot up to a record or a time that can be used; nothing where none can."""
    before = None if seq is None else seq + 1
    while (snapshot := session.store.journal.latest_snapshot(before)) is not None:
        before = snapshot.seq
        try:
            head = decode_json(snapshot.payload, _Head)
            if at is None or head.at <= at:
                return _load(session, snapshot, head), snapshot.seq
        except (UnavailableError, msgspec.MsgspecError, LookupError) as error:
            sys.stderr.write(f"wattline: snapshot at record {before} is passed over: {error}\n")
    return None, 0


def _load(session: Session, snapshot: Snapshot, head: _Head) -> State:
    return load_state(session.facility_of(head.adopted["facility_sha256"]), snapshot.payload)


def _check_reaches(session: Session, at: float | None = None) -> None:
    """Whether what was recorded goes back as far as that."""
    first = next(iter(session.store.journal.read(limit=1)), None)
    if first is None:
        raise UnavailableError("nothing was recorded here yet", hint="`wattline run` begins")
    if first.seq > 1:
        raise UnavailableError(
            f"the journal begins with record {first.seq} of {iso(first.at)}: what came before was trimmed",
            hint="name a later time, or restore the journal from a backup",
        )
    if at is not None and at < first.at:
        raise UsageError(
            f"at {iso(at)} nothing was recorded here yet: the journal begins at {iso(first.at)}",
            hint="name a later time",
        )
