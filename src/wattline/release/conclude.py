"""Concluding a run: gates, manifest and release, each once, also when a crash came in between.

First the gates are judged and the manifest is settled; that is journaled. Only then is anything promoted,
so doing the second part again promotes the same manifest, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from wattline import __version__
from wattline.errors import RefusedError, WattlineError
from wattline.live import Home, find_lacking
from wattline.release.facts import (
    Artifact,
    Attempt,
    CheckpointUsed,
    DataUsed,
    DecisionRange,
    FacilityUsed,
    ParamsUsed,
    PhaseRun,
    Pinned,
    ReleaseAsked,
    RunFacts,
    Source,
)
from wattline.release.gates import GateResult, judge_gates
from wattline.release.goods import KeptGoods
from wattline.release.index import Tree
from wattline.release.manifest import build_manifest
from wattline.release.metrics import read_metrics
from wattline.release.outputs import read_outputs
from wattline.release.reading import hash_file
from wattline.release.shelf import Shelf
from wattline.release.statement import load_manifest
from wattline.spec import Pipeline
from wattline.state import (
    ENDED,
    Ending,
    Event,
    GatesJudged,
    Job,
    JobState,
    Released,
    Run,
    RunConcluded,
    State,
    Usage,
)
from wattline.store import ObjectStore

METRICS = "metrics.json"
CANONICAL_GATE = "mode == canonical"


def is_ready(state: State, run: Run) -> bool:
    """Whether all of a run's jobs have ended and its last word has not been said."""
    return run.ended_at is None and all(state.jobs[job].state in ENDED for job in run.jobs)


def judge_run(
    state: State,
    run: Run,
    *,
    home: Home,
    objects: ObjectStore,
    goods: KeptGoods,
    decisions: DecisionRange | None,
    at: float,
) -> GatesJudged:
    """The gates of a run that ended, and its manifest, which is kept from here on."""
    pipeline = goods.source(run.documents).pipeline
    jobs = [state.jobs[job_id] for job_id in run.jobs]
    complete = all(job.state is JobState.SUCCEEDED for job in jobs)
    metrics, trouble = _metrics(jobs, objects)
    gates = judge_gates(pipeline.gates, metrics) if complete else ()
    gates += judge_modes(pipeline, jobs) if complete else ()
    if trouble and gates:
        gates = tuple(
            GateResult(gate=gate.gate, outcome=gate.outcome, values=gate.values, message=trouble)
            if gate.outcome == "unknown"
            else gate
            for gate in gates
        )
    facts = _facts(
        state,
        run,
        pipeline,
        jobs,
        home=home,
        objects=objects,
        metrics=metrics,
        gates=gates,
        decisions=decisions,
    )
    manifest = str(objects.put_bytes(build_manifest(facts)))
    outcomes = {gate.outcome for gate in gates}
    passed = False if not complete or "fail" in outcomes else None if "unknown" in outcomes else True
    return GatesJudged(
        at=at,
        project=run.project,
        run=run.run,
        passed=passed,
        manifest=manifest,
        results=tuple(asdict(gate) for gate in gates),
    )


def judge_modes(pipeline: Pipeline, jobs: list[Job]) -> tuple[GateResult, ...]:
    """A gate that nobody has to write: what is released rests on nothing approximate."""
    rests_on = pipeline.rests_on()
    rough = [
        job.request.phase for job in jobs if job.runs_as == "approximate" and job.request.phase in rests_on
    ]
    if pipeline.release is None or not rough:
        return ()
    message = f"{say_rough(rough)}; say `mode: canonical` and run again"
    return (GateResult(gate=CANONICAL_GATE, outcome="fail", values={}, message=message),)


def say_rough(phases: Sequence[str]) -> str:
    return f"an approximate result is never released: {', '.join(phases)} ran approximately"


