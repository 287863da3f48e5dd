"""Replay: does the journal lead to the same state, and would the same code decide the same again?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wattline.control.record import StepRecord, encode_decision
from wattline.errors import UnavailableError, WattlineError
from wattline.facility import Facility
from wattline.policy import decide
from wattline.policy.apart import Split, decide_apart, split_of
from wattline.spec.policy import Policy
from wattline.state import Adopted, Decision, Job, Plant, Snapshot, State
from wattline.state.partial import PartialSnapshot

# What a policy on trial may run into; nobody's training ends for it.
TROUBLE = (
    WattlineError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


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


class Deciders:
    """Who decides at each step, as the journal says: one policy, or a candidate for its share beside it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._policies: dict[str, Policy] = {}
        self._split: tuple[dict[str, str], Plant, Split] | None = None
        self.failure = ""  # of the candidate, the last time it was asked

    def decide(self, state: State, at: float) -> Decision:
        """Where the candidate fails, the policy in force decides for all; in a replay too."""
        adopted = state.adopted
        in_force = self._policy(adopted["policy_sha256"])
        self.failure = ""
        if "canary_sha256" in adopted:
            try:
                return decide_apart(state, at, in_force, self.split(state))
            except TROUBLE as error:
                self.failure = f"it failed: {type(error).__name__}: {error}"
        return decide(Snapshot(state, at), in_force)

    def standpoint(self, state: State, at: float, job: Job) -> tuple[Snapshot, Policy]:
        """What whoever decides about a job sees, and by which policy."""
        in_force = self._policy(state.adopted["policy_sha256"])
        if "canary_sha256" not in state.adopted:
            return Snapshot(state, at), in_force
        split = self.split(state)
        if split.is_candidates(job):
            return PartialSnapshot(state, at, split.is_candidates, sorted(split.others)), split.candidate
        return PartialSnapshot(state, at, split.is_in_force, sorted(split.nodes)), in_force

    def split(self, state: State) -> Split:
        """The split in force; the same object for as long as it is."""
        adopted = state.adopted
        if self._split is None or self._split[0] != adopted or self._split[1] is not state.plant:
            in_force, candidate = (self._policy(adopted[f"{kind}_sha256"]) for kind in ("policy", "canary"))
            self._split = (adopted, state.plant, split_of(adopted, state.plant, in_force, candidate))
        return self._split[2]

    def _policy(self, digest: str) -> Policy:
        if digest not in self._policies:
            self._policies[digest] = self._documents.policy(digest)
        return self._policies[digest]


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
    deciders = Deciders(documents)
    for seq, record in steps:
        state = fold_step(state, seq, record, documents)
        if record.digest and state.digest() != record.digest:
            yield Drift(seq=seq, at=state.at, what="state", recorded=record.digest, derived=state.digest())
        if not record.decided:
            continue
        if policy is not None:
            derived = decide(Snapshot(state, record.decision.at), policy)
        else:
            derived = deciders.decide(state, record.decision.at)
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
