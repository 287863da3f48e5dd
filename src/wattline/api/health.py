"""Is this server there, is it of use, and how does what it conducts stand in numbers?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypedDict

from starlette.responses import PlainTextResponse, Response

from wattline.api.call import Call, Endpoint, answer, wait_for
from wattline.api.door import LOOKS
from wattline.api.metrics import Calls, Metric, write_metrics
from wattline.errors import WattlineError
from wattline.plane.finding import View
from wattline.plane.session import Session
from wattline.state import JobState, ResourceKind, Standing

_IN_WATTS = (ResourceKind.SUPPLY, ResourceKind.RACK, ResourceKind.LOOP)
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(TypedDict):
    status: str


class Readiness(TypedDict):
    """`conducts`, or `stands by`: also then it answers questions and takes submissions."""

    status: str
    record: int


async def _health(_call: Call) -> Response:
    return answer({"status": "alive"})


async def _ready(call: Call) -> Response:
    """Whether the journal can be read; a server that stands by is ready as well."""

    def question(session: Session, _view: View | None) -> int:
        return session.store.journal.last_seq()

    record = await wait_for(call.served.reader.look(question))
    status = "conducts" if call.served.is_conducting() else "stands by"
    return answer({"status": status, "record": record})


def metrics_endpoint(calls: Calls) -> Endpoint:
    async def handle(call: Call) -> Response:
        metrics = calls.metrics()
        metrics.append(
            Metric("wattline_conducting", "gauge", "1 while this server conducts.").put(
                float(call.served.is_conducting())
            )
        )
        try:
            metrics += await wait_for(call.served.reader.look(partial(_of_state, call.caller.may_see)))
            up = 1.0
        except WattlineError:
            up = 0.0
        metrics.append(Metric("wattline_journal_up", "gauge", "1 while the journal can be read.").put(up))
        return PlainTextResponse(write_metrics(metrics), media_type=METRICS_TYPE)

    return Endpoint(
        method="GET",
        path="/metrics",
        name="metrics",
        say="Numbers for Prometheus.",
        handle=handle,
        media="text/plain",
        allowed=LOOKS,
    )


def _of_state(may_see: Callable[[str], bool], session: Session, view: View | None) -> list[Metric]:
    """What the journal says of jobs that whoever asks may see, of sites and the queue."""
    found = [
        Metric("wattline_journal_records", "gauge", "The number of the newest record.").put(
            float(session.store.journal.last_seq())
        ),
    ]
    if view is None:
        return found
    state, plant = view.state, view.state.plant
    jobs = Metric("wattline_jobs", "gauge", "Jobs by state and project.")
    counted = Counter((job.request.project, job.state) for job in state.jobs.values())
    for (project, name), count in sorted(counted.items()):
        if may_see(project):
            jobs.put(float(count), project=project, state=str(name))
    waiting = [job.submitted_at for job in state.jobs.values() if job.state is JobState.WAITING]
    oldest = view.at - min(waiting) if waiting else 0.0
    gpus = Metric("wattline_gpus", "gauge", "GPUs of a site.")
    used = Metric("wattline_gpus_in_use", "gauge", "GPUs of a site that jobs hold.")
    for site in plant.facility.sites:
        numbers = [number for number, spot in enumerate(plant.spots) if spot.site.name == site.name]
        total = sum(plant.spots[number].node.gpus for number in numbers)
        free = sum(state.ledger.gpus_free[number] for number in numbers)
        gpus.put(float(total), site=site.name)
        used.put(float(total - free), site=site.name)
    others = Metric("wattline_gpus_of_others", "gauge", "GPUs held by what Wattline did not start.")
    for node, count in sorted(state.ledger.others.items()):
        others.put(float(count), node=plant.spots[node].node.name)
    stands = Metric("wattline_site_standing", "gauge", "1 for how the agent of a site stands, else 0.")
    for record in state.sites.values():
        for standing in Standing:
            stands.put(float(record.standing is standing), site=record.site, standing=str(standing))
    return [
        *found,
        jobs,
        others,
        stands,
        Metric("wattline_oldest_wait_seconds", "gauge", "How long the first in line waits.").put(
            max(0.0, oldest)
        ),
        gpus,
        used,
        *_resources(view),
    ]


def _resources(view: View) -> list[Metric]:
    """Of every supply, rack and loop: its cap, what is promised, and what was read last."""
    ledger = view.state.ledger
    caps = Metric("wattline_cap_watts", "gauge", "The most that a supply, rack or loop may carry.")
    promised = Metric(
        "wattline_promised_watts", "gauge", "What jobs were promised of it, and idle nodes draw."
    )
    drawn = Metric("wattline_drawn_watts", "gauge", "What its meter read last.")
    for number, resource in enumerate(view.state.plant.resources):
        if resource.kind not in _IN_WATTS:
            continue
        labels = {"kind": resource.kind.value, "subject": resource.name}
        caps.put(float(ledger.caps[number]), **labels)
        promised.put(float(ledger.promised[number]), **labels)
        if ledger.drawn_at[number] is not None:
            drawn.put(ledger.drawn[number], **labels)
    return [caps, promised, drawn]


OPEN = (
    Endpoint(
        method="GET", path="/healthz", name="health", say="Whether the server answers.", handle=_health,
        answer=Health, allowed=None,
    ),
    Endpoint(
        method="GET", path="/readyz", name="readiness", say="Whether it can read its journal.",
        handle=_ready, answer=Readiness, allowed=None,
    ),
)  # fmt: skip
