"""The tables behind the state, and the indexes that keep a decision from touching all of them."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Sequence

import msgspec

from wattline.facility import Facility
from wattline.state.account import Account, week_of
from wattline.state.action import ActionKind, Reservation
from wattline.state.claim import claim_of
from wattline.state.conditions import Conditions
from wattline.state.event import Forecasted, Outlooked
from wattline.state.exceptions import PolicyException, standing_of
from wattline.state.job import ENDED, HOLDING, Flight, Job, JobState, Run
from wattline.state.ledger import Ledger
from wattline.state.plant import Plant
from wattline.state.request import PRIORITY_RANK
from wattline.state.verdict import Verdict

_encode = msgspec.json.Encoder(order="deterministic").encode
_MODULUS = 1 << 128

Shape = tuple[object, ...]
Queue = list[tuple[float, float, str]]  # how urgent, since when, which job


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
        self.forecast: Forecasted | None = None  # the last
        self.outlooks: dict[str, Outlooked] = {}  # the last of each site
        self.exceptions: dict[str, PolicyException] = {}
        self.reservations: dict[str, Reservation] = {}  # by job that waits
        # Indexes: derived from the above, never dumped.
        self.standing: dict[str, tuple[PolicyException, ...]] = {}  # by project, those approved
        self.waiting: dict[Shape, Queue] = {}
        self.newest_since = 0.0  # since when the last that came waits
        self._lines: dict[tuple[Shape, str], Queue] | None = None  # the same by project; None: nobody asked
        self._places: dict[str, tuple[Queue, tuple[float, float, str]]] = {}  # in which one a job waits
        self.holding: dict[str, None] = {}
        self._gpus_of_class: dict[str, int] | None = None  # that are held; None: nobody asked
        self.paused: dict[str, None] = {}
        self.flying: dict[str, dict[str, None]] = {}  # job → its actions in flight
        self.dependants: dict[str, list[str]] = {}
        self.restless: dict[str, None] = {}  # holding jobs that the next decision looks at, whatever changed
        self.changed: dict[str, None] = {}  # holding jobs that have changed since the last decision
        # Shapes that were found to fit nowhere: tried again where a site has more room than it had.
        self.stuck: set[Shape] = set()
        self.decided_at = 0.0
        self.newcomers: dict[str, None] = {}  # jobs that came to wait since then, by being submitted
        self.has_news = True  # something happened since then
        # By site, how old the oldest reading was then that has been replaced since.
        self.doubted_seconds: dict[int, float] = {}
        self.version = 0
        self.derived: dict[object, object] = {}  # what policies worked out and keep up to date themselves
        self._sum = 0
        self._hashes: dict[tuple[str, str], int] = {}
        self._unhashed: dict[tuple[str, str], object] = {}
        self.readings: dict[tuple[str, str], tuple[float, float]] = {}  # subject, quantity → value, at

    def build_on(self, facility: Facility) -> None:
        """Start the ledger anew on a facility; what was read of another one says nothing of this one."""
        self.plant = Plant(facility)
        self.ledger = Ledger(self.plant)
        self.conditions = Conditions()

    def digest(self) -> str:
        """A hash of everything that is true; only what changed since the last time is hashed again."""
        hashes, total = self._hashes, self._sum
        for name, value in self._unhashed.items():
            total -= hashes.pop(name, 0)
            if value is not None:
                data = _encode((name, value))
                after = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "big")
                hashes[name] = after
                total += after
        self._unhashed.clear()
        self._sum = total % _MODULUS
        return f"{self._sum:032x}"

    def put(self, job: Job) -> None:
        """Replace a job and keep every index in step."""
        job_id, state = job.request.job, job.state
        before = self.jobs.get(job_id)
        if before is not None:
            self._unindex(before)
            if _awaits_return(before) and before.place is not None and not _awaits_return(job):
                # What was kept free for its return is free for others again.
                self.ledger.loosened.add(self.plant.site_numbers[before.place.site])
        self.jobs[job_id] = job
        if self._gpus_of_class is not None:
            self._count_gpus(before, job)
        if state is JobState.WAITING:
            queue, key = self.waiting.setdefault(job.remainder.shape, []), waiting_key(job)
            self._places[job_id] = (queue, key)
            insort(queue, key)
            self.newest_since = max(self.newest_since, job.since)
            if self._lines is not None:
                insort(self._lines.setdefault((job.remainder.shape, job.request.project), []), key)
        elif state in HOLDING:
            self.holding[job_id] = None
            if before is None or before.state is not state or _standing(before) != _standing(job):
                self.changed[job_id] = None
        elif state is JobState.PAUSED:
            self.paused[job_id] = None
        if self.reservations and state is not JobState.WAITING:
            self.put_reservation(job_id, None)
        self._unhashed["job", job_id] = job

    def note_verdicts(self, job_id: str, verdicts: tuple[Verdict, ...]) -> None:
        """What was last said of a job; no index depends on it."""
        job = self.jobs.get(job_id)
        if job is not None:
            self.jobs[job_id] = self._unhashed["job", job_id] = msgspec.structs.replace(
                job, verdicts=verdicts
            )

    def forget(self, run_id: str) -> None:
        """Drop a run and its jobs, once all of them have ended."""
        run = self.runs.get(run_id)
        if run is None or any(self.jobs[job_id].state not in ENDED for job_id in run.jobs):
            return
        for job_id in run.jobs:
            del self.jobs[job_id]
            self._unhashed["job", job_id] = None
        del self.runs[run_id]
        self._unhashed["run", run_id] = None

    def put_run(self, run: Run) -> None:
        self.runs[run.run] = run
        self._unhashed["run", run.run] = run

    def put_account(self, project: str, account: Account) -> None:
        self.accounts[project] = account
        self._unhashed["account", project] = account

    def put_flight(self, action_id: str, flight: Flight | None) -> None:
        if flight is not None:
            self.flights[action_id] = flight
            self.flying.setdefault(flight.action.job, {})[action_id] = None
        elif action_id in self.flights:
            job = self.flights.pop(action_id).action.job
            del self.flying[job][action_id]
            if not self.flying[job]:
                del self.flying[job]
            self.changed[job] = None
        self._unhashed["flight", action_id] = flight

    def put_release(self, name: str, release: dict[str, object]) -> None:
        self.releases[name] = release
        self._unhashed["release", name] = release

    def put_adopted(self, documents: dict[str, str]) -> None:
        self.adopted = documents
        self._unhashed["adopted", ""] = documents

    def put_reservation(self, job_id: str, reservation: Reservation | None) -> None:
        before = self.reservations.pop(job_id, None)
        if reservation is not None:
            self.reservations[job_id] = reservation
        elif before is None:
            return
        else:  # what was kept free for it is free for others again
            self.ledger.loosened.add(self.plant.site_numbers[before.place.site])
        self._unhashed["reservation", job_id] = reservation

    def put_exception(self, exception: PolicyException) -> None:
        self.exceptions[exception.id] = exception
        self._unhashed["exception", exception.id] = exception
        standing = standing_of(self.exceptions.values(), exception.project, self.at)
        if standing:
            self.standing[exception.project] = standing
        else:
            self.standing.pop(exception.project, None)

    def put_outlook(self, outlook: Outlooked) -> None:
        self.outlooks[outlook.site] = outlook
        self._unhashed["outlook", outlook.site] = outlook

    def put_forecast(self, forecast: Forecasted | None) -> None:
        self.forecast = forecast
        self._unhashed["forecast", ""] = forecast

    def hear(self, sites: Sequence[str], at: float) -> None:
        """All meters of these sites are there: what they do not tell has not changed."""
        ledger, numbers = self.ledger, self.plant.site_numbers
        if at <= ledger.heard_all_at:
            return
        if sites == self.plant.site_names:
            self._doubt_all()
            ledger.heard_all_at = at
            self._unhashed["heard", ""] = [at] * len(numbers)
            return
        for site in sites:
            number = numbers.get(site, -1)
            if number >= 0 and at > ledger.heard_at[number]:
                self.doubt(number, ledger.heard(number))
                ledger.heard_at[number] = at
        self._unhashed["heard", ""] = [ledger.heard(number) for number in range(len(numbers))]

    def note_reading(self, subject: str, quantity: str, value: float, at: float) -> None:
        self.readings[subject, quantity] = (value, at)
        self._unhashed[f"reading {subject}", quantity] = (value, at)

    def forget_reading(self, subject: str, quantity: str) -> None:
        del self.readings[subject, quantity]
        self._unhashed[f"reading {subject}", quantity] = None

    def doubt(self, site: int, read_at: float) -> None:
        """A reading of that time was replaced: too old then, it counted as worse than it may be now."""
        seconds = self.decided_at - read_at
        if seconds > self.doubted_seconds.get(site, 0.0):
            self.doubted_seconds[site] = seconds

    def _doubt_all(self) -> None:
        """All sites are heard again, after as long as each was not."""
        ledger = self.ledger
        if self.decided_at > ledger.heard_all_at:
            for site in range(len(ledger.heard_at)):
                self.doubt(site, ledger.heard(site))

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

    def lines(self) -> dict[tuple[Shape, str], Queue]:
        """Waiting jobs by shape and project: kept from the first time that somebody asks."""
        if self._lines is None:
            self._lines = {}
            for shape, queue in self.waiting.items():
                for key in queue:
                    project = self.jobs[key[2]].request.project
                    self._lines.setdefault((shape, project), []).append(key)
        return self._lines

    def gpus_of_class(self) -> dict[str, int]:
        """GPUs that jobs of each class hold: counted from the first time that somebody asks."""
        if self._gpus_of_class is None:
            self._gpus_of_class = {}
            for job_id in self.holding:
                self._count_gpus(None, self.jobs[job_id])
        return self._gpus_of_class

    def _count_gpus(self, before: Job | None, after: Job) -> None:
        held = before is not None and before.state in HOLDING
        holds = after.state in HOLDING
        if held is not holds and self._gpus_of_class is not None:
            name, gpus = after.request.scheduling_class, after.request.gpus
            self._gpus_of_class[name] = self._gpus_of_class.get(name, 0) + (gpus if holds else -gpus)

    def _unindex(self, job: Job) -> None:
        job_id, state = job.request.job, job.state
        if state is JobState.WAITING:
            queue, key = self._places.pop(job_id)
            del queue[bisect_left(queue, key)]
            shape = job.remainder.shape if not queue or self._lines is not None else ()
            if not queue:
                del self.waiting[shape]
                self.stuck.discard(shape)
            if self._lines is not None:
                line = self._lines[shape, job.request.project]
                del line[bisect_left(line, key)]
                if not line:
                    del self._lines[shape, job.request.project]
        elif state in HOLDING:
            del self.holding[job_id]
        elif state is JobState.PAUSED:
            del self.paused[job_id]


def _awaits_return(job: Job) -> bool:
    """Whether a job is paused only until it has been good for long enough where it was."""
    return job.state is JobState.PAUSED and job.clear_since is not None


def _standing(job: Job) -> tuple[object, ...]:
    """What of a job makes a decision look at it anew."""
    return (job.attempt, job.rung, job.power_fraction, job.asked, job.clear_since)


def waiting_key(job: Job) -> tuple[float, float, str]:
    """Who is first among jobs of one shape: the more urgent, then the one that came earlier."""
    return (-PRIORITY_RANK[job.request.priority], job.submitted_at, job.id)
