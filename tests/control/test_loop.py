"""The loop writes down before it acts, and whatever the world does, everything ends and nothing is held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from building import MONDAY, a_facility, a_job, a_link, a_policy, a_site, adopted, assert_ledger_is_true
from wattline.control import Documents, StepRecord, refold, replay, step
from wattline.errors import UnavailableError
from wattline.spec import Policy
from wattline.state import ENDED, Action, Decision, Event, RunSubmitted, State, dump_state
from wattline.state.account import Promised
from wattline.store import MemoryJournal
from wattline.store.steps import StepJournal, read_steps

FACILITY = a_facility(
    a_site("zurich", racks=2, nodes=2, rack_cap_watts=5000.0, feeds_watts=(10_000.0,), loop_watts=10_000.0,
           telemetry="emulated"),
    a_site("oslo", nodes=1, usd_per_kwh=5.0),
    links=[a_link(("zurich", "oslo"))],
)  # fmt: skip
POLICY = a_policy(thresholds={"settle": "20s", "clear_for": "40s", "clear_margin": "5%"})
STRICT = a_policy(
    thresholds={"settle": "20s", "clear_for": "40s", "clear_margin": "5%", "power_margin": "40%"}
)
SEEDS = range(8)


def documents(policy: Policy = POLICY) -> Documents:
    return Documents(facility=lambda _: FACILITY, policy=lambda _: policy)


def live(world: Any, journal: MemoryJournal, turns: int = 4000) -> State:
    """Run the loop until the world has nothing more to say and nothing is left to do."""
    state, steps = State(FACILITY), StepJournal(journal)
    for _ in range(turns):
        decision = step(world, state, POLICY, steps)
        assert_ledger_is_true(state)
        if world.silent and not state.flights and all(job.state in ENDED for job in state.jobs.values()):
            return state
        world.sleep_until(decision.revisit_at)
    raise AssertionError(
        f"not at rest after {turns} turns: {[job for job in state.jobs.values() if job.state not in ENDED]}"
    )


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed {seed}")
def lived(
    request: pytest.FixtureRequest, a_scripted_world: Callable[..., Any]
) -> tuple[State, MemoryJournal]:
    journal = MemoryJournal()
    return live(a_scripted_world(request.param), journal), journal


def test_every_job_ends_and_the_ledger_is_empty(lived: tuple[State, MemoryJournal]) -> None:
    state, _ = lived
    assert len(state.jobs) == 24
    assert Counter(job.state in ENDED for job in state.jobs.values()) == {True: 24}
    assert not any(state.ledger.claimed)
    assert not state.ledger.claims
    assert not state.flights
    assert all(account.promised == Promised() for account in state.accounts.values())


def test_the_same_code_replays_to_the_same_decisions(lived: tuple[State, MemoryJournal]) -> None:
    state, journal = lived
    assert journal.verify() == journal.last_seq() > 50
    assert list(replay(read_steps(journal), documents())) == []
    folded = refold(None, read_steps(journal), documents())
    assert folded is not None
    assert folded.digest() == state.digest()
    assert msgspec.json.decode(dump_state(folded))["jobs"] == msgspec.json.decode(dump_state(state))["jobs"]


def test_the_same_seed_writes_the_same_journal(a_scripted_world: Callable[..., Any]) -> None:
    first, second = MemoryJournal(), MemoryJournal()
    live(a_scripted_world(3), first)
    live(a_scripted_world(3), second)
    assert [record.hash for record in first.read()] == [record.hash for record in second.read()]


def test_the_worlds_are_rough_enough(a_scripted_world: Callable[..., Any]) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        journal = MemoryJournal()
        live(a_scripted_world(seed), journal)
        for _, record in read_steps(journal):
            seen.update(action.kind.value for action in record.decision.actions)
            seen.update(type(event).__name__ for event in record.events)
    assert set(seen) >= {"start", "cap_power", "pause", "resume", "stop", "ActionFailed", "Acknowledged"}


def test_another_policy_differs_first_where_it_would_have_decided_otherwise(
    a_scripted_world: Callable[..., Any],
) -> None:
    journal = MemoryJournal()
    live(a_scripted_world(1), journal)
    first = next(replay(read_steps(journal), documents(), policy=STRICT))
    assert first.what == "decision"
    steps = dict(read_steps(journal))
    before = [(seq, record) for seq, record in steps.items() if seq < first.seq]
    assert list(replay(before, documents(), policy=STRICT)) == []
    assert first.recorded != first.derived
    assert first.at == steps[first.seq].decision.at


@pytest.mark.parametrize("part", ["events", "digest", "decision"])
def test_a_record_that_was_tampered_with_shows_as_drift(
    part: str, a_scripted_world: Callable[..., Any]
) -> None:
    journal = MemoryJournal()
    live(a_scripted_world(2), journal)
    steps = list(read_steps(journal))
    index = next(n for n, (_, record) in enumerate(steps) if record.decision.actions and n > 3)
    seq, record = steps[index]
    changes: dict[str, dict[str, Any]] = {
        "events": {
            "events": (*record.events, RunSubmitted(at=MONDAY, run="x", pipeline="p", jobs=(a_job("x/y"),)))
        },
        "digest": {"digest": "0" * 32},
        "decision": {"decision": msgspec.structs.replace(record.decision, actions=())},
    }
    steps[index] = (seq, msgspec.structs.replace(record, **changes[part]))
    first = next(replay(steps, documents()))
    assert first.seq == seq
    assert first.what == ("decision" if part == "decision" else "state")


def test_a_journal_without_its_beginning_is_not_replayed() -> None:
    record = StepRecord(events=(), digest="", decision=Decision(at=0.0))
    with pytest.raises(UnavailableError, match="record 7"):
        list(replay([(7, record)], documents()))


class Crashing:
    """A world whose first order never gets out: the process dies in between."""

    def now(self) -> float:
        return MONDAY

    def events(self) -> Sequence[Event]:
        jobs = (a_job(residency=("eu",), gpus=0),)
        return [adopted(MONDAY), RunSubmitted(at=MONDAY, run="r1", pipeline="p", jobs=jobs)]

    def apply(self, action: Action) -> None:
        raise ConnectionError(action.id)

    def sleep_until(self, at: float | None) -> None:
        raise AssertionError(at)


def test_what_was_decided_is_written_before_it_is_done() -> None:
    journal, state = MemoryJournal(), State(a_facility())
    with pytest.raises(ConnectionError):
        step(Crashing(), state, POLICY, StepJournal(journal))
    (_, record), *rest = read_steps(journal)
    assert rest == []
    assert [action.kind.value for action in record.decision.actions] == ["start"]
    known = Documents(facility=lambda _: a_facility(), policy=lambda _: POLICY)
    after = refold(None, _one(record), known)
    assert after is not None
    assert after.digest() == state.digest()
    assert list(after.flights) == [record.decision.actions[0].id]  # to be asked again


def _one(record: StepRecord) -> Iterator[tuple[int, StepRecord]]:
    yield 1, record
