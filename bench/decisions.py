"""How long does one decision take, and does it grow with what changed rather than with what exists?

    python -m bench

For facilities of growing size, half full, with a queue of jobs that do not fit: the CPU time of one turn of
the loop after one event (a reading, a submission, an end of a job), in milliseconds, median of several.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

from wattline.control import step
from wattline.facility import Facility
from wattline.spec import read_facility, read_policy
from wattline.state import (
    Action,
    AttemptEnded,
    AttemptStarted,
    Decision,
    Ending,
    Event,
    JobRequest,
    RunSubmitted,
    State,
    Ticked,
)

SIZES = (1, 2, 4, 8)
_REPEATS = 15


class Bench:
    """A world that starts whatever it is asked to, and a journal that forgets."""

    def __init__(self, facility: Facility) -> None:
        self.at = 0.0
        self.queue: list[Event] = []
        self.state = State(facility)
        self.policy = read_policy("default")

    def now(self) -> float:
        return self.at

    def events(self) -> list[Event]:
        queue, self.queue = self.queue, []
        return queue

    def apply(self, action: Action) -> None:
        if action.place is not None:
            self.queue.append(AttemptStarted(at=self.at, job=action.job, attempt=action.attempt))

    def sleep_until(self, at: float | None) -> None:
        self.at = max(self.at, at or self.at)

    def append(self, events: object, digest: object, decision: Decision) -> None: ...

    def turn(self, *events: Event) -> float:
        """CPU milliseconds of one turn."""
        self.at += 1.0
        self.queue += events
        began = time.process_time()
        step(self, self.state, self.policy, self)
        return 1000 * (time.process_time() - began)

    def submit(self, number: int, gpus: int) -> RunSubmitted:
        request = JobRequest(
            job=f"r{number}/train", run=f"r{number}", gpus=gpus, max_duration_seconds=36000.0
        )
        return RunSubmitted(at=self.at, run=f"r{number}", pipeline="bench", jobs=(request,))


def enlarge(facility: Facility, times: int) -> Facility:
    """The same sites, several times over."""
    sites = []
    for number in range(times):
        for site in facility.sites:
            text = f"{site.name}-{number}"

            def rename(name: str, text: str = text, old: str = site.name) -> str:
                return name.replace(f"{old}/", f"{text}/", 1)

            sites.append(
                replace(
                    site,
                    name=text,
                    telemetry="none",
                    storage=replace(site.storage, name=rename(site.storage.name)),
                    supplies=tuple(
                        replace(
                            supply, name=rename(supply.name), parent=supply.parent and rename(supply.parent)
                        )
                        for supply in site.supplies
                    ),
                    loops=tuple(replace(loop, name=rename(loop.name)) for loop in site.loops),
                    racks=tuple(
                        replace(
                            rack,
                            name=rename(rack.name),
                            loop=rename(rack.loop),
                            supplies=tuple(map(rename, rack.supplies)),
                            nodes=tuple(replace(node, name=rename(node.name)) for node in rack.nodes),
                        )
                        for rack in site.racks
                    ),
                )
            )
    return replace(facility, sites=tuple(sites), links=())


def measure(facility: Facility) -> tuple[int, int, float, float, float]:
    """GPUs, running jobs, and milliseconds for a tick, a submission that starts, and an end."""
    bench = Bench(facility)
    running = facility.gpus // 16
    bench.turn(*(bench.submit(number, 8) for number in range(running)))
    bench.turn()
    ticks = [bench.turn(Ticked(at=bench.at)) for _ in range(_REPEATS)]
    starts = [bench.turn(bench.submit(10**6 + number, 1)) for number in range(_REPEATS)]
    holders = list(bench.state.holding)[:_REPEATS]
    ends = [
        bench.turn(
            AttemptEnded(at=bench.at, job=job, attempt=bench.state.jobs[job].attempt, ending=Ending.SUCCEEDED)
        )
        for job in holders
    ]
    medians = (statistics.median(times) for times in (ticks, starts, ends))
    return (facility.gpus, len(bench.state.holding), *medians)  # type: ignore[return-value]


def main() -> None:
    base = read_facility("three-sites")
    print(f"{'GPUs':>8} {'running':>8} {'tick ms':>9} {'submit ms':>10} {'end ms':>9}")
    for times in SIZES:
        gpus, running, tick, start, end = measure(enlarge(base, times))
        print(f"{gpus:>8} {running:>8} {tick:>9.2f} {start:>10.2f} {end:>9.2f}", flush=True)
