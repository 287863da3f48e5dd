"""What must hold whatever fails: no job runs twice at once, no event is lost or counted twice, lost work is
bounded, a site stays inside its envelope, every job ends with the result of its last attempt."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from bench.site_facility import GPU_WATTS
from bench.site_machine import SAVE_EVERY_STEPS, Attempt
from bench.site_simulation import CHAOS_SECONDS, TIMING, Simulation, SiteSide
from wattline.control.sites.messages import TOLD
from wattline.state import Event, JobState

LONGEST_SECONDS = 900.0
SETTLES_SECONDS = 40.0  # what the ladder is given to get below a lower envelope
COPY_SECONDS = 6.0
LOST_BOUND_STEPS = SAVE_EVERY_STEPS + COPY_SECONDS + TIMING.lease_seconds


class BrokenError(Exception):
    """A promise was not kept."""


class Promises:
    """Watches one simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self._of = simulation
        self._ended: set[tuple[str, int]] = set()
        self.most_lost_steps = 0

    def check(self) -> None:
        """At every second."""
        of = self._of
        running: dict[str, list[str]] = {}
        for side in of.sides.values():
            for attempt in side.machine.attempts.values():
                if attempt.alive:
                    running.setdefault(attempt.job, []).append(f"{side.site}/{attempt.number}")
                elif attempt.ending is not None and attempt.held_key not in self._ended:
                    self._ended.add(attempt.held_key)
                    of.seen[f"attempts {attempt.ending}"] += 1
        for job, where in running.items():
            if len(where) > 1:
                of.seen["seconds run twice"] += 1
                if not of.wild:
                    raise BrokenError(f"no job runs twice at once: {job} at {', '.join(where)}")
        for site, (watts, since) in of.envelopes.items():
            side = of.sides[site]
            settled = side.agent is not None and of.at - max(since, side.up_since) > SETTLES_SECONDS
            draw = side.machine.draw_watts(GPU_WATTS)
            if settled and draw > watts:
                raise BrokenError(f"{site} stays inside its envelope: draws {draw:.0f} W of {watts:.0f} W")

    def is_done(self) -> bool:
        """All jobs have ended, and all that agents wrote down is heard."""
        of = self._of
        if of.at <= CHAOS_SECONDS or of.fleet is None or of.submissions:
            return False
        ended = all(job.state in (JobState.SUCCEEDED, JobState.FAILED) for job in of.state.jobs.values())
        sides = [side for side in of.sides.values() if not side.machine.destroyed]
        return ended and all(_is_heard(of, side) for side in sides)

    def conclude(self) -> None:
        """At the end."""
        of = self._of
        for job in of.state.jobs.values():
            if job.state is not JobState.SUCCEEDED:
                raise BrokenError(f"every job ends well: {job.id} {job.state}: {job.say}")
            if job.outputs != f"{job.id}/{job.attempt}":
                raise BrokenError(f"its last attempt's result counts: {job.id}/{job.attempt}: {job.outputs}")
        for side in of.sides.values():
            if side.site not in of.given_up:
                self._compare_told(side)
        self._measure_lost()

    def _compare_told(self, side: SiteSide) -> None:
        """What the hub wrote down is what the agent did, in order, each once; only moot ones miss."""
        of = self._of
        records = side.journal.records[: of.state.sites[side.site].heard]
        did = [event for record in records for event in record.events if _is_fact(event)]
        heard = [_timeless(event) for event in of.told[side.site] if _is_fact(event)]
        position, missing = 0, list[Event]()
        for event in did:
            if position < len(heard) and heard[position] == _timeless(event):
                position += 1
            else:
                missing.append(event)
        if position < len(heard):
            raise BrokenError(f"no event is counted twice: {side.site} never told {heard[position]}")
        for event in missing:
            job = of.state.jobs.get(getattr(event, "job", ""))
            is_here = job is not None and job.place is not None and job.place.site == side.site
            if job is not None and is_here and getattr(event, "attempt", None) == job.attempt:
                raise BrokenError(f"no event is lost: {side.site} told {event}")

    def _measure_lost(self) -> None:
        """Steps that were done and had to be done again, for each time a job began again."""
        of = self._of
        attempts: dict[str, list[tuple[int, Attempt, SiteSide]]] = {}
        for side in of.sides.values():
            for attempt in side.machine.attempts.values():
                if attempt.started:
                    attempts.setdefault(attempt.job, []).append((attempt.number, attempt, side))
        for job, found in attempts.items():
            found.sort(key=lambda one: one[0])
            for (_, before, side), (_, after, _) in pairwise(found):
                if not before.saves or side.site in of.given_up or of.wild:
                    continue
                if of.given_up and not before.copies_to:  # its only checkpoint may have been there
                    continue
                lost = before.step - after.began_at_step
                self.most_lost_steps = max(self.most_lost_steps, lost)
                if lost > LOST_BOUND_STEPS:
                    raise BrokenError(f"lost work is bounded: {job} lost {lost} steps")


def run(simulation: Simulation) -> Promises:
    """Until all is done, or a promise was broken."""
    promises = Promises(simulation)
    while simulation.at < LONGEST_SECONDS:
        simulation.tick()
        promises.check()
        if promises.is_done():
            promises.conclude()
            return promises
        simulation.at += 1.0
    left = [(job.id, str(job.state), job.attempt) for job in simulation.state.jobs.values()]
    sites = [(one.site, str(one.standing), one.heard) for one in simulation.state.sites.values()]
    raise BrokenError(f"every job ends: {left} {sites}")


def _is_heard(of: Simulation, side: SiteSide) -> bool:
    record = of.state.sites.get(side.site)
    told = [seq for seq, one in side.journal.after(0) if any(isinstance(event, TOLD) for event in one.events)]
    return record is not None and record.heard >= max(told, default=0)


def _is_fact(event: Event) -> bool:
    return isinstance(event, TOLD) and hasattr(event, "attempt")


def _timeless(event: Event) -> Event:
    return msgspec.structs.replace(event, at=0.0)
