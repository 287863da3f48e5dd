"""The tables behind the state, and the indexes that keep a decision from touching all of them."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort

import msgspec

from wattline.facility import Facility
from wattline.state.account import Account, week_of
from wattline.state.action import ActionKind
from wattline.state.claim import claim_of
from wattline.state.conditions import Conditions
from wattline.state.job import HOLDING, Flight, Job, JobState, Run
from wattline.state.ledger import Ledger
from wattline.state.plant import Plant
from wattline.state.request import PRIORITY_RANK

_encode = msgspec.json.Encoder(order="deterministic").encode
_MODULUS = 1 << 128

Shape = tuple[object, ...]


class Tables:
    """Jobs, claims, accounts, readings and actions in flight; written while folding and settling only."""

    def __init__(self, facility: Facility) -> None:
        self.build_on(facility)
        self.at = 0.0
        self.jobs: dict[str, Job] = {}
        self.runs: dict[str, Run] = {}
        self.accounts: dict[str, Account] = {}
        self.flights: dict[str, Flight] = {}
        self.releases: dict[str, dict[str, object]] = {}
        self.adopted: dict[str, str] = {}
        # Indexes: derived from the above, never dumped.
        self.waiting: dict[Shape, list[tuple[float, float, str]]] = {}
        self.holding: dict[str, None] = {}
        self.paused: dict[str, None] = {}
        self.flying: dict[str, dict[str, None]] = {}  # job → its actions in flight
        self.dependants: dict[str, list[str]] = {}
        self.restless: dict[str, None] = {}  # holding jobs that the next decision looks at, whatever changed
        # Shape → ledger.loosened and the week when it was found not to fit: until one of them changes.
        self.stuck: dict[Shape, tuple[int, int]] = {}
        self.stuck_at = 0.0  # when a shape was last found not to fit
        self.doubted_seconds = 0.0  # how old the oldest reading was then that has been replaced since
        self.version = 0
        self._sum = 0
        self._hashes: dict[tuple[str, str], int] = {}
        self.readings: dict[tuple[str, str], tuple[float, float]] = {}  # subject, quantity → value, at

    def build_on(self, facility: Facility) -> None:
        """Start the ledger anew on a facility; what was read of another one says nothing of this one."""
        self.plant = Plant(facility)
        self.ledger = Ledger(self.plant)
        self.conditions = Conditions()

    def digest(self) -> str:
        """A hash of everything that is true, kept up to date by what changes."""
        return f"{self._sum:032x}"

    def put(self, job: Job) -> None:
        """Replace a job and keep every index in step."""
        before = self.jobs.get(job.id)
        if before is not None:
            self._unindex(before)
        self.jobs[job.id] = job
        if job.state is JobState.WAITING:
            insort(self.waiting.setdefault(job.remainder.shape, []), waiting_key(job))
        elif job.state in HOLDING:
            self.holding[job.id] = None
            if before is None or _standing(before) != _standing(job):
                self.restless[job.id] = None
        elif job.state is JobState.PAUSED:
            self.paused[job.id] = None
        self._hash("job", job.id, job)

    def put_run(self, run: Run) -> None:
        self.runs[run.run] = run
        self._hash("run", run.run, run)

    def put_account(self, project: str, account: Account) -> None:
        self.accounts[project] = account
        self._hash("account", project, account)

    def put_flight(self, action_id: str, flight: Flight | None) -> None:
        if flight is not None:
            self.flights[action_id] = flight
            self.flying.setdefault(flight.action.job, {})[action_id] = None
        elif action_id in self.flights:
            job = self.flights.pop(action_id).action.job
            del self.flying[job][action_id]
            if not self.flying[job]:
                del self.flying[job]
            self.restless[job] = None
        self._hash("flight", action_id, flight)

    def put_release(self, name: str, release: dict[str, object]) -> None:
        self.releases[name] = release
        self._hash("release", name, release)

    def put_adopted(self, documents: dict[str, str]) -> None:
        self.adopted = documents
        self._hash("adopted", "", documents)

    def note_reading(self, subject: str, quantity: str, value: float, at: float) -> None:
        self.readings[subject, quantity] = (value, at)
        self._hash(f"reading {subject}", quantity, (value, at))

    def forget_reading(self, subject: str, quantity: str) -> None:
        del self.readings[subject, quantity]
        self._hash(f"reading {subject}", quantity, None)

    def doubt(self, read_at: float) -> None:
        """A reading of that time was replaced: too old then, it counted as worse than it may be now."""
        self.doubted_seconds = max(self.doubted_seconds, self.stuck_at - read_at)

    def hold(self, job: Job) -> None:
        """Put the claim of a job at its place into the ledger, in place of an earlier one.

        A higher cap counts from the moment it is asked for, a lower one once it is acknowledged.
        """
        assert job.place is not None
        asked = [self.flights[action_id].action for action_id in self.flying.get(job.id, ())]
        fractions = [action.fraction for action in asked if action.kind is ActionKind.CAP_POWER]
        power_fraction = max(job.power_fraction, *fractions, 0.0)
        self.ledger.hold(job.id, claim_of(job.request, job.place, self.plant, power_fraction))

    def account(self, project: str) -> Account:
        return self.accounts.get(project, Account()).at_week(week_of(self.at))

    def _unindex(self, job: Job) -> None:
        if job.state is JobState.WAITING:
            shape = job.remainder.shape
            queue = self.waiting[shape]
            del queue[bisect_left(queue, waiting_key(job))]
            if not queue:
                del self.waiting[shape]
                self.stuck.pop(shape, None)
        elif job.state in HOLDING:
            del self.holding[job.id]
        elif job.state is JobState.PAUSED:
            del self.paused[job.id]

    def _hash(self, kind: str, key: str, value: object) -> None:
        name = (kind, key)
        before = self._hashes.pop(name, 0)
        after = 0
        if value is not None:
            data = _encode([kind, key, value])
            after = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "big")
            self._hashes[name] = after
        self._sum = (self._sum - before + after) % _MODULUS


def _standing(job: Job) -> tuple[object, ...]:
    """What of a job makes a decision look at it anew."""
    return (job.state, job.attempt, job.rung, job.power_fraction, job.asked, job.clear_since)


def waiting_key(job: Job) -> tuple[float, float, str]:
    """Who is first among jobs of one shape: the more urgent, then the one that came earlier."""
    return (-PRIORITY_RANK[job.request.priority], job.submitted_at, job.id)
