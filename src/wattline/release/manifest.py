"""Where did this artifact come from? The facts of a run, written so that any SLSA reader understands them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from wattline.errors import UsageError
from wattline.release.canonical import encode_canonical, sha256_hex
from wattline.release.facts import Attempt, PhaseRun, RunFacts
from wattline.release.statement import (
    BUILD_TYPE,
    BUILDER_ID,
    LONGEST_TEXT,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    AttemptRecord,
    BuildDefinition,
    Builder,
    Decisions,
    Descriptor,
    DigestSet,
    ExternalParameters,
    GateRecord,
    InternalParameters,
    Metadata,
    PhaseRecord,
    Provenance,
    ReleaseRequest,
    RunDetails,
    Sha256Only,
    Statement,
    Subject,
    SubjectNotes,
    Usage,
    read_manifest,
)


def build_manifest(facts: RunFacts) -> bytes:
    """The same facts give the same bytes. A run that failed has a manifest too, without subjects."""
    statement = Statement(
        type=STATEMENT_TYPE,
        predicate_type=PREDICATE_TYPE,
        subject=tuple(
            Subject(
                name=artifact.path,
                digest=Sha256Only(sha256=artifact.sha256),
                annotations=SubjectNotes(size_bytes=artifact.size_bytes),
            )
            for artifact in sorted(facts.artifacts, key=lambda artifact: artifact.path)
        ),
        predicate=Provenance(build_definition=_build_definition(facts), run_details=_run_details(facts)),
    )
    data = encode_canonical(statement)
    read_manifest(data)  # what could not be read back must not be what a release rests on
    return data


def metrics_report(metrics: Mapping[str, float | None]) -> bytes:
    """The evaluation report. What is not finite becomes null, which JSON can say."""
    return encode_canonical({name: _finite(value) for name, value in metrics.items()})


def gates_report(gates: tuple[GateRecord, ...]) -> bytes:
    return encode_canonical(gates)


def _build_definition(facts: RunFacts) -> BuildDefinition:
    params, release, decisions = facts.params, facts.release, facts.decisions
    return BuildDefinition(
        build_type=BUILD_TYPE,
        external_parameters=ExternalParameters(
            pipeline=_pinned(facts.pipeline.name, facts.pipeline.sha256),
            model=facts.model,
            owner=facts.owner,
            project=facts.project,
            intended_use=facts.intended_use,
            params=_pinned(params.path, params.sha256) if params else None,
            release=ReleaseRequest(name=release.name, to=release.to, approval=release.approval)
            if release
            else None,
        ),
        internal_parameters=InternalParameters(
            policy=_pinned(facts.policy.name, facts.policy.sha256),
            facility=Descriptor(
                name=facts.facility.name,
                digest=DigestSet(sha256=_hex(facts.facility.sha256)),
                annotations={"emulated": facts.facility.emulated},
            ),
            decisions=Decisions(
                first_seq=decisions.first_seq,
                last_seq=decisions.last_seq,
                count=decisions.count,
                head=decisions.head,
            )
            if decisions
            else None,
        ),
        resolved_dependencies=tuple(_dependencies(facts)),
    )


def _dependencies(facts: RunFacts) -> list[Descriptor]:
    found = [_source(facts)]
    if facts.image is not None:
        sha256 = facts.image.rpartition("@sha256:")[2]
        found.append(Descriptor(name="image", uri=facts.image, digest=DigestSet(sha256=sha256)))
    found += [
        Descriptor(name=f"data/{data.name}", uri=data.path, digest=DigestSet(sha256=_hex(data.sha256)))
        for data in facts.data
    ]
    if facts.checkpoint is not None:
        found.append(
            Descriptor(
                name="checkpoint",
                digest=DigestSet(blake3=facts.checkpoint.digest),
                annotations={"step": facts.checkpoint.step, "epoch": facts.checkpoint.epoch},
            )
        )
    return found


def _source(facts: RunFacts) -> Descriptor:
    """A commit names the source only if nothing was changed after it; otherwise it is where changes began."""
    source = facts.source
    return Descriptor(
        name="source",
        digest=DigestSet(
            sha256=_hex(source.digest), git_commit=source.commit if source.dirty is False else None
        ),
        annotations={"commit": source.commit, "dirty": source.dirty},
    )


def _run_details(facts: RunFacts) -> RunDetails:
    gates = tuple(
        GateRecord(
            gate=one.gate,
            outcome=one.outcome,
            values={name: _finite(value) for name, value in one.values.items()},
            message=one.message[:LONGEST_TEXT],
        )
        for one in facts.gates
    )
    return RunDetails(
        builder=Builder(id=BUILDER_ID, version={"wattline": facts.wattline_version}),
        metadata=Metadata(
            invocation_id=facts.run_id,
            started_on=_instant(facts.started_at),
            finished_on=_instant(facts.ended_at),
            usage=Usage(
                cost_usd=_finite(facts.cost_usd),
                energy_kwh=_finite(facts.energy_kwh),
                carbon_kg=_finite(facts.carbon_kg),
            ),
        ),
        byproducts=(
            *(_pinned(f"logs/{log.name}", log.sha256) for log in facts.logs),
            *(_pinned(f"outputs/{run.name}", run.outputs) for run in facts.phases if run.outputs),
            _pinned("metrics", sha256_hex(metrics_report(facts.metrics))),
            _pinned("gates", sha256_hex(gates_report(gates))),
        ),
        phases=tuple(_phase(run) for run in facts.phases),
        gates=gates,
        metrics={name: _finite(value) for name, value in facts.metrics.items()},
    )


def _phase(run: PhaseRun) -> PhaseRecord:
    return PhaseRecord(
        name=run.name,
        attempts=tuple(map(_attempt, run.attempts)),
        outputs=run.outputs,
        mode="approximate" if run.approximate else "canonical",
        aside=run.approximate and run.aside,
    )


def _attempt(attempt: Attempt) -> AttemptRecord:
    return AttemptRecord(
        attempt=attempt.attempt,
        epoch=attempt.epoch,
        site=attempt.site,
        nodes=attempt.nodes,
        outcome=attempt.outcome,
        started_on=_instant(attempt.started_at),
        finished_on=None if attempt.ended_at is None else _instant(attempt.ended_at),
    )


def _pinned(name: str, digest: str) -> Descriptor:
    return Descriptor(name=name, digest=DigestSet(sha256=_hex(digest)))


def _hex(digest: str) -> str:
    """Digests come with and without their algorithm; in-toto keeps the two apart."""
    return digest.removeprefix("sha256:")


def _finite(value: float | None) -> float | None:
    """One spelling for each number: 1 and 1.0 are the same, and so are 0.0 and -0.0."""
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None


def _instant(at: float) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"time {at!r} is not seconds since 1970: {error}") from error
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
