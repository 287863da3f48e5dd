"""Base: what is a change based on?

The base is a commit, estimated as the work tree is, or a report that was kept. Nothing is checked out: the
pipeline's small files at that commit are written to a folder that goes away. Data is not copied.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wattline.checks.git import Blob, Git
from wattline.checks.reading import read_report
from wattline.checks.report import Base, Estimate
from wattline.errors import DocumentError, UnavailableError, UsageError
from wattline.release.worktree import read_worktree
from wattline.spec import Pipeline, parse_document

_REF = re.compile(r"(?!-)[^\x00-\x20\x7f:?*\[\\]{1,250}")
_LARGEST_FILE_BYTES, _LARGEST_TREE_BYTES, _MOST_FILES = 256 << 10, 32 << 20, 2000
_LARGEST_DOCUMENT_BYTES = 1 << 20
_MOST_CANDIDATES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBase:
    """What a change is based on: a pipeline in `document`, as long as it is read, or an `estimate`."""

    name: str
    commit: str | None = None
    pipeline: str | None = None  # its file from the root; None: it has none there
    document: Path | None = None
    estimate: Estimate | None = None
    say: str = ""

    def described(self, estimate: Estimate | None) -> Base:
        """For the report, with what the base was estimated at."""
        return Base(
            name=self.name, commit=self.commit, pipeline=self.pipeline, estimate=estimate, say=self.say
        )


@contextmanager
def read_base(ref_or_file: str, folder: Path, pipeline_file: str) -> Iterator[FoundBase]:
    """The base of the pipeline `pipeline_file` in `folder`: a report where it is a file, else a commit.

    Raises UnavailableError or UsageError, with what to do, where neither is there.
    """
    if _is_file(ref_or_file):
        report = read_report(Path(ref_or_file))
        yield FoundBase(
            name=ref_or_file,
            commit=report.commit,
            pipeline=report.file,
            estimate=report.estimate,
            say=f"compared with the report of {report.at}",
        )
        return
    git = Git(folder)
    prefix = git.prefix()
    if prefix is None:
        raise UnavailableError(
            f"--base {ref_or_file[:100]!r} is no file, and {folder} is in no Git repository",
            hint="name a report that `wattline check --output json` wrote, or check inside a clone",
        )
    commit, say = _find_commit(git, ref_or_file)
    path = prefix + pipeline_file
    found, renamed = _find_pipeline(git, commit, path, folder / pipeline_file)
    if found is None:
        new = "it is added" if (folder / pipeline_file).is_file() else "and there is none now either"
        yield FoundBase(
            name=ref_or_file, commit=commit, say=_joined(say, f"{ref_or_file} has no {path}: {new}")
        )
        return
    if not (folder / pipeline_file).is_file():
        renamed = f"{path} is removed"
    with tempfile.TemporaryDirectory(prefix="wattline-base-") as temporary:
        document = _write_tree(git, commit, found, Path(temporary))
        yield FoundBase(
            name=ref_or_file, commit=commit, pipeline=found.path, document=document, say=_joined(say, renamed)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a pipeline stands in its repository, for the head of a report."""

    file: str  # from the root; as it was given outside of a repository
    commit: str | None
    dirty: bool  # something in the pipeline's folder is in no commit


def read_standing(folder: Path, pipeline_file: str) -> Standing:
    tree, prefix = read_worktree(folder), Git(folder).prefix()
    return Standing(
        file=(prefix or "") + pipeline_file,
        commit=tree.commit if tree else None,
        dirty=bool(tree and (tree.changed or tree.untracked)),
    )


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False  # too long, or with a zero in it: no file has that name


def _joined(*said: str) -> str:
    return "; ".join(each for each in said if each)


