"""The data commands: pin what a pipeline trains on by its hash and profile, so nobody types them."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console

from wattline.checks.preflight.data.drift import describe
from wattline.cli.pinning import pin
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.profiling import Recording, record_profile
from wattline.errors import UnavailableError, UsageError
from wattline.live import hash_data
from wattline.plane.writing import write_atomically
from wattline.spec import read_pipeline
from wattline.spec.quantities import check_relative_path
from wattline.units import format_bytes

# Below this a hash is there before anybody wonders.
_WORTH_TELLING_BYTES = 64 << 20


def pin_data(path: Path, *, pipeline: Path, with_profile: bool, as_json: bool) -> int:
    document = read_pipeline(pipeline)  # a document that is wrong is told as it is, and left alone
    if not path.exists():
        raise UnavailableError(f"data {plain(str(path))}: there is no such file or folder")
    relative = _relative(path, pipeline)
    was = next((data for data in document.data if os.path.normpath(data.path) == relative), None)
    name = was.name if was is not None else data_name(relative, {data.name for data in document.data})
    sha256 = hash_with_progress(path)
    recording = Recording()
    if with_profile:
        recording = record_profile(path, relative, document, pipeline.parent)
    raw = _read(pipeline)
    edited = pin(raw, relative, name, sha256, file=str(pipeline), schema=recording.schema)
    changed = edited != raw
    recording.write(pipeline.parent)
    if changed:
        write_atomically(pipeline, edited)
        read_pipeline(pipeline)
    if as_json:
        print_json(
            {
                "name": name,
                "path": relative,
                "sha256": sha256,
                "was": was.sha256 if was is not None else None,
                "pipeline": str(pipeline),
                "changed": changed,
                "schema": recording.schema,
                "profile": _summary(recording),
                "not_profiled": recording.reason,
            }
        )
    else:
        console = stdout_console()
        console.print(_sentence(was, name, relative, sha256, pipeline, changed=changed), soft_wrap=True)
        if with_profile:
            console.print(_profile_sentence(recording), soft_wrap=True)
    return 0


def _sentence(was: object, name: str, path: str, sha256: str, pipeline: Path, *, changed: bool) -> str:
    what = "pinned already" if not changed else "pinned" if was is not None else "added and pinned"
    return plain(f"{name} ({path}) {what} in {pipeline}: sha256 {sha256}")


def _profile_sentence(recording: Recording) -> str:
    if recording.document is None:
        return plain(f"not profiled: {recording.reason}")
    what = "profile written to" if recording.changed else "profile as recorded in"
    return plain(f"{what} {recording.schema}: {describe(recording.document)}")


def _summary(recording: Recording) -> dict[str, object] | None:
    found = recording.document
    if found is None:
        return None
    return {
        "form": found.form,
        "files": found.files,
        "rows": found.rows,
        "columns": len(found.columns),
        "sampled": None if found.sampled is None else found.sampled.model_dump(),
        "changed": recording.changed,
    }


def hash_with_progress(path: Path) -> str:
    """What a file or a folder's files hash to; on stderr, a word about it while it takes long."""
    size_bytes = _size_bytes(path)
    console = Console(stderr=True, highlight=False)
    told: AbstractContextManager[object] = nullcontext()
    if size_bytes >= _WORTH_TELLING_BYTES:
        text = f"hashing {plain(str(path))} ({format_bytes(size_bytes)})"
        if console.is_terminal:
            told = console.status(text)
        else:
            console.print(text, soft_wrap=True, markup=False)
    with told:
        return hash_data(path)


def data_name(relative: str, taken: set[str]) -> str:
    """A name for data from its path, unlike the others."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(relative).stem).strip("-")[:56] or "data"
    names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _relative(path: Path, pipeline: Path) -> str:
    """The path as the document writes it: from the document's folder, and inside it."""
    folder = Path(os.path.normpath(pipeline.absolute().parent))
    there = Path(os.path.normpath(path.absolute()))
    if not there.is_relative_to(folder) or there == folder:
        raise UsageError(
            f"data {plain(str(path))} does not lie below the pipeline's folder {folder}",
            hint="move or link it there: a pipeline names its data from its own folder",
        )
    relative = there.relative_to(folder).as_posix()
    try:
        return check_relative_path(relative)
    except ValueError as error:
        raise UsageError(f"data {plain(str(path))}: {error}") from error


def _size_bytes(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror or error}") from error
