"""What is released, and how is it taken back in one step?

Every release stands complete in its own folder and stays there, so the one before is archived before a new
one becomes current, and going back is moving one link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.release.canonical import encode_canonical
from wattline.release.durable import locked, write_whole
from wattline.release.facts import Artifact
from wattline.release.history import Act, Channel, Move, Release
from wattline.release.index import TreeFile
from wattline.release.manifest import gates_report, metrics_report
from wattline.release.reading import hash_file, read_object
from wattline.release.statement import MOST_MANIFEST_BYTES, Statement, read_manifest
from wattline.release.tree import place_file
from wattline.spec.quantities import check_name
from wattline.state import Ending
from wattline.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the link leads now, and which number it led to before."""

    number: int
    previous: int | None
    manifest: str
    path: Path


class Shelf:
    """Releases by name and channel under one folder."""

    def __init__(self, root: Path, objects: ObjectStore) -> None:
        self._root = root
        self._objects = objects

    def promote(
        self,
        name: str,
        channel: str,
        manifest_digest: str,
        artifacts: Sequence[Artifact],
        *,
        by: str,
        at: float,
        note: str = "",
        approved_by: str | None = None,
    ) -> Placed:
        """Make a run's artifacts the current release. To promote what is current already changes nothing."""
        data = read_object(manifest_digest, self._objects, most_bytes=MOST_MANIFEST_BYTES)
        statement = read_manifest(data)
        act = Act(by=by, at=at, note=note, approved_by=approved_by)
        _check_promotable(name, statement, artifacts, approved_by)
        with self._changing(name, channel) as place:
            here = place.current_number()
            last = None if here is None else place.promotion(here)
            if last is not None and last.manifest == manifest_digest:
                return _placed(place, last, last.previous)
            release = Release(
                name=name,
                channel=channel,
                number=max(place.numbers(), default=0) + 1,
                manifest=manifest_digest,
                previous=here,
                artifacts=tuple(artifacts),
                act=act,
            )
            self._fill(place.staging, release, data)
            return _apply(place, "promote", release, here, act)

    def rollback(
        self, name: str, channel: str, *, by: str, at: float, to: int | None = None, note: str = ""
    ) -> Placed:
        """Go back to what was current before the current release was promoted, or to the release named."""
        act = Act(by=by, at=at, note=note)
        with self._changing(name, channel) as place:
            here = place.current_number()
            if here is None:
                raise RefusedError(f"{name} on {channel} was never released", hint="promote a run first")
            last = place.promotion(here)
            number = to if to is not None else last.previous if last else None
            folders = place.numbers()
            if number is None or number not in folders:
                raise RefusedError(
                    f"{name} on {channel} has no release {number or f'before {here}'} to go back to",
                    hint=f"it has {', '.join(map(str, sorted(folders)))}",
                )
            release = place.read_release(folders[number])
            if number == here:
                return _placed(place, release, release.previous)
            self._mend(place.folder / release.folder, release)
            return _apply(place, "rollback", release, here, act)

    def current(self, name: str, channel: str) -> Release | None:
        """The release that the link leads to."""
        place = self._channel(name, channel)
        with _on_disk(place.folder):
            return place.current()

    def history(self, name: str, channel: str) -> tuple[Move, ...]:
        """Every promotion and rollback that took effect, oldest first."""
        place = self._channel(name, channel)
        if not place.folder.is_dir():
            return ()
        with _on_disk(place.folder), locked(place.folder, shared=True):
            return place.moves()

    def path(self, release: Release) -> Path:
        """The folder of a release; its files are below `artifacts`."""
        return self._channel(release.name, release.channel).folder / release.folder

    def _channel(self, name: str, channel: str) -> Channel:
        for what, value in (("release", name), ("channel", channel)):
            try:
                check_name(value)
            except ValueError as error:
                raise UsageError(f"{what} {value[:80]!r}: {error}") from error
        return Channel(self._root / name / channel)

    @contextmanager
    def _changing(self, name: str, channel: str) -> Iterator[Channel]:
        place = self._channel(name, channel)
        with _on_disk(place.folder):
            place.folder.mkdir(parents=True, exist_ok=True)
            with locked(place.folder):
                place.settle()
                yield place

    def _fill(self, folder: Path, release: Release, manifest: bytes) -> None:
        """Put a release together; nobody sees it until it has its name."""
        details = read_manifest(manifest).predicate.run_details
        (folder / "artifacts").mkdir(parents=True)
        for artifact in release.artifacts:
            place_file(_as_file(artifact), self._objects, folder / "artifacts")
        write_whole(folder / "manifest.json", manifest)
        write_whole(folder / "metrics.json", metrics_report(details.metrics))
        write_whole(folder / "gates.json", gates_report(details.gates))
        write_whole(folder / "release.json", encode_canonical(release))

    def _mend(self, folder: Path, release: Release) -> None:
        """Is an older release still what it was? What was altered comes from the objects again."""
        if f"sha256:{hash_file(folder / 'manifest.json')}" != release.manifest:
            raise UnavailableError(
                f"{folder / 'manifest.json'} is altered", hint="name another release with `to`"
            )
        _check_subjects(read_manifest((folder / "manifest.json").read_bytes()), release.artifacts)
        for artifact in release.artifacts:
            place_file(_as_file(artifact), self._objects, folder / "artifacts")