def release_run(
    state: State, run: Run, *, home: Home, objects: ObjectStore, goods: KeptGoods, shelf: Shelf, at: float
) -> list[Event]:
    """Promote a run that passed, unless somebody has to approve it first; then the last word."""
    pipeline = goods.source(run.documents).pipeline
    status, say = _status(state, run)
    events: list[Event] = []
    asked = pipeline.release
    if status == "succeeded" and asked is not None:
        if asked.approval == "required":
            status, say = "awaiting approval", f"`wattline promote {run.run} --approved-by NAME` releases it"
        else:
            try:
                require_replicas(home, state, run)
                events.append(
                    promote_run(run, objects=objects, shelf=shelf, channel=asked.to, by=run.actor, at=at)
                )
            except WattlineError as error:
                status, say = "not released", error.message
    concluded = RunConcluded(at=at, project=run.project, run=run.run, status=status, say=say)
    return [*events, concluded]


def require_replicas(home: Home, state: State, run: Run) -> None:
    """Raise unless every checkpoint is everywhere its owner wanted it: a release may not rest on one copy."""
    for job_id in run.jobs:
        lacking = find_lacking(home, state.jobs[job_id], state.sites)
        if lacking:
            raise RefusedError(
                f"run {run.run}: its checkpoints are not replicated: {lacking}",
                hint=f"`wattline checkpoint replicate` copies them; then `wattline promote {run.run}`",
            )


def promote_run(
    run: Run,
    *,
    objects: ObjectStore,
    shelf: Shelf,
    channel: str,
    by: str,
    at: float,
    name: str | None = None,
    approved_by: str | None = None,
    note: str = "",
) -> Released:
    """Make a run's artifacts the current release of a channel."""
    statement = load_manifest(run.manifest, objects)
    phases = statement.predicate.run_details.phases
    rough = [phase.name for phase in phases if phase.mode == "approximate" and not phase.aside]
    if rough:
        raise RefusedError(f"run {run.run}: {say_rough(rough)}", hint="say `mode: canonical` and run again")
    asked = statement.predicate.build_definition.external_parameters.release
    artifacts = tuple(
        Artifact(path=one.name, sha256=one.digest.sha256, size_bytes=one.annotations.size_bytes)
        for one in statement.subject
    )
    name = name or (asked.name if asked else run.pipeline)
    placed = shelf.promote(
        name, channel, run.manifest, artifacts, by=by, at=at, note=note, approved_by=approved_by
    )
    return Released(
        at=at,
        actor=by,
        project=run.project,
        name=name,
        channel=channel,
        run=run.run,
        manifest=run.manifest,
        number=placed.number,
        note=note,
    )


def _status(state: State, run: Run) -> tuple[str, str]:
    """How a run ended, and the sentence that says why."""
    for job_id in run.jobs:
        job = state.jobs[job_id]
        if job.state is JobState.REFUSED:
            return "refused", f"{job.request.phase}: {job.say}"
        if job.state is JobState.FAILED:
            return "failed", f"{job.request.phase}: {job.say}"
        if job.state is JobState.CANCELLED:
            return "cancelled", f"{job.request.phase}: {job.say}"
    messages = [f"{gate['gate']}: {gate['message']}" for gate in run.gates if gate["outcome"] != "pass"]
    if run.gates_passed is None:
        return "gates unknown", "; ".join(messages)
    return ("succeeded", "") if run.gates_passed else ("gates failed", "; ".join(messages))


def _metrics(jobs: list[Job], objects: ObjectStore) -> tuple[dict[str, float], str]:
    """What the last phase that measured anything wrote, or why there is nothing to read."""
    for job in reversed(jobs):
        if not job.outputs:
            continue
        for file in read_outputs(job.outputs, objects).files:
            if file.path == METRICS:
                try:
                    return read_metrics(objects.path(file.digest)), ""
                except WattlineError as error:
                    return {}, error.message
    return {}, "no phase wrote out/metrics.json"


