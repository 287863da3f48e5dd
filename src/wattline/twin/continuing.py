"""Continuing: a twin that begins in the middle, where a state says that things stand.

What runs there runs here, where it is. Heat begins at rest and follows within minutes; nodes that are off,
caps that were lowered and loops that lack flow stay so, and nodes that sleep sleep on. What jobs draw is not
known here: meters begin with what was last read there, and are off by as much at first, so that no room is
found that nobody had seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec

from wattline.spec.faults import Fault, Moment
from wattline.state import HOLDING, Action, ActionKind, Ending, Job, JobState, State
from wattline.twin.attempts import Progress
from wattline.twin.meters import Meters, Told
from wattline.twin.sleeping import SleepingWorld
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival
from wattline.twin.world import Gauges

_DRAWN = frozenset({"rack_watts", "supply_watts", "loop_heat_watts"})
_FADES_SECONDS = 3600.0  # assumed: about as long as a job stays


class ContinuedWorld(SleepingWorld):
    """The twin of a state. `arrival_of` says of each job what is left of it, running as it does now."""

    def __init__(
        self,
        state: State,
        arrival_of: Callable[[Job], Arrival],
        *,
        begins_at: float,
        arrivals: Iterable[Arrival] = (),
    ) -> None:
        plant = state.plant
        truth = Truth(plant, seed=0, exact=True, at=begins_at, faults=_standing_faults(state))
        super().__init__(
            plant, iter(arrivals), truth, _gauges(truth, state, begins_at), begins_at=begins_at, forget=False
        )
        self.take_up_rest(state)
        for job in state.jobs.values():
            if job.state in HOLDING or job.will_start:
                self._take_up(state, job, arrival_of(job))

    def _take_up(self, state: State, job: Job, arrival: Arrival) -> None:
        self.tally.submitted += 1
        self._count_waiting(1)
        progress = self._progress[job.id] = Progress(arrival, attempts=job.attempt)
        if job.state not in HOLDING:
            return
        # What starts again comes back from its checkpoint; what runs has that behind it.
        progress.attempts = job.attempt - 1 if job.state is JobState.STARTING else 0
        self._begin(
            Action(
                id="",
                kind=ActionKind.START,
                job=job.id,
                attempt=job.attempt,
                place=job.place,
                fraction=job.power_fraction,
            )
        )
        attempt = self._attempts.get(job.id)
        if attempt is None:  # a node of it is off
            return
        attempt.batch_fraction = job.in_flight_fraction
        self._change(attempt)
        progress.arrival = msgspec.structs.replace(arrival, work_seconds=arrival.work_seconds * attempt.rate)
        self._plan_end(attempt)
        if job.state is JobState.PAUSING:
            self._save(attempt, "pause")
        elif job.state is JobState.STOPPING:
            asked = [state.flights[action_id].action for action_id in state.flying.get(job.id, ())]
            goes_on = any(action.lost for action in asked)
            self._lose(attempt, job.say, Ending.LOST if goes_on else Ending.STOPPED)


def _standing_faults(state: State) -> list[Fault]:
    """What meters say is wrong with loops now, as if it stayed so."""
    faults = []
    for loop in state.plant.loop_of_resource.values():
        flow = state.readings.get((loop.name, "flow_fraction"))
        supply = state.readings.get((loop.name, "supply_celsius"))
        lacks_flow = flow is not None and flow[0] < 1.0
        is_warmer = supply is not None and supply[0] != loop.supply_celsius
        if lacks_flow or is_warmer:
            fault = Fault.model_construct(  # measured, not written: there is no text to check
                name="as-read",
                at=Moment.model_construct(after=0.0),
                loop=loop.name,
                flow=max(0.0, flow[0]) if flow is not None else None,
                supply_temperature=supply[0] if supply is not None else None,
            )
            faults.append(fault)
    return faults


def _gauges(truth: Truth, state: State, begins_at: float) -> Gauges:
    plant = state.plant
    meters = _AsRead(Meters(truth, plant, 0, exact=True), state, begins_at)
    are_all_metered = all(site.telemetry == "emulated" for site in plant.facility.sites)
    return meters if are_all_metered else _Partial(meters, state)


class _AsRead:
    """Meters that go on from what was last read; how far they are off that fades, as who was there leaves."""

    def __init__(self, meters: Meters, state: State, begins_at: float) -> None:
        self._meters, self._begins_at = meters, begins_at
        self.next_look_at = meters.next_look_at
        self._read = {
            key: value
            for key, (value, *_) in state.readings.items()
            if key[1] in _DRAWN and value is not None
        }
        self._off_watts: dict[tuple[str, str], float] = {}

    def read(self, at: float) -> list[Told]:
        fades = math.exp((self._begins_at - at) / _FADES_SECONDS)
        return [self._shifted(told, fades) for told in self._meters.read(at)]

    def _shifted(self, told: Told, fades: float) -> Told:
        subject, quantity, watts = told
        read_watts = self._read.pop((subject, quantity), None)
        if read_watts is not None and watts is not None:
            self._off_watts[subject, quantity] = (read_watts - watts) / fades
        off_watts = self._off_watts.get((subject, quantity))
        if off_watts is None or watts is None:
            return told
        return subject, quantity, max(0.0, watts + fades * off_watts)


class _Partial:
    """Only the meters that there are: what is decided here must not rest on more than what will be."""

    def __init__(self, meters: Gauges, state: State) -> None:
        self._meters = meters
        self.next_look_at = meters.next_look_at
        sites = state.plant.facility.sites
        self._gpus_read = {site.name for site in sites if site.reads_gpus}
        self._resources = {
            resource.name
            for resource, is_metered in zip(state.plant.resources, state.ledger.metered, strict=True)
            if is_metered
        }

    def read(self, at: float) -> list[Told]:
        return [told for told in self._meters.read(at) if self._is_read(*told)]

    def _is_read(self, subject: str, quantity: str, _value: float | None) -> bool:
        if quantity.startswith("gpu_"):
            return subject.partition("/")[0] in self._gpus_read
        return subject in self._resources
