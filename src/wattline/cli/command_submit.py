"""The submit command: hand a pipeline over, and go; a server or whoever conducts here carries it on."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import quote

from wattline.checks import Asking as PreflightAsking
from wattline.checks import Preflight, preflight
from wattline.cli.command_run import EXIT_CODES
from wattline.cli.narrator import Narrator
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import RemoteError, Server, find_server
from wattline.cli.running import Asking, submit
from wattline.cli.summary_text import show_run
from wattline.errors import RefusedError
from wattline.live import Home
from wattline.plane.session import open_session, user
from wattline.plane.submitting import DATA_LIMITS, SERVED, Submission, Submitted
from wattline.plane.summary import describe_run
from wattline.release import Bundle, bundle_source
from wattline.release.index import Tree
from wattline.release.tree import store_survey, survey_folder, walk_folder
from wattline.spec import Pipeline, Policy, parse_document, read_pipeline
from wattline.state import RunSubmitted
from wattline.store import ObjectStore

_LOOK_SECONDS = 1.0


def submit_pipeline(*, pipeline: Path, approved: bool, wait: bool, key: str | None, as_json: bool) -> int:
    server = find_server()
    if server is None:
        return _hand_over_here(pipeline, approved=approved, wait=wait, as_json=as_json)
    with Narrator(Home.find()) as narrator, tempfile.TemporaryDirectory(prefix="wattline-") as folder:
        objects = ObjectStore(Path(folder))
        submission = _pack(server, pipeline, objects, narrator, approved=approved)
        told = server.post("/api/v1/runs", submission, Submitted, key or uuid.uuid4().hex)
    if not wait:
        return _tell(told, as_json=as_json)
    path = f"/api/v1/runs/{quote(told.run_id)}"
    sys.stderr.write(f"{told.run_id} was submitted; Ctrl-C stops waiting, not the run\n")
    status = _wait(server, path)
    server.show(f"{path}/result", as_json=as_json)
    return EXIT_CODES.get(status, 1)


def _wait(server: Server, path: str) -> str:
    """Until the run has ended; that whoever conducts has not taken it in yet is no reason to give up."""
    while True:
        try:
            told = json.loads(server.get(path).body)
            if told["ended_at"] is not None:
                return str(told["status"])
        except RemoteError as error:
            if error.status != 404:
                raise
        time.sleep(_LOOK_SECONDS)


def _pack(
    server: Server, file: Path, objects: ObjectStore, narrator: Narrator, *, approved: bool
) -> Submission:
    """Check the pipeline as the server would have it, and put there what it lacks."""
    pipeline, folder = read_pipeline(file), file.resolve().parent
    bundle = bundle_source(folder, objects, exclude=[data.path for data in pipeline.data])
    checked = _check(server, pipeline, folder, file.name, bundle, approved=approved)
    narrator.preflight(checked)
    if not checked.passed:
        failed = [check.title for check in checked.checks if check.outcome == "fail"]
        raise RefusedError(
            f"preflight of {pipeline.pipeline} failed: {', '.join(failed)}", hint="what is said of each above"
        )
    document = objects.put_file(file)
    data = _store_data(pipeline, folder, objects)
    put = [document, str(bundle.digest), *(one.digest for one in bundle.files)]
    if data is not None:
        put += [data.digest, *(one.digest for one in data.files)]
    for digest in dict.fromkeys(str(one) for one in put):
        name = digest.removeprefix("sha256:")
        if not server.has_object(name):
            server.put_object(name, objects.path(digest))
    return Submission(
        pipeline=str(document).removeprefix("sha256:"),
        bundle=str(bundle.digest).removeprefix("sha256:"),
        data=None if data is None else str(data.digest).removeprefix("sha256:"),
        commit=bundle.commit,
        dirty=bundle.dirty,
        approved=approved,
    )


def _check(
    server: Server, pipeline: Pipeline, folder: Path, document: str, bundle: Bundle, *, approved: bool
) -> Preflight:
    text = server.get("/api/v1/policy", accept="application/yaml").body
    policy = parse_document(text, Policy, file="policy.yaml")
    sites = json.loads(server.get("/api/v1/sites").body)["sites"]
    return preflight(
        PreflightAsking(
            pipeline=pipeline,
            policy=policy,
            folder=folder,
            document=document,
            source={file.path for file in bundle.files},
            sites=[str(site["site"]) for site in sites],
            environment=dict.fromkeys(pipeline.secrets, ""),  # the server has them, or refuses
            approved=approved,
        )
    )


def _store_data(pipeline: Pipeline, folder: Path, objects: ObjectStore) -> Tree | None:
    """What the pipeline names as data, as a tree of its own."""
    if not pipeline.data:
        return None
    paths: list[str] = []
    for data in pipeline.data:
        place = folder / data.path
        if place.is_dir():
            paths += [f"{data.path}/{below}" for below in walk_folder(place, lambda _: False)]
        else:
            paths.append(data.path)
    survey = survey_folder(folder, dict.fromkeys(paths), DATA_LIMITS)
    for why in survey.unfit:
        raise RefusedError(f"{folder}: data cannot be sent: {why}", hint="remove it, or name other data")
    return store_survey(folder, survey, objects)


def _hand_over_here(pipeline: Path, *, approved: bool, wait: bool, as_json: bool) -> int:
    """Without a server: into the inbox of this state folder, for whoever conducts it."""
    asking = Asking(
        pipeline=pipeline,
        facility=None,
        policy=None,
        faults=None,
        seed=0,
        approved_by=user() if approved else None,
    )
    session = open_session()
    try:
        with Narrator(session.home) as narrator:
            event = submit(session, asking, narrator, source=SERVED)
        session.tell(event)
        if session.store.lease.current() is None:
            sys.stderr.write("nobody conducts here now; `wattline serve` or `wattline run` takes it up\n")
        told = _told_of(event)
        if not wait:
            return _tell(told, as_json=as_json)
        while True:
            session.refresh()
            run = session.state.runs.get(event.run) if session.state is not None else None
            if run is not None and run.ended_at is not None:
                break
            time.sleep(_LOOK_SECONDS)
        if as_json:
            print_json(describe_run(session, run))
        else:
            show_run(stdout_console(), session, run)
        return EXIT_CODES.get(run.status, 1)
    finally:
        session.close()


def _told_of(event: RunSubmitted) -> Submitted:
    return Submitted(run_id=event.run, project=event.project, jobs=tuple(job.job for job in event.jobs))


def _tell(told: Submitted, *, as_json: bool) -> int:
    if as_json:
        print_json(told)
    else:
        stdout_console().print(plain(told.run_id))
        again = "was submitted before with this key" if told.repeated else "was submitted"
        sys.stderr.write(f"{again}; `wattline status {told.run_id}` shows how it stands\n")
    return 0