def _facts(
    state: State,
    run: Run,
    pipeline: Pipeline,
    jobs: list[Job],
    *,
    home: Home,
    objects: ObjectStore,
    metrics: dict[str, float],
    gates: tuple[GateResult, ...],
    decisions: DecisionRange | None,
) -> RunFacts:
    documents, adopted = run.documents, state.adopted
    usage = total_usage(jobs)
    last = _last_outputs(jobs, objects)
    return RunFacts(
        run_id=run.run,
        pipeline=Pinned(name=pipeline.pipeline, sha256=_bare(documents["pipeline"])),
        model=pipeline.model,
        owner=pipeline.owner,
        project=pipeline.project,
        intended_use=pipeline.intended_use,
        source=Source(
            digest=documents["bundle"],
            commit=documents.get("commit"),
            dirty=None if "dirty" not in documents else documents["dirty"] == "true",
        ),
        image=pipeline.image,
        data=tuple(
            DataUsed(name=data.name, path=data.path, sha256=documents[f"data:{data.path}"])
            for data in pipeline.data
        ),
        params=_params(pipeline, documents),
        policy=Pinned(name=adopted["policy"], sha256=_bare(adopted["policy_sha256"])),
        facility=FacilityUsed(
            name=adopted["facility"],
            sha256=_bare(adopted["facility_sha256"]),
            emulated=state.plant.facility.emulated,
        ),
        decisions=decisions,
        phases=tuple(_phase(job, pipeline.rests_on()) for job in jobs),
        checkpoint=_checkpoint(jobs),
        artifacts=tuple(
            Artifact(path=file.path, sha256=file.sha256, size_bytes=file.size_bytes)
            for file in (last.files if last else ())
        ),
        logs=_logs(home, jobs, objects),
        gates=gates,
        metrics=metrics,
        release=None
        if pipeline.release is None
        else ReleaseAsked(
            name=pipeline.release.name, to=pipeline.release.to, approval=pipeline.release.approval
        ),
        cost_usd=usage.usd,
        energy_kwh=usage.kwh,
        carbon_kg=usage.kg_co2e,
        started_at=run.submitted_at,
        ended_at=max((job.ended_at or run.submitted_at) for job in jobs),
        wattline_version=__version__,
    )


def total_usage(jobs: list[Job]) -> Usage:
    total = Usage()
    for job in jobs:
        total = total.plus(job.usage)
    return total


def _bare(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _params(pipeline: Pipeline, documents: dict[str, str]) -> ParamsUsed | None:
    if pipeline.params is None:
        return None
    return ParamsUsed(path=pipeline.params, sha256=documents["params"])


def _last_outputs(jobs: list[Job], objects: ObjectStore) -> Tree | None:
    """Later phases hold what earlier ones left, so the last one's results are the run's."""
    digest = next((job.outputs for job in reversed(jobs) if job.outputs), "")
    return read_outputs(digest, objects) if digest else None


def _phase(job: Job, rests_on: frozenset[str]) -> PhaseRun:
    return PhaseRun(
        name=job.request.phase,
        attempts=tuple(
            Attempt(
                attempt=past.attempt,
                epoch=past.attempt,
                site=past.place.site if past.place else "",
                nodes=tuple(name for name, _ in past.place.nodes) if past.place else (),
                outcome=past.ending,
                started_at=past.began_at if past.began_at is not None else past.ended_at,
                ended_at=past.ended_at,
            )
            for past in job.past
        ),
        outputs=job.outputs or None,
        approximate=job.runs_as == "approximate",
        aside=job.request.phase not in rests_on,
    )


def _checkpoint(jobs: list[Job]) -> CheckpointUsed | None:
    for job in reversed(jobs):
        if job.saved is not None and job.saved.digest:
            return CheckpointUsed(digest=job.saved.digest, step=job.saved.step, epoch=job.attempt)
    return None


def _logs(home: Home, jobs: list[Job], objects: ObjectStore) -> tuple[Pinned, ...]:
    """Every attempt's output, kept as it was when the run ended."""
    found = []
    for job in jobs:
        for past in job.past:
            log = home.attempt(job.request.run, job.request.phase, past.attempt) / "output.log"
            if past.ending is not Ending.NOT_STARTED and log.is_file():
                objects.put_file(log)
                name = f"{job.request.phase}/{past.attempt}/output.log"
                found.append(Pinned(name=name, sha256=hash_file(log)))
    return tuple(found)
