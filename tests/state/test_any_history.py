"""Whatever happens, in whatever order: the ledger is true, nothing is lost, and the journal tells it all.

A history is a list of moves. Each move is read against what is true when its turn comes, so that shrinking
one leaves a history that still means something.
"""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from building import (
    MONDAY,
    Hall,
    a_cloud,
    a_facility,
    a_job,
    a_ladder,
    a_link,
    a_policy,
    a_site,
    adopted,
    assert_ledger_is_true,
)
from wattline.control import Documents, StepRecord, decode_step, encode_decision, encode_step, refold, replay
from wattline.facility import Sleep
from wattline.policy import decide
from wattline.state import (
    ENDED,
    HOLDING,
    Acknowledged,
    ActionFailed,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    Expected,
    Forecasted,
    JobRequest,
    JobState,
    Measured,
    NodeGivenBack,
    NodeMode,
    NodeReclaimed,
    NodeSlept,
    NodeWoke,
    Progressed,
    RunSubmitted,
    Snapshot,
    State,
    Ticked,
    Usage,
    dump_state,
    elastic_request,
    load_state,
)
from wattline.state.account import Promised
from wattline.state.state import EVENT_FOLDS

_SITES = (
    a_site("zurich", racks=2, nodes=2, gpus=4, cpus=8, rack_cap_watts=2600.0, feeds_watts=(5000.0, 5000.0),
           redundant=True, loop_watts=5000.0, telemetry="emulated", storage_bytes_per_second=3e8),
    a_site("oslo", nodes=2, gpus=4, cpus=8, rack_cap_watts=3000.0, region="no", usd_per_kwh=0.05,
           other_watts=200.0, sleep=Sleep(wake_seconds=30.0, asleep=0.1)),
    a_cloud("cloud", machines=2, gpus=4, cpus=8, usd_per_gpu_hour=1.1, usd_per_gigabyte_out=0.1,
            reclaims_per_gpu_hour=0.01, notice_seconds=30.0),
)  # fmt: skip
# Oslo takes more load only by and by, and minds work in step.
_OSLO = replace(
    _SITES[1],
    supplies=tuple(
        replace(one, ramp_watts_per_minute=2000.0, swing_watts=1500.0) for one in _SITES[1].supplies
    ),
)
_LINKS = [a_link(("zurich", "oslo")), a_link(("zurich", "cloud"), usd_per_gigabyte=0.0)]
FACILITY = a_facility(_SITES[0], _OSLO, _SITES[2], links=_LINKS)
POLICY = a_policy(
    thresholds={"settle": "5s", "clear_for": "20s", "acknowledge_within": "15s", "restart_backoff": "8s"},
    classes={
        "urgent": {"priority": 50},
        "short": {"max_duration": "10h", "queue": {"max_wait": "12s", "by": "p90"}},
    },
    teams={
        "nlp": {"quota": {"gpu_hours": 60}, "queue": {"max_wait": "25s", "mode": "warn"}},
        "vision": {"quota": {"usd": 5}, "limit": "soft", "queue": {"max_waiting_jobs": 2}},
    },
    rules=[{"name": "big", "when": "job.gpus > 12 && !job.approved", "say": "ask first", "mode": "block"}],
    under_pressure=[{"cap_power": "60%"}, {"pause": "60s"}, {"migrate": "any"}],
    resizing={"begin": "if_sooner", "least_time": "30s", "restart": "5s"},
    scaling={"sleep_after": "60s", "retry_after": "40s"},
    starts={"at_once": 3, "within": "20s", "loads_at_once": 1},
)
DOCUMENTS = Documents(facility=lambda _: FACILITY, policy=lambda _: POLICY)

_GPUS = (1, 0, 2, 4, 6, 8, 16, 40)
_LADDERS = (
    None,
    a_ladder({"cap_power": "50%"}, {"shrink_batch": "50%"}, {"pause": "30s"}, {"stop": True}),
    a_ladder({"migrate": "any"}),
)
_SUBJECTS = (
    ("zurich/r1", "rack_watts", 3000.0), ("zurich/feed-a", "supply_watts", 6000.0),
    ("zurich/loop", "loop_heat_watts", 6000.0), ("zurich/loop", "flow_fraction", 1.2),
    ("zurich/r2", "cap_watts", 2600.0), ("zurich/r1-n1/gpu0", "gpu_celsius", 100.0),
    ("zurich/r1-n1/gpu1", "gpu_celsius", 100.0), ("oslo/r1-n2/gpu0", "gpu_watts", 400.0),
    ("zurich-oslo:checkpoint", "cap_bits_per_second", 1e9), ("nowhere/r9", "rack_watts", 5.0),
    ("zurich/loop", "coolant_celsius", 90.0), ("zurich/r2", "rack_watts", 2000.0),
    ("cloud", "usd_per_gpu_hour", 3.0), ("cloud/r1-n1", "node_up", 1.0), ("zurich/r1-n2", "node_up", 1.0),
    ("zurich/r1-n1", "others_gpus", 4.0), ("oslo/r1-n2", "others_gpus", 4.0),
)  # fmt: skip
_WAITS = (0.0, 1.0, 4.0, 9.0, 35.0, 130.0, 400_000.0)
_SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)
_WORDS = ("pause", "resume", "cancel", "dance", "burst")


