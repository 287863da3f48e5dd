"""The whole state as bytes and back: where a reader may start instead of at the first record."""

from __future__ import annotations

import math

import msgspec

from wattline.errors import UnavailableError
from wattline.facility import Facility
from wattline.state.account import Account
from wattline.state.action import Reservation
from wattline.state.event import Forecasted, Outlooked
from wattline.state.exceptions import PolicyException
from wattline.state.job import Flight, Job, JobState, Run
from wattline.state.market import Reclaim
from wattline.state.measuring import fold_reading, put_standing
from wattline.state.resting import Came, Rest, Starts
from wattline.state.standing import SiteRecord
from wattline.state.state import State

DUMP_VERSION = 4


class SnapshotUnusableError(UnavailableError):
    """A snapshot cannot stand in for the records before it; folding those gives the same state."""


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is not derived."""

    version: int
    at: float
    digest: str
    jobs: list[Job]
    runs: list[Run]
    accounts: dict[str, Account]
    flights: list[Flight]
    releases: dict[str, dict[str, object]]
    adopted: dict[str, str]
    readings: list[tuple[str, str, float, float]]
    stuck: list[str]  # of each shape that was found to fit nowhere, one job
    decided_at: float
    doubted_seconds: list[tuple[int, float | None]]  # None: for ever, which JSON has no number for
    heard: list[tuple[str, float]]
    mute: tuple[list[int], list[int]]  # resources and nodes whose meters said that they cannot read
    loosened: list[int]
    forecast: Forecasted | None = None
    outlooks: list[Outlooked] = []
    exceptions: list[PolicyException] = []
    reservations: list[Reservation] = []
    reclaims: dict[str, Reclaim] = {}
    has_news: bool = True
    rests: list[Rest] = []
    idle: list[tuple[str, float]] | None = None  # nodes that can sleep and nobody uses, the longest first
    came: list[tuple[str, str, Came]] = []  # by pool
    starts: Starts = Starts()
    newcomers: list[str] = []
    sites: list[SiteRecord] = []  # with an agent


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Dump).decode


def dump_state(state: State) -> bytes:
    stuck = sorted([queue[0][2] for shape, queue in state.waiting.items() if shape in state.stuck])
    return _encode(
        Dump(
            version=DUMP_VERSION,
            at=state.at,
            digest=state.digest(),
            jobs=list(state.jobs.values()),
            runs=list(state.runs.values()),
            accounts=state.accounts,
            flights=list(state.flights.values()),
            releases=state.releases,
            adopted=state.adopted,
            readings=[(*key, *value) for key, value in state.readings.items()],
            stuck=stuck,
            decided_at=state.decided_at,
            doubted_seconds=sorted(state.doubted_seconds.items()),
            heard=[
                (site, at)
                for number, site in enumerate(state.plant.sites)
                if math.isfinite(at := state.ledger.heard(number))
            ],
            mute=(sorted(state.ledger.mute), sorted(state.conditions.mute)),
            loosened=sorted(state.ledger.loosened),
            forecast=state.forecast,
            outlooks=list(state.outlooks.values()),
            exceptions=list(state.exceptions.values()),
            reservations=list(state.reservations.values()),
            reclaims=state.reclaims,
            has_news=state.has_news,
            rests=list(state.resting.rests.values()),
            idle=[
                (state.plant.spots[node].node.name, since)
                for pool in state.resting.idle
                for node, since in pool.items()
            ],
            came=[(*state.plant.pools[pool], came) for pool, came in sorted(state.resting.came.items())],
            starts=state.resting.starts,
            newcomers=list(state.newcomers),
            sites=list(state.sites.values()),
        )
    )


def load_state(facility: Facility, data: bytes) -> State:
    """Rebuild every index; the digest proves that nothing is missing."""
    try:
        dump = _decode(data)
    except msgspec.MsgspecError as error:
        raise SnapshotUnusableError(f"state snapshot: cannot be read: {error}") from error
    if dump.version != DUMP_VERSION:
        raise SnapshotUnusableError(
            f"state snapshot: is of version {dump.version}, this code reads {DUMP_VERSION}",
            hint="the journal itself is not affected; folding it from the start needs no snapshot",
        )
    state = State(facility)
    state.at = dump.at
    for node, reclaim in dump.reclaims.items():
        state.put_reclaim(node, reclaim)
        number = state.plant.node_number.get(node)
        if number is not None and reclaim.leaves_at is not None:
            state.ledger.set_up(number, is_up=False)
    for record in dump.sites:
        put_standing(state, record)
    for subject, quantity, value, at in dump.readings:
        state.note_reading(subject, quantity, value, at)
    for subject, quantity, value, at in sorted(dump.readings, key=lambda reading: reading[3]):
        fold_reading(state, subject, quantity, value, at)
    for site, at in dump.heard:
        state.hear([site], at)
    for job in dump.jobs:
        state.put(job)
        if job.state is JobState.BLOCKED:
            for earlier in job.request.after:
                state.dependants.setdefault(earlier, []).append(job.id)
    for run in dump.runs:
        state.put_run(run)
    for project, account in dump.accounts.items():
        state.put_account(project, account)
    for flight in dump.flights:
        state.put_flight(flight.action.id, flight)
    for job_id in state.holding:
        state.hold(state.jobs[job_id])
    for name, release in dump.releases.items():
        state.put_release(name, release)
    if dump.adopted:
        state.put_adopted(dump.adopted)
    if dump.forecast is not None:
        state.put_forecast(dump.forecast)
    for outlook in dump.outlooks:
        state.put_outlook(outlook)
    for exception in dump.exceptions:
        state.put_exception(exception)
    for reservation in dump.reservations:
        state.put_reservation(reservation.job, reservation)
    _load_resting(state, dump)
    state.stuck.update([state.jobs[job_id].remainder.shape for job_id in dump.stuck])
    state.has_news, state.newcomers = dump.has_news, dict.fromkeys(dump.newcomers)
    state.decided_at = dump.decided_at
    state.doubted_seconds = {
        number: math.inf if seconds is None else seconds for number, seconds in dump.doubted_seconds
    }
    for resource in dump.mute[0]:
        state.ledger.set_mute(resource, is_mute=True)
    for silent in dump.mute[1]:
        state.conditions.fall_silent(silent, state.plant.spots[silent].loop_resource)
    state.ledger.loosened = set(dump.loosened)
    if state.digest() != dump.digest:
        raise SnapshotUnusableError(
            f"state snapshot: its digest is {dump.digest}, what it holds has {state.digest()}",
            hint="the snapshot was altered or made by another version; the journal itself is not affected",
        )
    return state


def _load_resting(state: State, dump: Dump) -> None:
    for rest in dump.rests:
        state.put_rest(rest)
    if dump.idle is not None:
        for pool in state.resting.idle:
            pool.clear()
        for name, since in dump.idle:
            state.put_idle(state.plant.node_number[name], since)
    for site, device, came in dump.came:
        state.put_came(state.plant.pool_numbers[site, device], came)
    if dump.starts != Starts():
        state.put_starts(dump.starts)
