"""Replay: does the journal lead to the same state, and would the same code decide the same again?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wattline.control.record import StepRecord, encode_decision
from wattline.errors import UnavailableError
from wattline.facility import Facility
from wattline.policy import decide
from wattline.spec.policy import Policy
from wattline.state import Adopted, Snapshot, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """How replay finds the documents that were in force: by their digest."""

    facility: Callable[[str], Facility]
    policy: Callable[[str], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A step where the past and the present differ."""

    seq: int
    at: float
    what: str  # state | decision
    recorded: str
    derived: str


def refold(
    state: State | None, steps: Iterable[tuple[int, StepRecord]], documents: Documents
) -> State | None:
    """The state after these steps, without deciding anything again; None where nothing was adopted yet."""
    for seq, record in steps:
        state = fold_step(state, seq, record, documents)
        if record.decided:
            state.settle(record.decision)
    return state


def replay(
    steps: Iterable[tuple[int, StepRecord]], documents: Documents, *, policy: Policy | None = None
) -> Iterator[Drift]:
    """Every difference in state or decision, in order. `policy` asks what another one would have decided."""
    state: State | None = None
    for seq, record in steps:
        state = fold_step(state, seq, record, documents)
        if record.digest and state.digest() != record.digest:
            yield Drift(seq=seq, at=state.at, what="state", recorded=record.digest, derived=state.digest())
        if not record.decided:
            continue
        in_force = policy or documents.policy(state.adopted["policy_sha256"])
        derived = decide(Snapshot(state, record.decision.at), in_force)
        was, now = encode_decision(record.decision), encode_decision(derived)
        if was != now:
            yield Drift(
                seq=seq, at=record.decision.at, what="decision", recorded=was.decode(), derived=now.decode()
            )
        state.settle(record.decision)
        if policy is not None:
            state.stuck.clear()  # what did not fit under the recorded policy is no memory of this one


def fold_step(state: State | None, seq: int, record: StepRecord, documents: Documents) -> State:
    """The state after what a step took in, before what it decided; on another facility if it adopts one."""
    for event in record.events:
        if not isinstance(event, Adopted):
            continue
        if state is None:
            state = State(documents.facility(event.facility_sha256))
        elif state.adopted.get("facility_sha256") != event.facility_sha256:
            state.rebase(documents.facility(event.facility_sha256))
    if state is None:
        raise UnavailableError(
            f"journal record {seq}: something happened before any facility was adopted",
            hint="the journal's beginning is missing; restore it from a backup",
        )
    state.fold(record.events)
    return state