def _as_file(artifact: Artifact) -> TreeFile:
    return TreeFile(path=artifact.path, sha256=artifact.sha256, size_bytes=artifact.size_bytes)


def _apply(
    place: Channel, kind: Literal["promote", "rollback"], release: Release, previous: int | None, act: Act
) -> Placed:
    place.apply(Move(kind=kind, number=release.number, manifest=release.manifest, previous=previous, act=act))
    return _placed(place, release, previous)


def _placed(place: Channel, release: Release | Move, previous: int | None) -> Placed:
    return Placed(
        number=release.number,
        previous=previous,
        manifest=release.manifest,
        path=place.folder / release.folder,
    )


def _check_promotable(
    name: str, statement: Statement, artifacts: Sequence[Artifact], approved_by: str | None
) -> None:
    asked = statement.predicate.build_definition.external_parameters.release
    if asked is not None and asked.approval == "required" and not approved_by:
        raise RefusedError(f"release {name} needs approval: its pipeline says so", hint="say who approved it")
    for phase in statement.predicate.run_details.phases:
        ending = phase.attempts[-1].outcome if phase.attempts else Ending.NOT_STARTED
        if ending != Ending.SUCCEEDED:
            raise RefusedError(
                f"release {name}: the phase {phase.name} ended as {ending}",
                hint="only a run whose phases all succeeded is released",
            )
    for gate in statement.predicate.run_details.gates:
        if gate.outcome != "pass":
            raise RefusedError(
                f"release {name}: the gate {gate.gate!r} has the outcome {gate.outcome}: {gate.message}",
                hint="only a run that passed all its gates is released",
            )
    if not artifacts:
        raise RefusedError(f"release {name}: the run made no artifacts", hint="name what to release")
    _check_subjects(statement, artifacts)


def _check_subjects(statement: Statement, artifacts: Sequence[Artifact]) -> None:
    subjects = {(one.name, one.digest.sha256, one.annotations.size_bytes) for one in statement.subject}
    for artifact in artifacts:
        if (artifact.path, artifact.sha256, artifact.size_bytes) not in subjects:
            raise RefusedError(
                f"artifact {artifact.path} with sha256 {artifact.sha256[:12]}… is not in the manifest",
                hint="release what the manifest speaks of",
            )


@contextmanager
def _on_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{error.filename or folder}: {error.strerror or error}",
            hint="check that this user may write there, and that the disk has room",
        ) from error