def _find_commit(git: Git, ref: str) -> tuple[str, str]:
    """Where the change left that ref, as what others merged since is not its own; and what to say."""
    if _REF.fullmatch(ref) is None:
        raise UsageError(f"--base {ref[:100]!r} is neither a file nor the name of a commit or branch")
    commit = git.commit(ref)
    if commit is None and git.is_shallow():
        raise UnavailableError(
            f"--base {ref}: this clone is shallow, and no such commit is in it",
            hint=f"`fetch-depth: 0` in actions/checkout, `GIT_DEPTH: 0` in GitLab, `git fetch origin {ref}`",
        )
    if commit is None:
        raise UsageError(
            f"--base {ref}: no file, commit, branch or tag here has this name",
            hint=f"`git fetch origin {ref}` brings a branch of the remote",
        )
    left = git.merge_base(commit)
    if left is None:
        shallow = " in this shallow clone" if git.is_shallow() else ""
        return commit, f"no common history with {ref}{shallow}, so compared with its tip"
    return left, "" if left == commit else f"compared with {left[:10]}, where this left {ref}"


def _find_pipeline(git: Git, commit: str, path: str, here: Path) -> tuple[Blob | None, str]:
    """The pipeline's file at a commit: at its path, where Git saw it renamed, or where its name stands."""
    if there := _one(git, commit, path):
        return there, ""
    former = git.renamed_from(commit, path)
    if former is not None and (there := _one(git, commit, former)):
        return there, f"{former} is now {path}"
    name = _name_of(here.read_bytes(), str(here)) if here.is_file() else None
    candidates = git.naming_pipelines(commit)[:_MOST_CANDIDATES] if name is not None else []
    root = here.parents[len(PurePosixPath(path).parts) - 1]
    # A file that is still there was copied, not renamed.
    gone = [each for each in candidates if not (root / each).is_file()]
    blobs = [blob for each in gone if (blob := _one(git, commit, each))]
    for blob, raw in git.read([blob for blob in blobs if blob.size_bytes <= _LARGEST_DOCUMENT_BYTES]):
        if _name_of(raw, blob.path) == name:
            return blob, f"pipeline {name} moved from {blob.path} to {path}"
    return None, ""


def _one(git: Git, commit: str, path: str) -> Blob | None:
    return next((blob for blob in git.blobs(commit, path) if blob.path == path), None)


def _name_of(raw: bytes, file: str) -> str | None:
    """A pipeline's own name; None where the document is wrong."""
    try:
        return parse_document(raw[: _LARGEST_DOCUMENT_BYTES + 1], Pipeline, file=file).pipeline
    except DocumentError:
        return None


def _write_tree(git: Git, commit: str, document: Blob, temporary: Path) -> Path:
    """The pipeline's document and the small files beside it, without its data."""
    if document.size_bytes > _LARGEST_DOCUMENT_BYTES:
        raise UnavailableError(f"{document.path} at {commit[:10]}: a document has at most 1 MiB")
    under = PurePosixPath(document.path).parent
    raw = next(raw for _, raw in git.read([document]))
    data = _data_of(raw, document.path)
    chosen, room_bytes = [document], _LARGEST_TREE_BYTES
    for blob in git.blobs(commit, "" if under == PurePosixPath() else f"{under}/"):
        beside = PurePosixPath(blob.path).relative_to(under)
        is_data = any(beside == path or path in beside.parents for path in data)
        room_bytes -= blob.size_bytes if blob.size_bytes <= _LARGEST_FILE_BYTES else 0
        if blob.size_bytes > _LARGEST_FILE_BYTES or is_data or blob.path == document.path:
            continue
        if room_bytes < 0 or len(chosen) >= _MOST_FILES:
            break
        chosen.append(blob)
    for blob, content in git.read(chosen):
        target = temporary / PurePosixPath(blob.path).relative_to(under)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return temporary / PurePosixPath(document.path).name


def _data_of(raw: bytes, file: str) -> list[PurePosixPath]:
    try:
        pipeline = parse_document(raw, Pipeline, file=file)
    except DocumentError:
        return []  # whoever estimates it will say what is wrong
    return [PurePosixPath(data.path) for data in pipeline.data]
