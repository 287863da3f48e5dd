"""`wattline run`: preflight, submit, then conduct it here or follow whoever does."""

from __future__ import annotations

import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self

from wattline.checks import Preflight, preflight
from wattline.cli.conductor import Conductor
from wattline.cli.narrator import Narrator
from wattline.cli.session import Session, user
from wattline.errors import RefusedError, UsageError
from wattline.release import bundle_source, describe_source
from wattline.spec import Fault, Faults, Pipeline, parse_document, read_faults, read_pipeline
from wattline.state import Asked, JobState, Run, RunSubmitted, requests_of

_FOLLOW_SECONDS = 0.2
INTERRUPTED_EXIT_CODE = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What the command line asked for."""

    pipeline: Path
    facility: str | None
    policy: str | None
    faults: Path | None
    seed: int


class Interrupts:
    """Ctrl-C once: save and stop. Twice: stop now."""

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


def submit(session: Session, asking: Asking, narrator: Narrator) -> RunSubmitted:
    """Check the pipeline and its surroundings, keep its source, and describe the run."""
    pipeline = read_pipeline(asking.pipeline)
    folder = asking.pipeline.resolve().parent
    policy = session.policy_of(session.keep_policy(asking.policy or "default"))
    checked = preflight(pipeline, policy, folder)
    narrator.preflight(checked)
    if not checked.passed:
        failed = [f"{check.check}: {check.message}" for check in checked.checks if check.outcome == "fail"]
        raise RefusedError(f"preflight of {pipeline.pipeline} failed: " + "; ".join(failed))
    run = f"{pipeline.pipeline}-{time.strftime('%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
    return RunSubmitted(
        at=time.time(),
        actor=user(),
        project=pipeline.project,
        run=run,
        pipeline=pipeline.pipeline,
        jobs=requests_of(pipeline, run),
        documents=_describe(session, asking, pipeline, folder, checked),
    )


def _describe(
    session: Session, asking: Asking, pipeline: Pipeline, folder: Path, checked: Preflight
) -> dict[str, str]:
    exclude = [data.path for data in pipeline.data]
    bundle = bundle_source(folder, session.objects, exclude=exclude)
    more = {"after_seq": str(session.store.journal.last_seq())}
    if bundle.commit is not None:
        more["commit"] = bundle.commit
        more["dirty"] = "true" if bundle.dirty else "false"
    if checked.params_sha256 is not None:
        more["params"] = checked.params_sha256
    if asking.faults is not None:
        read_faults(asking.faults)
        more["faults"] = str(session.objects.put_file(asking.faults))
    return describe_source(
        str(session.objects.put_file(asking.pipeline)),
        str(bundle.digest),
        folder,
        checked.data_sha256,
        **more,
    )


def find_resumable(session: Session, asking: Asking, named: str | None) -> Run | None:
    """The run to go on with: the one named, or this pipeline's newest; None where it has none yet."""
    runs = session.state.runs if session.state else {}
    if named:
        if named not in runs:
            raise UsageError(
                f"run {named!r} is not in {session.home.root}", hint="`wattline status` lists them"
            )
        return runs[named]
    pipeline = read_pipeline(asking.pipeline).pipeline
    own = [run for run in runs.values() if run.pipeline == pipeline]
    return max(own, key=lambda run: run.submitted_at, default=None)


def carry(
    session: Session, run_id: str, event: RunSubmitted | None, asking: Asking, narrator: Narrator
) -> int:
    """Conduct a run to its end, or follow the process that does; take over if that one goes away.

    Returns how many times it was interrupted: 0 means that the run has ended.
    """
    with Interrupts() as interrupts:
        handed = False
        while True:
            if session.become_writer():
                return _conduct(session, run_id, None if handed else event, asking, narrator, interrupts)
            if event is not None and not handed:
                _check_same_facility(session, asking)
                session.tell(event)
                handed = True
                holder = session.store.lease.current()
                narrator.joined(holder.process.pid if holder else None)
            done = _follow(session, run_id, narrator, interrupts)
            if done is not None:
                return done


