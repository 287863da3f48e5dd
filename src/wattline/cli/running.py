"""`wattline run`: preflight, submit, then conduct it here or follow whoever does."""

from __future__ import annotations

import os
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self

from wattline.checks import Asking as PreflightAsking
from wattline.checks import Preflight, preflight
from wattline.cli.narrator import Narrator
from wattline.errors import RefusedError, UsageError
from wattline.plane.conductor import Conductor
from wattline.plane.policy_in_force import Following, choose_policy
from wattline.plane.session import Session, user
from wattline.plane.submitting import SERVED
from wattline.release import Bundle, bundle_source, describe_source
from wattline.spec import Fault, Faults, parse_document, read_faults, read_pipeline
from wattline.state import Asked, JobState, Run, RunSubmitted, requests_of
from wattline.store import ProcessIdentity, identify_this_process, is_alive

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
    approved_by: str | None = None


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


def submit(session: Session, asking: Asking, narrator: Narrator, source: str | None = None) -> RunSubmitted:
    """Check the pipeline and its surroundings, keep its source, and describe the run."""
    pipeline = read_pipeline(asking.pipeline)
    folder = asking.pipeline.resolve().parent
    policy = session.policy_of(choose_policy(session, asking.policy))
    exclude = [data.path for data in pipeline.data]
    if session.home.root.is_relative_to(folder):  # the state is no source, and its database not ours to open
        exclude.append(session.home.root.relative_to(folder).as_posix())
    bundle = bundle_source(folder, session.objects, exclude=exclude)
    if asking.facility is not None or session.state is None:
        facility = session.facility_of(session.keep_facility(asking.facility or "lab"))
    else:
        facility = session.state.plant.facility
    checked = preflight(
        PreflightAsking(
            pipeline=pipeline,
            policy=policy,
            folder=folder,
            document=asking.pipeline.name,
            source={file.path for file in bundle.files},
            sites=[site.name for site in facility.sites],
            environment=os.environ,
            approved=asking.approved_by is not None,
        )
    )
    narrator.preflight(checked)
    if not checked.passed:
        failed = [check.title for check in checked.checks if check.outcome == "fail"]
        raise RefusedError(
            f"preflight of {pipeline.pipeline} failed: {', '.join(failed)}", hint="what is said of each above"
        )
    run = f"{pipeline.pipeline}-{time.strftime('%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
    return RunSubmitted(
        # Where the clock was set back, the journal's last word counts: the run did not wait before it came.
        at=max(time.time(), session.state.at if session.state is not None else 0.0),
        actor=user(),
        project=pipeline.project,
        source=source or str(identify_this_process()),
        run=run,
        pipeline=pipeline.pipeline,
        jobs=requests_of(pipeline, run, approved=asking.approved_by is not None),
        documents=_describe(session, asking, bundle, folder, checked),
    )


def _describe(
    session: Session, asking: Asking, bundle: Bundle, folder: Path, checked: Preflight
) -> dict[str, str]:
    more = {"after_seq": str(session.store.journal.last_seq())}
    if bundle.commit is not None:
        more["commit"] = bundle.commit
        more["dirty"] = "true" if bundle.dirty else "false"
    if checked.params_sha256 is not None:
        more["params"] = checked.params_sha256
    if asking.approved_by is not None:
        more["approved_by"] = asking.approved_by
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
            if not handed:
                _check_same_documents(session, asking)
                _hand_over(session, run_id, event)
                handed = True
                holder = session.store.lease.current()
                narrator.joined(holder.process.pid if holder else None)
            done = _follow(session, run_id, narrator, interrupts)
            if done is not None:
                return done


def _hand_over(session: Session, run_id: str, event: RunSubmitted | None) -> None:
    """Give the run to whoever conducts: as new, or to go on with."""
    if event is not None:
        session.tell(event)
        return
    assert session.state is not None
    for asked in _ask(session.state.runs[run_id], "resume"):
        session.tell(asked)


def _ask(run: Run, want: str) -> list[Asked]:
    """This process's word about every job of a run; those that have ended will not hear it."""
    now, me = time.time(), str(identify_this_process())
    return [
        Asked(at=now, actor=user(), project=run.project, source=me, job=job_id, want=want)
        for job_id in run.jobs
    ]


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
    policy = choose_policy(session, asking.policy, otherwise=None if event is not None else policy)
    conductor = Conductor(
        session,
        facility_digest=facility,
        policy_digest=policy,
        faults=_faults_of(session, documents),
        watcher=narrator,
        seed=asking.seed,
        following=Following(session, policy) if asking.policy is None else None,
    )
    try:
        for run in conductor.state.runs.values():
            if run.ended_at is not None:
                continue
            if run.run == run_id:
                conductor.submit(*_ask(run, "resume"))
            elif not _is_awaited(run):  # nobody waits for it any more: whoever wants it resumes it
                conductor.submit(*_ask(run, "pause"))
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
                    conductor.submit(*_ask(other, "pause"))
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
            for word in _ask(run, "pause"):
                session.tell(word)
            asked = True
        if interrupts.count > 1 or (asked and run is not None and _rests(session, run)):
            return interrupts.count
        time.sleep(_FOLLOW_SECONDS)
    session.refresh()
    run = session.state.runs.get(run_id) if session.state else None
    return 0 if run is not None and run.ended_at is not None else None


def _is_awaited(run: Run) -> bool:
    """Whether the process that submitted or resumed a run is still there; a server's go on without one."""
    if run.process == SERVED:
        return True
    process = ProcessIdentity.parse(run.process)
    return process is not None and is_alive(process)


def _rests(session: Session, run: Run) -> bool:
    assert session.state is not None
    return not any(job_id in session.state.holding for job_id in run.jobs)


def _check_same_documents(session: Session, asking: Asking) -> None:
    """A run that joins another's queue runs under what is in force there."""
    session.refresh()
    adopted = session.state.adopted if session.state else {}
    named = {
        "facility": (asking.facility, session.keep_facility),
        "policy": (asking.policy, session.keep_policy),
    }
    for kind, (name, keep) in named.items():
        if name is not None and adopted and keep(name) != adopted.get(f"{kind}_sha256"):
            raise UsageError(
                f"the queue in {session.home.root} runs with the {kind} {adopted.get(kind)!r}, "
                f"not with {name!r}",
                hint=f"leave --{kind} out to join it, or set WATTLINE_HOME to another folder",
            )
    if asking.faults is not None:
        raise UsageError(
            f"the queue in {session.home.root} is conducted already, and faults come with who conducts",
            hint="leave --faults out to join it, or set WATTLINE_HOME to another folder",
        )


def _faults_of(session: Session, documents: dict[str, str]) -> tuple[Fault, ...]:
    digest = documents.get("faults")
    if digest is None:
        return ()
    with session.objects.open(digest) as file:
        return parse_document(file.read(), Faults, file="faults.yaml").faults