def _request(run: str, phase: str, first: int, second: int, after: tuple[str, ...]) -> JobRequest:
    request = a_job(
        f"{run}/{phase}",
        gpus=_GPUS[first % len(_GPUS)],
        cpus=1.0 + second % 6,
        project=("nlp", "vision", "free")[second % 3],
        scheduling_class=("urgent", "short", "other")[first % 3],
        max_duration_seconds=3600.0 * (1 + second % 4),
        peak_watts=None if second % 2 else 900.0,
        checkpoints=second % 4 != 0,
        checkpoint_bits_per_second=float(second % 3) * 4e8,
        replicate_to=("oslo",) if second % 5 == 0 else (),
        ladder=_LADDERS[first % len(_LADDERS)],
        residency=("eu",) if first % 4 == 1 else (),
        restart_max=second % 3,
        after=after,
        communicating_watts=100.0 if second % 4 == 1 else None,
        burst=second % 3 == 1,
        deadline_at=MONDAY + 3600.0 * (1 + second % 7) if second % 3 == 1 else None,
        brings_back_bytes=float(first % 3) * 1e9,
    )
    if request.gpus < 2 or second % 2:
        return request
    return elastic_request(request, request.gpus // 2, 2 * request.gpus, alpha=0.5 + 0.1 * (first % 5))


class History:
    """Live state, the journal beside it, and what each move means here."""

    def __init__(self) -> None:
        self.hall = Hall(FACILITY, POLICY, MONDAY)
        self.batch: list[Event] = [adopted(MONDAY)]
        self.told: list[Event] = []
        self.journal: list[bytes] = []
        self.submitted = 0
        self.runs = 0

    def move(self, kind: str, first: int, second: int) -> None:
        event = getattr(self, f"_{kind}")(first, second)
        if event is not None:
            self.batch.append(event)

    def turn(self) -> Decision:
        """One step of the loop, with every promise checked on the way."""
        hall = self.hall
        hall.state.fold(self.batch)
        before = dump_state(hall.state)
        decision = decide(hall.snapshot(), POLICY)
        assert dump_state(hall.state) == before
        self._check_from_scratch(decision)
        record = StepRecord(events=tuple(self.batch), digest=hall.state.digest(), decision=decision)
        self.journal.append(encode_step(record))
        hall.state.settle(decision)
        self.told += self.batch
        self.batch = []
        self._check_invariants(decision)
        return decision

    def _check_from_scratch(self, decision: Decision) -> None:
        state, at = self.hall.state, self.hall.at
        loaded = load_state(FACILITY, dump_state(state))
        assert loaded.digest() == state.digest()
        loaded.stuck.clear()
        scratch = decide(Snapshot(loaded, at), POLICY)
        assert scratch.actions == decision.actions
        assert scratch.revisit_at == decision.revisit_at

    def _check_invariants(self, decision: Decision) -> None:
        state = self.hall.state
        assert_ledger_is_true(state)
        for number, resource in enumerate(state.plant.resources):
            idle = resource.idle - state.ledger.saved.get(number, 0)
            assert idle + state.ledger.claimed[number] <= resource.cap, resource
        jobs = state.jobs.values()
        assert len(state.jobs) == self.submitted
        assert (
            set(state.holding) == {job.id for job in jobs if job.state in HOLDING} == set(state.ledger.claims)
        )
        assert set(state.paused) == {job.id for job in jobs if job.state is JobState.PAUSED}
        unspoken = {job.request.run for job in jobs if job.state in ENDED}
        unspoken -= {run.run for run in state.runs.values() if run.ended_at is not None}
        assert unspoken <= set(state.ending)
        waiting = [key[2] for queue in state.waiting.values() for key in queue]
        assert sorted(waiting) == sorted(job.id for job in jobs if job.state is JobState.WAITING)
        flights = [flight.action for flight in state.flights.values()]
        assert all(state.jobs[action.job].state in HOLDING for action in flights if action.job)
        turning = {node for mode in ("falling", "waking") for node in state.resting.modes[NodeMode(mode)]}
        assert {state.plant.node_number[action.node] for action in flights if action.node} == turning
        assert decision.revisit_at is None or decision.revisit_at > decision.at
        assert len({action.id for action in decision.actions}) == len(decision.actions)
        for project, account in state.accounts.items():
            promises = [state.jobs[job_id].promise for job_id in state.holding
                        if state.jobs[job_id].request.project == project]  # fmt: skip
            assert account.promised == functools.reduce(Promised.plus, promises, Promised())

    def _wait(self, first: int, _second: int) -> Event:
        self.hall.wait(_WAITS[first % len(_WAITS)])
        return Ticked(at=self.hall.at)

    def _submit(self, first: int, second: int) -> Event:
        self.runs += 1
        run = f"r{self.runs:02}"
        jobs = [_request(run, "train", first, second, ())]
        if first % 2:
            jobs.append(_request(run, "eval", second, first, (f"{run}/train",)))
        self.submitted += len(jobs)
        return RunSubmitted(at=self.hall.at, run=run, pipeline="p", jobs=tuple(jobs))

    def _answer(self, first: int, second: int) -> Event | None:
        flights = list(self.hall.state.flights.values())
        if not flights:
            return None
        action = flights[first % len(flights)].action
        if second % 4 == 0:
            return ActionFailed(at=self.hall.at, action=action.id, say="no")
        if action.node:
            answer = NodeSlept if action.kind == "sleep" else NodeWoke
            return answer(at=self.hall.at, node=action.node, action=action.id)
        if action.place is not None:
            return AttemptStarted(at=self.hall.at, job=action.job, attempt=action.attempt)
        return Acknowledged(at=self.hall.at, action=action.id)

    def _end(self, first: int, second: int) -> Event | None:
        holding = list(self.hall.state.holding)
        if not holding:
            return None
        job = self.hall.state.jobs[holding[first % len(holding)]]
        ending = list(Ending)[second % len(Ending)]
        usage = Usage(gpu_hours=float(first % 5), usd=0.5)
        return AttemptEnded(at=self.hall.at, job=job.id, attempt=job.attempt, ending=ending, usage=usage)

    def _progress(self, first: int, second: int) -> Event | None:
        jobs = list(self.hall.state.jobs.values())
        if not jobs:
            return None
        job = jobs[first % len(jobs)]
        attempt = job.attempt - second % 2
        if second % 3 == 0:
            return CheckpointSaved(at=self.hall.at, job=job.id, attempt=attempt, step=second, site="zurich")
        loss = float("nan") if second % 5 == 0 else 0.5
        return Progressed(at=self.hall.at, job=job.id, attempt=attempt, step=second, loss=loss)

    def _read(self, first: int, second: int) -> Event:
        subject, quantity, most = _SUBJECTS[first % len(_SUBJECTS)]
        value = float("nan") if second == 19 else most * _SHARES[second % len(_SHARES)]
        late = 20.0 if second % 7 == 6 else 0.0
        return Measured(at=self.hall.at - late, readings=((subject, quantity, value),))

    def _meter(self, first: int, second: int) -> Event:
        """Every meter of zurich at once, from idle to more than its caps."""
        share = _SHARES[first % len(_SHARES)] * (1.3 if second % 4 == 0 else 0.9)
        meters = (("r1", "rack_watts", 2600), ("r2", "rack_watts", 2600), ("loop", "loop_heat_watts", 5000),
                  ("feed-a", "supply_watts", 5000), ("feed-b", "supply_watts", 5000))  # fmt: skip
        readings = tuple((f"zurich/{name}", quantity, most * share) for name, quantity, most in meters)
        return Measured(at=self.hall.at, readings=readings)

    def _ask(self, first: int, second: int) -> Event:
        jobs = [*self.hall.state.jobs, "nobody/train"]
        return Asked(at=self.hall.at, job=jobs[first % len(jobs)], want=_WORDS[second % len(_WORDS)])

    def _forecast(self, first: int, second: int) -> Event:
        """Of all jobs there are, sensible or not; now and then an old one comes late."""
        at = self.hall.at - (20.0 if second % 7 == 6 else 0.0)
        late = None if first % 3 == 0 else at + first
        come = [one.job for event in self.batch if isinstance(event, RunSubmitted) for one in event.jobs]
        starts = tuple(Expected(job, at + second, late) for job in (*self.hall.state.jobs, *come))
        return Forecasted(at=at, starts=starts, samples=second, horizon_seconds=600.0)

    def _reclaim(self, first: int, second: int) -> Event:
        """A machine, or one that nobody has, is taken back or given back; now and then that is old news."""
        at = self.hall.at - (20.0 if second % 7 == 6 else 0.0)
        node = ("cloud/r1-n1", "cloud/r1-n2", "oslo/r1-n1", "nowhere/n1")[first % 4]
        if second % 3 == 0:
            return NodeGivenBack(at=at, node=node)
        return NodeReclaimed(at=at, node=node, notice_seconds=float(second))

    def _again(self, first: int, _second: int) -> Event | None:
        """Something that was told already is told again, however late."""
        return self.told[first % len(self.told)] if self.told else None


_KINDS = ("submit", "submit", "answer", "answer", "answer", "answer", "end", "progress", "read", "meter",
          "meter", "meter", "ask", "wait", "wait", "again", "forecast", "reclaim")  # fmt: skip
moves = st.lists(
    st.tuples(st.sampled_from(_KINDS), st.integers(0, 39), st.integers(0, 39), st.booleans()),
    min_size=10,
    max_size=60,
)
bounded = settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def lived(steps: list[tuple[str, int, int, bool]]) -> History:
    history = History()
    for kind, first, second, ends_turn in steps:
        history.move(kind, first, second)
        if ends_turn:
            history.turn()
    history.turn()
    return history


@bounded
@given(moves)
def test_a_state_folded_from_the_journal_is_the_live_one(steps: list[tuple[str, int, int, bool]]) -> None:
    history = lived(steps)
    records = [(seq, decode_step(payload)) for seq, payload in enumerate(history.journal, start=1)]
    folded = refold(None, records, DOCUMENTS)
    assert folded is not None
    assert folded.digest() == history.hall.state.digest()
    assert dump_state(folded) == dump_state(history.hall.state)
    assert list(replay(records, DOCUMENTS)) == []


@bounded
@given(moves)
def test_a_state_that_was_dumped_and_loaded_decides_the_same(steps: list[tuple[str, int, int, bool]]) -> None:
    hall = lived(steps).hall
    loaded = load_state(FACILITY, dump_state(hall.state))
    assert loaded.digest() == hall.state.digest()
    assert dump_state(loaded) == dump_state(hall.state)
    for later in (hall.at, hall.at + 16, hall.at + 700):
        live, again = (decide(Snapshot(state, later), POLICY) for state in (hall.state, loaded))
        assert encode_decision(live) == encode_decision(again)
        hall.state.settle(live)
        loaded.settle(again)
        assert dump_state(loaded) == dump_state(hall.state)


@bounded
@given(moves)
def test_every_history_can_be_brought_to_an_end_that_holds_nothing(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    """No action is lost: answered, failed, overtaken by its attempt's end, or asked again until it stops."""
    history = lived(steps)
    hall = history.hall
    hall.state.fold([Asked(at=hall.at, job=job_id, want="cancel") for job_id in list(hall.state.jobs)])
    for _ in range(12):  # nobody answers: everything that runs is asked to stop, and asked again
        hall.wait(16)
        decision = history.turn()
        assert decision.due_at is not None or not hall.state.flights
    for flight in list(hall.state.flights.values()):
        if flight.action.node:  # a node is asked until it answers
            hall.failed(flight.action)
    unanswered = {flight.action.job for flight in hall.state.flights.values()}
    stops = {flight.action.job for flight in hall.state.flights.values() if flight.action.kind == "stop"}
    assert stops == unanswered
    for job_id in list(hall.state.holding):
        hall.ended(job_id, Ending.STOPPED)
    assert all(job.state in ENDED for job in hall.state.jobs.values())
    assert not hall.state.flights
    assert not hall.state.ledger.claims
    assert not any(hall.state.ledger.claimed)
    assert_ledger_is_true(hall.state)


@bounded
@given(moves)
def test_an_event_told_twice_in_a_row_changes_nothing_the_second_time(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    history = lived(steps)
    for event in history.told[-8:]:
        history.hall.fold(event)
        once = dump_state(history.hall.state)
        history.hall.fold(event)
        assert dump_state(history.hall.state) == once


def test_every_event_has_a_fold_that_survives_an_empty_state() -> None:
    assert set(EVENT_FOLDS) == set(get_args(Event))
    state = State(FACILITY)
    state.fold([Ticked(at=1.0), Asked(at=2.0, job="x", want="pause"), Acknowledged(at=3.0, action="x")])
    assert state.at == 3.0
    assert int(state.digest(), 16) == 0


def test_long_histories_reach_every_kind_of_action() -> None:
    """A property that only ever sees idle halls proves nothing: these must be eventful."""
    seen: set[str] = set()
    for seed in range(20):
        chance = random.Random(seed)
        steps = [
            (chance.choice(_KINDS), chance.randrange(40), chance.randrange(40), chance.random() < 0.5)
            for _ in range(120)
        ]
        journal = lived(steps).journal
        decisions = [decode_step(payload).decision for payload in journal]
        seen |= {action.kind for decision in decisions for action in decision.actions}
        seen |= {verdict.rule for decision in decisions for verdict in decision.verdicts}
    assert seen >= {"start", "refuse", "cap_power", "shrink_batch", "pause", "resume", "stop"}
    assert seen >= {"sleep", "wake"}
    assert seen >= {"resizing.start", "resizing.patience", "resizing.grow"}