def _conduct(
    session: Session,
    run_id: str,
    event: RunSubmitted | None,
    asking: Asking,
    narrator: Narrator,
    interrupts: Interrupts,
) -> int:
    state = session.state
    adopted = state.adopted if state else {}
    known = state.runs.get(run_id) if state else None
    documents = known.documents if known else event.documents if event else {}
    facility, policy = adopted.get("facility_sha256"), adopted.get("policy_sha256")
    if asking.facility or not facility or event is not None:
        facility = session.keep_facility(asking.facility or "lab")
    if asking.policy or not policy or event is not None:
        policy = session.keep_policy(asking.policy or "default")
    conductor = Conductor(
        session,
        facility_digest=facility,
        policy_digest=policy,
        faults=_faults_of(session, documents),
        watcher=narrator,
        seed=asking.seed,
    )
    try:
        mine = {run_id}
        for run in conductor.state.runs.values():
            if run.ended_at is None:
                conductor.ask(run, "resume" if run.run in mine else "pause")
        if event is not None:
            conductor.submit(event)
        return _loop(conductor, run_id, interrupts, narrator)
    finally:
        conductor.close()


def _loop(conductor: Conductor, run_id: str, interrupts: Interrupts, narrator: Narrator) -> int:
    asked = False
    while True:
        decision = conductor.turn()
        run = conductor.state.runs.get(run_id)
        others = [other for other in conductor.state.runs.values() if other.ended_at is None]
        if interrupts.count == 0 and run is not None and run.ended_at is not None:
            joined = [other for other in others if not _is_paused(conductor, other)]
            if not joined:
                return 0
            narrator.staying(len(joined))
        if interrupts.count > 1:
            conductor.abandon()
            return interrupts.count
        if interrupts.count == 1:
            if not asked:
                narrator.interrupted()
                for other in others:
                    conductor.ask(other, "pause")
                asked = True
            elif not conductor.state.holding:
                return 1
        conductor.rest(decision)


def _is_paused(conductor: Conductor, run: Run) -> bool:
    """Whether a run rests at a person's word: then nobody here waits for it."""
    jobs = [conductor.state.jobs[job_id] for job_id in run.jobs]
    return any(job.asked == "pause" for job in jobs) and not any(
        job.state in (JobState.RUNNING, JobState.STARTING) for job in jobs
    )


def _follow(session: Session, run_id: str, narrator: Narrator, interrupts: Interrupts) -> int | None:
    """Watch the journal until the run has ended, it was interrupted, or nobody writes any more."""
    asked = False
    while session.store.lease.current() is not None:
        for record in session.refresh():
            if session.state is not None:
                narrator.turn(session.state, record.events, record.decision)
        run = session.state.runs.get(run_id) if session.state else None
        if run is not None and run.ended_at is not None:
            return 0
        if interrupts.count and not asked and run is not None:
            for job_id in run.jobs:
                session.tell(
                    Asked(at=time.time(), actor=user(), project=run.project, job=job_id, want="pause")
                )
            asked = True
        if interrupts.count > 1 or (asked and run is not None and _rests(session, run)):
            return interrupts.count
        time.sleep(_FOLLOW_SECONDS)
    session.refresh()
    run = session.state.runs.get(run_id) if session.state else None
    return 0 if run is not None and run.ended_at is not None else None


def _rests(session: Session, run: Run) -> bool:
    assert session.state is not None
    return not any(job_id in session.state.holding for job_id in run.jobs)


def _check_same_facility(session: Session, asking: Asking) -> None:
    """A run that joins another's queue runs on that one's facility."""
    session.refresh()
    adopted = session.state.adopted if session.state else {}
    if asking.facility is None or not adopted:
        return
    wanted = session.keep_facility(asking.facility)
    if wanted != adopted.get("facility_sha256"):
        raise UsageError(
            f"the queue in {session.home.root} runs on facility {adopted.get('facility')!r}, "
            f"not on {asking.facility!r}",
            hint="leave --facility out to join it, or set WATTLINE_HOME to another folder",
        )


def _faults_of(session: Session, documents: dict[str, str]) -> tuple[Fault, ...]:
    digest = documents.get("faults")
    if digest is None:
        return ()
    with session.objects.open(digest) as file:
        return parse_document(file.read(), Faults, file="faults.yaml").faults
