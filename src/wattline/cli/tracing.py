"""What does a release rest on, and where does each part of it lie here? `release` checks the hashes."""

from __future__ import annotations

from dataclasses import dataclass

from wattline.errors import RefusedError, UnavailableError, WattlineError
from wattline.live import hash_data
from wattline.plane.finding import View
from wattline.release import Lineage, Link, Release, Statement, load_manifest, trace_lineage
from wattline.state import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A lineage with what its manifest says, where that could be read."""

    run_id: str | None
    release: Release | None
    lineage: Lineage
    statement: Statement | None


def trace_run(view: View, run: Run) -> Traced:
    if not run.manifest:
        raise RefusedError(
            f"run {run.run} has no manifest yet: it is {run.status}",
            hint="a manifest is written when all phases have ended",
        )
    return _trace(view, run.manifest, None)


def trace_release(view: View, release: Release) -> Traced:
    return _trace(view, release.manifest, release)


def _trace(view: View, manifest: str, release: Release | None) -> Traced:
    session = view.session
    statement = _statement(view, manifest)
    run_id = statement.predicate.run_details.metadata.invocation_id if statement else None
    run = view.state.runs.get(run_id) if run_id else None
    saved = None
    if run is not None:
        jobs = [view.state.jobs[job] for job in run.jobs]
        saved = next((job for job in reversed(jobs) if job.saved is not None and job.saved.digest), None)
    lineage = trace_lineage(
        manifest,
        session.objects,
        folder=session.goods.source(run.documents).folder if run is not None else None,
        checkpoints=None
        if saved is None or saved.saved is None
        else session.home.checkpoints(saved.saved.site, saved.request.run, saved.request.phase),
        journal_check=lambda first, last, head: check_journal(view, first, last, head),
    )
    if release is not None:
        lineage = Lineage(links=(_check_release(view, release), *lineage.links))
    return Traced(run_id=run_id, release=release, lineage=lineage, statement=statement)


def check_journal(view: View, _first_seq: int, last_seq: int, head: str) -> str | None:
    """What is wrong with the journal up to the last decision about a run, or None."""
    journal = view.session.store.journal
    try:
        journal.verify()
        record = next(iter(journal.read(last_seq - 1, limit=1)), None)
    except UnavailableError as error:
        return error.message
    if record is None or record.seq != last_seq:
        return f"record {last_seq} is missing"
    if record.hash.hex() != head:
        return f"record {last_seq} has the hash {record.hash.hex()}"
    return None


def _statement(view: View, manifest: str) -> Statement | None:
    try:
        return load_manifest(manifest, view.session.objects)
    except WattlineError:
        return None  # the lineage says what is wrong with it


def _check_release(view: View, release: Release) -> Link:
    """Are the released files, which people use, still those of the manifest?"""
    folder = view.session.shelf.path(release)
    name = f"{release.name}:{release.channel}"
    wanted = {folder / "manifest.json": release.manifest.removeprefix("sha256:")}
    wanted |= {folder / "artifacts" / artifact.path: artifact.sha256 for artifact in release.artifacts}
    for path, sha256 in wanted.items():
        if not path.is_file():
            return Link(
                kind="release", name=name, digest=release.manifest, outcome="missing", note=f"{path} is gone"
            )
        if hash_data(path) != sha256:
            note = f"{path} has changed"
            return Link(kind="release", name=name, digest=release.manifest, outcome="altered", note=note)
    note = f"number {release.number}, {len(release.artifacts)} files"
    return Link(kind="release", name=name, digest=release.manifest, outcome="verified", note=note)
