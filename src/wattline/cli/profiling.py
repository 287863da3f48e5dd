"""What did data look like when it was pinned? Its profile, written beside it for people to review."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from wattline.checks.preflight.data.profile import SCHEMA_SUFFIX, profile, worth_recording
from wattline.errors import DocumentError, RefusedError, UsageError, WattlineError
from wattline.plane.writing import write_atomically
from wattline.spec import Pipeline, parse_document
from wattline.spec.data_profile import DataProfile, kept_tolerance, read_profile, write_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A profile that is ready to be written, and where; or why there is none."""

    schema: str | None = None  # from the pipeline's folder
    document: DataProfile | None = None
    text: str = ""
    changed: bool = False
    reason: str | None = None  # why nothing was profiled

    def write(self, folder: Path) -> None:
        if self.schema is not None and self.changed:
            write_atomically(folder / self.schema, self.text.encode())


def record_profile(path: Path, relative: str, pipeline: Pipeline, folder: Path) -> Recording:
    """Look at data; tolerances that people gave an earlier profile stay. Nothing is written yet."""
    try:
        found = worth_recording(profile(path))
    except WattlineError as error:
        return Recording(reason=error.message)
    schema = schema_path(relative, pipeline)
    place = folder / schema
    before = _read_before(place, schema) if place.exists() else None
    document = kept_tolerance(found, before)
    text = write_profile(document, relative)
    if _reads_back(text, schema) != document:
        reason = "its profile cannot be written so that it reads back the same; it has too many names"
        return Recording(reason=reason)
    return Recording(schema=schema, document=document, text=text, changed=document != before)


def schema_path(relative: str, pipeline: Pipeline) -> str:
    """Where the entry says; beside the data unless it says anything: `data/corpus.schema.yaml`."""
    taken = set()
    for entry in pipeline.data:
        if os.path.normpath(entry.path) != relative:
            taken |= {entry.path, entry.schema_}
        elif entry.schema_ is not None:
            return _check_outside(entry.schema_, relative)
    file = Path(relative)
    stem = Path(file.name.removesuffix(".gz")).stem
    short = file.with_name(stem + SCHEMA_SUFFIX).as_posix()
    return short if short not in taken else relative + SCHEMA_SUFFIX


def _check_outside(schema: str, relative: str) -> str:
    if Path(os.path.normpath(schema)).is_relative_to(relative):
        raise UsageError(
            f"the profile {schema} lies inside the data it is of, whose hash would change with it",
            hint=f"name another place, such as {relative}{SCHEMA_SUFFIX}",
        )
    return schema


def _read_before(place: Path, schema: str) -> DataProfile:
    try:
        return read_profile(place)
    except DocumentError as error:
        raise RefusedError(
            f"{schema} is there and is no profile that can be read: {error.problems[0]}",
            hint="mend it, or delete it and pin again; `--no-profile` pins the hash alone",
        ) from error


def _reads_back(text: str, schema: str) -> DataProfile | None:
    try:
        return parse_document(text.encode(), DataProfile, file=schema)
    except DocumentError:
        return None
