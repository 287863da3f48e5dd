"""How does a submission that came over a network become a run, and what may it not ask for?

It names a pipeline document, its source and its data by digest; all of it was put among the objects before.
Nothing is taken on trust: the document is read again here, every file of the trees must be there, data must
be what the document pins, and of the server's environment only what its operator allowed is passed on.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Collection
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live import Home, hash_data
from wattline.release import KeptGoods, describe_source, read_bundle
from wattline.release.bundle import LIMITS as SOURCE_LIMITS
from wattline.release.reading import read_object
from wattline.release.tree import Limits
from wattline.spec import Pipeline, parse_document
from wattline.state import RunSubmitted, requests_of
from wattline.store import ObjectStore

SERVED = "served"  # the process of a run that nobody has to wait for
MOST_PIPELINE_BYTES = 1 << 20
_MOST_NAME = 40  # of the pipeline's in the run's
_REMEMBERED = 1024
DATA_LIMITS = Limits(
    files=100_000,
    file_bytes=4 << 30,
    total_bytes=64 << 30,
    hint="keep it where the server's jobs find it, and read it from there",
)

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pipeline document, its source and its data, as objects that were put before."""

    pipeline: Sha256
    bundle: Sha256
    data: Sha256 | None = None  # a tree that holds every path that the pipeline names under data:
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{7,64}$")] | None = None
    dirty: bool | None = None
    approved: bool = False


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What the client is told at once; the run goes on without it."""

    run_id: str
    project: str
    jobs: tuple[str, ...]
    repeated: bool = False  # this key was used before: nothing new was submitted


class Receiving:
    """Turns submissions into events. May be called from several threads: what it remembers is immutable."""

    def __init__(self, home: Home, objects: ObjectStore, passed_on: Collection[str] = ()) -> None:
        self._home, self._objects = home, objects
        self._passed_on = frozenset(passed_on)
        self._pipeline = lru_cache(maxsize=_REMEMBERED)(self._read_pipeline)
        self._tree = lru_cache(maxsize=_REMEMBERED)(self._check_tree)
        self._data = lru_cache(maxsize=_REMEMBERED)(self._lay_out_data)
        self._seen: OrderedDict[tuple[str, str, str | None], None] = OrderedDict()

    def knows(self, submission: Submission) -> bool:
        """Whether all that it names was looked at before: then receiving it takes no time."""
        return (submission.pipeline, submission.bundle, submission.data) in self._seen

    def project_of(self, submission: Submission) -> str:
        """Who would be charged; asked before anything else is looked at."""
        return self._pipeline(submission.pipeline).project

    def receive(self, submission: Submission, *, actor: str, run: str, after_seq: int) -> RunSubmitted:
        """The event that submits the run; raises where the submission cannot be one."""
        pipeline = self._pipeline(submission.pipeline)
        files = self._tree(submission.bundle, SOURCE_LIMITS)
        refused = [name for name in pipeline.secrets if name not in self._passed_on]
        if refused:
            raise RefusedError(
                f"secrets: {', '.join(refused)}: this server passes {_listed(self._passed_on)} to jobs",
                hint="its operator names what it may pass: wattline serve --pass-secret NAME",
            )
        folder, data_sha256 = self._data(submission.data, submission.pipeline)
        more = {"after_seq": str(after_seq), "request": digest_of(submission)}
        if submission.commit is not None:
            more |= {"commit": submission.commit, "dirty": "true" if submission.dirty else "false"}
        if pipeline.params is not None:
            if pipeline.params not in files:
                raise UsageError(
                    f"params: {pipeline.params} is not in the bundle", hint="add it to the source"
                )
            more["params"] = files[pipeline.params]
        if submission.approved:
            more["approved_by"] = actor
        self._seen[(submission.pipeline, submission.bundle, submission.data)] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return RunSubmitted(
            at=time.time(),
            actor=actor,
            project=pipeline.project,
            source=SERVED,
            run=run,
            pipeline=pipeline.pipeline,
            jobs=requests_of(pipeline, run, approved=submission.approved),
            documents=describe_source(
                f"sha256:{submission.pipeline}", f"sha256:{submission.bundle}", folder, data_sha256, **more
            ),
        )

    def name_run(self, submission: Submission, key: str) -> str:
        """The same for the same key, so that a repeat after a lost answer is the same run."""
        name = self._pipeline(submission.pipeline).pipeline[:_MOST_NAME].rstrip(".-_")
        return f"{name}-{sha256(key.encode()).hexdigest()[:12]}"

    def _read_pipeline(self, digest: str) -> Pipeline:
        text = read_object(f"sha256:{digest}", self._objects, most_bytes=MOST_PIPELINE_BYTES)
        return parse_document(text, Pipeline, file="wattline.yaml")

    def _check_tree(self, digest: str, limits: Limits) -> dict[str, str]:
        """The files of a tree by path; raises where it is too large, or one is not among the objects."""
        tree = read_bundle(f"sha256:{digest}", self._objects)
        largest = max((file.size_bytes for file in tree.files), default=0)
        if (
            len(tree.files) + len(tree.links) > limits.files
            or largest > limits.file_bytes
            or tree.size_bytes > limits.total_bytes
        ):
            raise RefusedError(
                f"tree {digest} holds {len(tree.files)} files of {tree.size_bytes} bytes; allowed are "
                f"{limits.files} of {limits.file_bytes} each and {limits.total_bytes} in all",
                hint=limits.hint,
            )
        missing = [file for file in tree.files if not self._objects.path(file.digest).is_file()]
        if missing:
            raise UnavailableError(
                f"tree {digest} lacks {len(missing)} of its {len(tree.files)} files, {missing[0].path} first",
                hint=f"put them first: PUT /api/v1/objects/{missing[0].sha256}",
            )
        return {file.path: file.sha256 for file in tree.files}

    def _lay_out_data(self, digest: str | None, pipeline: str) -> tuple[Path, dict[str, str]]:
        """Where a run's data lies here, and what it hashes to; laid out once for all who use the same."""
        declared = self._pipeline(pipeline).data
        folder = self._home.root / "data" / (digest or "none")
        if declared and digest is None:
            raise UsageError(
                f"data: {declared[0].path} is named by the pipeline and did not come with it",
                hint="put it as a tree and name it as data, as `wattline submit` does",
            )
        if digest is not None:
            self._tree(digest, DATA_LIMITS)
            KeptGoods(self._objects).unpack(f"sha256:{digest}", folder)
        found = {data.path: hash_data(folder / data.path) for data in declared}
        for data in declared:
            if data.sha256 is not None and found[data.path] != data.sha256:
                raise RefusedError(
                    f"data {data.name}: {data.path} has sha256 {found[data.path]}, pinned is {data.sha256}",
                    hint="pin what is there: wattline data pin",
                )
        return folder, found


def new_key() -> str:
    """For who gave none: then a repeat is a second run."""
    return secrets.token_hex(16)


def digest_of(submission: Submission) -> str:
    return sha256(msgspec.json.encode(submission, order="deterministic")).hexdigest()


def is_same(event_documents: dict[str, str], submission: Submission) -> bool:
    """Whether a run was submitted with just this."""
    return event_documents.get("request") == digest_of(submission)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
