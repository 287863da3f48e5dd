"""The tables behind the state, and the indexes that keep a decision from touching all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from wattline.facility import Facility
from wattline.state.account import Account, week_of
from wattline.state.action import ActionKind, Place, Reservation
from wattline.state.claim import claim_of
from wattline.state.conditions import Conditions
from wattline.state.event import Forecasted, Outlooked
from wattline.state.exceptions import PolicyException, standing_of
from wattline.state.heads import Heads, Key, Queue, Shape
from wattline.state.job import ENDED, HOLDING, Flight, Job, JobState, Run
from wattline.state.ledger import Ledger
from wattline.state.market import Reclaim
from wattline.state.plant import Plant
from wattline.state.request import PRIORITY_RANK
from wattline.state.resting import (
    Came,
    NodeMode,
    Rest,
    Resting,
    Starts,
    saved_amounts,
    waited_seconds,
)
from wattline.state.standing import SiteRecord
from wattline.state.verdict import Verdict

_encode = msgspec.json.Encoder(order="deterministic").encode
_MODULUS = 1 << 128
JOB_QUANTITIES = ("swing_watts", "step_seconds")  # what may be measured of a job itself

_NO_ACCOUNT = Account()
_OF_FACILITY = ("rest", "idle", "came", "starts")


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
        self.reclaims: dict[str, Reclaim] = {}  # the last word on each machine that was ever taken back
        self.sites: dict[str, SiteRecord] = {}  # those with an agent of their own
        # Indexes: derived from the above, never dumped.
        self.standing: dict[str, tuple[PolicyException, ...]] = {}  # by project, those approved
        self.waiting: dict[Shape, Queue] = {}
        self.newest_since = 0.0  # since when the last that came waits
        self._heads: dict[bool, Heads] = {}  # the first of each, by project or not; from when somebody asks
        self._places: dict[str, tuple[Shape, Queue, Key]] = {}  # in which queue a job waits
        self.retrying: dict[str, None] = {}  # waiting jobs that have run before
        self.holding: dict[str, None] = {}
        self.elastic: dict[str, None] = {}  # those of them that may run on fewer or more GPUs
        self._gpus_of_class: dict[str, int] | None = None  # that are held; None: nobody asked
        self.paused: dict[str, None] = {}
        self.ending: dict[str, None] = {}  # runs of which a job has ended and whose last word was not said
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
        self._unhashed_readings: set[tuple[str, str]] = set()
        self.readings: dict[tuple[str, str], tuple[float, float]] = {}  # subject, quantity → value, at

    def build_on(self, facility: Facility) -> None:
        """Start the ledger anew on a facility; what was read of another one says nothing of this one."""
        self.plant = Plant(facility)
        self.ledger = Ledger(self.plant)
        self.conditions = Conditions()
        self.resting = Resting(self.plant)

    def leave_facility(self) -> list[Rest]:
        """Forget who rests, idles and came on a facility that is left; which nodes rest there."""
        for name in [name for name in (*self._hashes, *self._unhashed) if name[0] in _OF_FACILITY]:
            self._unhashed[name] = None
        for action_id in [action_id for action_id, flight in self.flights.items() if flight.action.node]:
            self.put_flight(action_id, None)
        return list(self.resting.rests.values())

    def digest(self) -> str:
        """A hash of everything that is true; only what changed since the last time is hashed again."""
        hashes, total = self._hashes, self._sum
        for subject, quantity in self._unhashed_readings:
            self._unhashed[f"reading {subject}", quantity] = self.readings.get((subject, quantity))
        self._unhashed_readings.clear()
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
            if (
                before.clear_since is not None
                and before.place is not None
                and _awaits_return(before)
                and not _awaits_return(job)
            ):
                # What was kept free for its return is free for others again.
                self.ledger.loosened.add(self.plant.site_numbers[before.place.site])
        self.jobs[job_id] = job
        if self._gpus_of_class is not None:
            self._count_gpus(before, job)
        if state is JobState.WAITING:
            shape, key = job.remainder.shape, waiting_key(job)
            queue = self.waiting.get(shape)
            if queue is None:
                queue = self.waiting[shape] = Queue()
            self._places[job_id] = (shape, queue, key)
            queue.enter(key)
            self.newest_since = max(self.newest_since, job.since)
            if job.past:
                self.retrying[job_id] = None
            for heads in self._heads.values():
                heads.enter(job, key, shape, queue, self.jobs)
        elif state in HOLDING:
            self.holding[job_id] = None
            if job.request.elastic is not None:
                self.elastic[job_id] = None
            if before is None or before.state is not state or _has_moved(before, job):
                self.changed[job_id] = None
        elif state is JobState.PAUSED:
            self.paused[job_id] = None
        elif state in ENDED:
            self.ending[job.request.run] = None
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
        run, jobs, unhashed = self.runs.get(run_id), self.jobs, self._unhashed
        if run is None:
            return
        for job_id in run.jobs:
            if jobs[job_id].state not in ENDED:
                return
        for job_id in run.jobs:
            del jobs[job_id]
            unhashed["job", job_id] = None
            for quantity in JOB_QUANTITIES:
                if (job_id, quantity) in self.readings:
                    self.forget_reading(job_id, quantity)
        del self.runs[run_id]
        self.ending.pop(run_id, None)
        unhashed["run", run_id] = None

    def put_run(self, run: Run) -> None:
        self.runs[run.run] = run
        if run.ended_at is not None:
            self.ending.pop(run.run, None)
        self._unhashed["run", run.run] = run

    def put_account(self, project: str, account: Account) -> None:
        self.accounts[project] = account
        self._unhashed["account", project] = account

    def put_flight(self, action_id: str, flight: Flight | None) -> None:
        if flight is not None:
            self.flights[action_id] = flight
            if flight.action.job:
                self.flying.setdefault(flight.action.job, {})[action_id] = None
        elif action_id in self.flights:
            job = self.flights.pop(action_id).action.job
            if job:
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

    def put_rest(self, rest: Rest) -> None:
        """Put a node into another mode: one that is awake has GPUs to give, one that sleeps leaves watts."""
        node = self.plant.node_number[rest.node]
        before = self.resting.rests.get(node)
        was_asleep = before is not None and before.mode is NodeMode.ASLEEP
        self.resting.put(node, self.plant.spots[node].pool, rest)
        self.ledger.set_awake(node, is_awake=rest.mode is NodeMode.AWAKE)
        if was_asleep is not (rest.mode is NodeMode.ASLEEP):
            self.ledger.save(saved_amounts(self.plant, node), 1 if not was_asleep else -1)
        self._note_idle(node)
        self._unhashed["rest", rest.node] = rest

    def note_use(self, place: Place) -> None:
        """Keep note of which nodes of a place nobody uses; asked where nodes can sleep."""
        for name, _ in place.nodes:
            self._note_idle(self.plant.node_number[name])

    def _note_idle(self, node: int) -> None:
        resting = self.resting
        if not resting.can_sleep[node]:
            return
        idle = resting.idle[self.plant.spots[node].pool]
        if self.ledger.jobs_at.get(node) or not resting.is_awake(node):
            if idle.pop(node, None) is not None:
                self.put_idle(node, None)
        elif node not in idle:
            self.put_idle(node, self.at)

    def put_idle(self, node: int, since: float | None) -> None:
        spot = self.plant.spots[node]
        if since is not None:
            self.resting.idle[spot.pool][node] = since
        self._unhashed["idle", spot.node.name] = since or None

    def note_came(self, job: Job, place: Place) -> None:
        """A job that waited starts: how many will come is taken from how many came."""
        spots, number, resting = self.plant.spots, self.plant.node_number, self.resting
        first = spots[number[place.nodes[0][0]]]
        if first.site.sleep is None or not job.request.gpus:
            return
        nodes = sum([gpus / spots[number[name]].node.gpus for name, gpus in place.nodes])
        came = resting.came.get(first.pool)
        self.put_came(first.pool, (Came() if came is None else came).plus(nodes, self.at))
        self.put_starts(resting.starts.plus(self._waited_for_waking(job, place) if resting.rests else 0.0))

    def _waited_for_waking(self, job: Job, place: Place) -> float:
        awaited = {name for name, _ in place.nodes}
        awaited.update([verdict.subject for verdict in job.verdicts if verdict.rule == "scaling.waking"])
        number, rests = self.plant.node_number, self.resting.rests
        found = [rests.get(number[name]) for name in awaited if name in number]
        seconds = [waited_seconds(rest, job.since, self.at) for rest in found if rest is not None]
        return max(seconds, default=0.0)

    def put_starts(self, starts: Starts) -> None:
        self.resting.starts = starts
        self._unhashed["starts", ""] = starts

    def put_came(self, pool: int, came: Came) -> None:
        self.resting.came[pool] = came
        self._unhashed["came", self.plant.pool_names[pool]] = came

    def put_reclaim(self, node: str, reclaim: Reclaim | None) -> None:
        if reclaim is None:
            del self.reclaims[node]
        else:
            self.reclaims[node] = reclaim
        self._unhashed["reclaim", node] = reclaim

    def put_site(self, record: SiteRecord) -> None:
        self.sites[record.site] = record
        self._unhashed["site", record.site] = record

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
        key = (subject, quantity)
        self.readings[key] = (value, at)
        self._unhashed_readings.add(key)

    def forget_reading(self, subject: str, quantity: str) -> None:
        del self.readings[subject, quantity]
        self._unhashed_readings.add((subject, quantity))

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
        job_id, power_fraction = job.request.job, job.power_fraction
        for action_id in self.flying.get(job_id, ()):
            action = self.flights[action_id].action
            if action.kind is ActionKind.CAP_POWER and action.fraction > power_fraction:
                power_fraction = action.fraction
        self.ledger.hold(job_id, claim_of(job.request, job.place, self.plant, power_fraction))

    def account(self, project: str) -> Account:
        return self.accounts.get(project, _NO_ACCOUNT).at_week(week_of(self.at))

    def heads(self, *, by_project: bool) -> Heads:
        """Who is first in each line: kept from the first time that somebody asks."""
        heads = self._heads.get(by_project)
        if heads is None:
            heads = self._heads[by_project] = Heads(by_project=by_project)
            for shape, queue in self.waiting.items():
                for key in queue:
                    heads.enter(self.jobs[key[2]], key, shape, queue, self.jobs)
        return heads

    @property
    def waiting_count(self) -> int:
        return len(self._places)

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
            # An elastic job asks for another number again once it has left.
            request = after.request if holds or before is None else before.request
            name, gpus = request.scheduling_class, request.gpus
            self._gpus_of_class[name] = self._gpus_of_class.get(name, 0) + (gpus if holds else -gpus)

    def _unindex(self, job: Job) -> None:
        job_id, state = job.request.job, job.state
        if state is JobState.WAITING:
            shape, queue, key = self._places.pop(job_id)
            queue.leave(key)
            if not queue:
                del self.waiting[shape]
                self.stuck.discard(shape)
            if job.past:
                del self.retrying[job_id]
            for heads in self._heads.values():
                heads.leave(job, key, shape, self.jobs)
        elif state in HOLDING:
            del self.holding[job_id]
            if self.elastic:
                self.elastic.pop(job_id, None)
        elif state is JobState.PAUSED:
            del self.paused[job_id]


def _awaits_return(job: Job) -> bool:
    """Whether a job is paused only until it has been good for long enough where it was."""
    return job.state is JobState.PAUSED and job.clear_since is not None


def _has_moved(before: Job, after: Job) -> bool:
    """Whether something of a job makes a decision look at it anew."""
    return (
        before.attempt != after.attempt
        or before.rung != after.rung
        or before.power_fraction != after.power_fraction
        or before.asked != after.asked
        or before.clear_since != after.clear_since
    )


def waiting_key(job: Job) -> Key:
    """Who is first among jobs of one shape: the more urgent, then the one that came earlier."""
    request = job.request
    return (-PRIORITY_RANK[request.priority], job.submitted_at, request.job)
