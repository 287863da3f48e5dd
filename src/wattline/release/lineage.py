"""Is everything a release rests on still what it was?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.reading import open_checkpoint, verify_tensors
from wattline.checkpoint.repository import checkpoint_name
from wattline.checkpoint.stores import LocalStore, MissingError
from wattline.errors import UnavailableError
from wattline.release.canonical import sha256_hex
from wattline.release.manifest import gates_report, metrics_report
from wattline.release.reading import hash_file
from wattline.release.statement import Descriptor, RunDetails, Statement, load_manifest
from wattline.release.tree import read_tree
from wattline.spec.quantities import check_relative_path
from wattline.store import ObjectStore
from wattline.units import format_bytes

LinkOutcome = Literal["verified", "missing", "altered", "not kept"]
JournalCheck = Callable[[int, int, str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One thing the release rests on. `not kept`: it is not here by design, so only its hash remains."""

    kind: str
    name: str
    digest: str
    outcome: LinkOutcome
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The manifest first, then what it names in the order a run uses it."""

    links: tuple[Link, ...]

    @property
    def intact(self) -> bool:
        return all(link.outcome in {"verified", "not kept"} for link in self.links)


def trace_lineage(
    manifest_digest: str,
    objects: ObjectStore,
    *,
    folder: Path | None = None,
    checkpoints: Path | None = None,
    journal_check: JournalCheck | None = None,
) -> Lineage:
    """Read again every byte whose hash the manifest gives.

    `folder` is the pipeline's, where its data lies; `checkpoints` is the repository of its checkpoints;
    `journal_check` takes the first and last seq and the head's hash, and says what is wrong, or None.
    """
    tracer = _Tracer(objects, folder, checkpoints, journal_check)
    outcome, note = tracer.check_object(manifest_digest)
    manifest = Link(kind="manifest", name="manifest", digest=manifest_digest, outcome=outcome, note=note)
    if outcome != "verified":
        return Lineage(links=(manifest,))
    try:
        statement = load_manifest(manifest_digest, objects)
    except UnavailableError as error:
        unread = Link(
            kind="manifest", name="manifest", digest=manifest_digest, outcome="altered", note=error.message
        )
        return Lineage(links=(unread,))
    return Lineage(links=(manifest, *tracer.trace(statement)))


class _Tracer:
    """Checks links; bytes that several links share are read once."""

    def __init__(
        self,
        objects: ObjectStore,
        folder: Path | None,
        checkpoints: Path | None,
        journal_check: JournalCheck | None,
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._checkpoints = checkpoints
        self._journal_check = journal_check
        self._seen: dict[str, tuple[LinkOutcome, str]] = {}

    def trace(self, statement: Statement) -> Iterator[Link]:
        definition = statement.predicate.build_definition
        asked, brought = definition.external_parameters, definition.internal_parameters
        yield self._kept("pipeline", asked.pipeline)
        if asked.params is not None:
            yield self._kept("params", asked.params)
        yield self._kept("policy", brought.policy)
        yield self._kept("facility", brought.facility)
        yield from self._decisions(statement)
        for dependency in definition.resolved_dependencies:
            yield from self._dependency(dependency)
        details = statement.predicate.run_details
        for byproduct in details.byproducts:
            yield from self._byproduct(byproduct, details)
        for subject in statement.subject:
            yield self._object("artifact", subject.name, subject.digest.sha256)

    def check_object(self, digest: str) -> tuple[LinkOutcome, str]:
        if digest not in self._seen:
            self._seen[digest] = self._read_object(digest)
        return self._seen[digest]

    def _read_object(self, digest: str) -> tuple[LinkOutcome, str]:
        if not self._objects.path(digest).exists():
            return "missing", "it is not among the objects"
        try:
            self._objects.verify(digest)
        except UnavailableError as error:
            return "altered", error.message
        return "verified", ""

    def _object(self, kind: str, name: str, sha256: str) -> Link:
        outcome, note = self.check_object(f"sha256:{sha256}")
        return Link(kind=kind, name=name, digest=f"sha256:{sha256}", outcome=outcome, note=note)

    def _kept(self, kind: str, descriptor: Descriptor) -> Link:
        if descriptor.digest.sha256 is None:
            return Link(
                kind=kind,
                name=descriptor.name,
                digest="",
                outcome="missing",
                note="the manifest gives no SHA-256 for it",
            )
        return self._object(kind, descriptor.name, descriptor.digest.sha256)

    def _decisions(self, statement: Statement) -> Iterator[Link]:
        decisions = statement.predicate.build_definition.internal_parameters.decisions
        if decisions is None:
            return
        name = f"journal {decisions.first_seq}–{decisions.last_seq}"
        digest = f"sha256:{decisions.head}"
        if self._journal_check is None:
            note = "the journal was not at hand"
            yield Link(kind="decisions", name=name, digest=digest, outcome="not kept", note=note)
            return
        wrong = self._journal_check(decisions.first_seq, decisions.last_seq, decisions.head)
        outcome: LinkOutcome = "verified" if wrong is None else "altered"
        yield Link(kind="decisions", name=name, digest=digest, outcome=outcome, note=wrong or "")

    def _dependency(self, dependency: Descriptor) -> Iterator[Link]:
        if dependency.name == "source":
            yield from self._tree("source", dependency)
        elif dependency.name == "image":
            yield _not_kept("image", dependency, f"it is {dependency.uri}")
        elif dependency.name == "checkpoint":
            yield self._checkpoint(dependency)
        else:
            yield self._data(dependency)

    def _byproduct(self, byproduct: Descriptor, details: RunDetails) -> Iterator[Link]:
        kind = byproduct.name.partition("/")[0]
        if kind == "outputs":
            yield from self._tree(kind, byproduct)
        elif kind == "logs":
            yield self._kept(kind, byproduct)
        else:
            report = gates_report(details.gates) if kind == "gates" else metrics_report(details.metrics)
            same = sha256_hex(report) == byproduct.digest.sha256
            yield _link(kind, byproduct, "verified" if same else "altered", "" if same else "another report")

    def _tree(self, kind: str, descriptor: Descriptor) -> Iterator[Link]:
        """One link for the folder as a whole, and one for each of its files that is not as it was."""
        whole = self._kept(kind, descriptor)
        if whole.outcome != "verified":
            yield whole
            return
        try:
            tree = read_tree(whole.digest, self._objects)
        except UnavailableError as error:
            yield _link(kind, descriptor, "altered", error.message)
            return
        links = [self._object(kind, f"{descriptor.name}/{file.path}", file.sha256) for file in tree.files]
        broken = [link for link in links if link.outcome != "verified"]
        note = f"{len(tree.files)} files, {format_bytes(tree.size_bytes)}"
        if broken:
            yield _link(kind, descriptor, broken[0].outcome, f"{len(broken)} of {note}")
        else:
            yield _link(kind, descriptor, "verified", note)
        yield from broken

    def _data(self, dependency: Descriptor) -> Link:
        if self._folder is None or dependency.uri is None:
            return _not_kept("data", dependency, "the pipeline's folder was not at hand")
        try:
            path = self._folder / check_relative_path(dependency.uri)
        except ValueError as error:
            return _link("data", dependency, "altered", str(error))
        if not path.exists():
            return _not_kept("data", dependency, f"{path} is gone")
        if path.is_dir():
            return _not_kept("data", dependency, f"{path} is a folder")
        try:
            sha256 = hash_file(path)
        except OSError as error:
            return _link("data", dependency, "missing", f"{path} cannot be read: {error.strerror or error}")
        if sha256 != dependency.digest.sha256:
            return _link("data", dependency, "altered", f"{path} has the hash {sha256}")
        return _link("data", dependency, "verified", "")

    def _checkpoint(self, dependency: Descriptor) -> Link:
        step, epoch = (dependency.annotations.get(name) for name in ("step", "epoch"))
        if not isinstance(step, int) or not isinstance(epoch, int):
            return _link("checkpoint", dependency, "missing", "the manifest gives no step and epoch for it")
        if self._checkpoints is None:
            return _not_kept("checkpoint", dependency, "its repository was not at hand")
        try:
            name = checkpoint_name(step, epoch)
            try:
                opened = open_checkpoint(LocalStore(self._checkpoints), name)
            except MissingError:
                return _not_kept("checkpoint", dependency, f"{name} was pruned")
            verify_tensors(opened)
            same = opened.digest == dependency.digest.blake3
        except CheckpointError as error:
            return _link("checkpoint", dependency, "altered", error.message)
        return _link(
            "checkpoint", dependency, "verified" if same else "altered", f"step {step}, epoch {epoch}"
        )


def _link(kind: str, descriptor: Descriptor, outcome: LinkOutcome, note: str) -> Link:
    digests = descriptor.digest
    digest = f"sha256:{digests.sha256}" if digests.sha256 else f"blake3:{digests.blake3}"
    return Link(kind=kind, name=descriptor.name, digest=digest, outcome=outcome, note=note)


def _not_kept(kind: str, descriptor: Descriptor, note: str) -> Link:
    return _link(kind, descriptor, "not kept", note)
