"""What does a template become in a folder? Its files, with the folder's name and the user's in them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from wattline.cli.pinning import scalar
from wattline.cli.starting import slug, user_name
from wattline.errors import UnavailableError, UsageError
from wattline.spec import Pipeline, Policy, parse_document
from wattline.spec.shipped import find_template, shipped_workflows

PIPELINE, POLICY, REQUIREMENTS = "wattline.yaml", "policy.yaml", "requirements.txt"
_EVERY = "shared"  # beside the templates: files that each of them has
_WORKFLOWS = ".github/workflows"
# A template has a policy of its own beside the pipeline.
_NO_POLICY = b"          pipeline: wattline.yaml\n"
_WITH_POLICY = _NO_POLICY + b"          policy: policy.yaml\n"
_MODEL, _OWNER = "your-model", "your-name"  # as a template's documents say them; each is a valid name
_LEFTOVERS = frozenset({"out", "checkpoints", "__pycache__"})  # of a template that was run where it lies


def template_files(name: str, folder: Path, *, with_ci: bool) -> dict[str, bytes]:
    """Every file of a template by its path; the documents among them are shown to read back."""
    source = find_template(name)
    names = {_MODEL: slug(folder.resolve().name, "model"), _OWNER: slug(user_name(), "me")}
    try:
        files = {
            path.relative_to(origin).as_posix(): _personal(path, names)
            for origin in (source.parent / _EVERY, source)
            for path in sorted(origin.rglob("*"))
            if path.is_file() and _LEFTOVERS.isdisjoint(path.relative_to(origin).parts)
        }
    except OSError as error:
        raise UnavailableError(
            f"template {name}: cannot be read: {error.strerror or error}", hint="install Wattline again"
        ) from error
    files[REQUIREMENTS] = _pinned(files[REQUIREMENTS])
    parse_document(files[PIPELINE], Pipeline, file=PIPELINE)
    parse_document(files[POLICY], Policy, file=POLICY)
    if with_ci:
        for workflow, path in shipped_workflows().items():
            files[f"{_WORKFLOWS}/{workflow}"] = path.read_bytes().replace(_NO_POLICY, _WITH_POLICY)
    return files


def template_purpose(source: Path) -> str:
    """What a template is for: the comment that its pipeline begins with."""
    first, *_ = (source / PIPELINE).read_text(encoding="utf-8").splitlines()
    return first.removeprefix("#").strip()


def lay_files(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Put all of them in place or none: what is in the way is named before anything is written.

    All is written beside its place first, so that a full disk leaves nothing half done.
    """
    _require_free(folder, files, force=force)
    try:
        draft = Path(tempfile.mkdtemp(dir=folder, prefix=".wattline-init-"))
        try:
            for path, data in files.items():
                (draft / path).parent.mkdir(parents=True, exist_ok=True)
                with (draft / path).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            for path in files:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (draft / path).replace(folder / path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise UnavailableError(
            f"{folder.resolve()}: cannot be written: {error.strerror or error}",
            hint="check that this user may write there, and that the disk has room",
        ) from error


def _require_free(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Also with `force` only plain files are written over: a link may lead to anybody's."""
    blocked = sorted({part for path in files for part in _blocking(folder, path)})
    if blocked:
        raise UsageError(
            f"{folder.resolve()}: {_row(blocked)} is in the way and no plain file or folder",
            hint="move it away, or begin in an empty folder",
        )
    there = sorted(path for path in files if (folder / path).exists())
    if there and not force:
        raise UsageError(
            f"{folder.resolve()} has {_row(there)} already",
            hint="begin in an empty folder, or --force writes over them",
        )


def _blocking(folder: Path, path: str) -> list[str]:
    """Where a file or one of its folders should be, and something else is."""
    places = [PurePosixPath(path), *PurePosixPath(path).parents][:-1]
    here = folder / path
    wrong = [str(place) for place in places[1:] if _is_other(folder / place, (folder / place).is_dir())]
    return wrong + ([path] if _is_other(here, here.is_file()) else [])


def _is_other(place: Path, is_right: bool) -> bool:
    return place.is_symlink() or (place.exists() and not is_right)


def _row(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _personal(path: Path, names: Mapping[str, str]) -> bytes:
    """Documents and words carry names; code and data are the same for everybody."""
    data = path.read_bytes()
    is_yaml = path.suffix in (".yaml", ".yml")
    if is_yaml or path.suffix == ".md":
        for said, name in names.items():
            data = data.replace(said.encode(), (scalar(name) if is_yaml else name).encode())
    return data


def _pinned(names: bytes) -> bytes:
    """What a template needs, at the versions that are here: it was tried with these."""
    lines = [line for line in names.decode().splitlines() if not line.startswith("#")]
    return "".join(f"{name}=={version(name)}\n" for name in lines).encode()
