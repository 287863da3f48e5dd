"""What does data look like? Types, ranges, nulls, categories, encoding and counts of a file or a folder.

Everything is bounded: what is too large is sampled, and the profile says of how many bytes; what cannot be
told is an error with its reason. A folder is profiled as one table or one text, by the form most of it has.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from wattline.checks.preflight.data.sampling import MOST_BYTES, Sample, UnknownFormError, shown, take_sample
from wattline.checks.preflight.data.tables import (
    Table,
    read_csv,
    read_json_lines,
    read_parquet,
    sniff_delimiter,
)
from wattline.checks.preflight.data.tallying import read_object
from wattline.errors import UnavailableError
from wattline.spec.data_profile import (
    MOST_CATEGORIES,
    Column,
    DataProfile,
    Encoding,
    Form,
    Lines,
    Sampled,
)

SCHEMA_SUFFIX = ".schema.yaml"

_FORMS: dict[str, Form] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}
_MOST_FILES = 100_000
_SAMPLED_FILES = 16
_MOST_PARQUET_ROWS = 50_000
_UNREADABLE = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
_MOST_UNREADABLE = 0.1  # a share of characters that no text has
# A category is a value that comes again; fewer rows for each are names, or chance.
_ROWS_PER_CATEGORY = 4
_MOST_CATEGORIES_IN_ALL = 4000  # a profile is to be read by people, and a document has at most 1 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The files of a data entry that are looked at."""

    files: tuple[Path, ...]  # evenly spaced ones where there are too many
    count: int
    left_out: int
    chosen_bytes: int
    of_bytes: int  # of all files of this form, on disk


def profile(path: Path, most_bytes: int = MOST_BYTES) -> DataProfile:
    """Look at a file or a folder, at most so many bytes of it.

    Raises UnknownFormError for what is neither a table nor text, UnavailableError for what is broken.
    """
    chosen = _choose(path)
    form = _FORMS.get(_suffix(chosen.files[0]))
    if form == "parquet":
        return _profile_parquet(chosen)
    samples = [take_sample(file, most_bytes // len(chosen.files)) for file in chosen.files]
    form = form or _guess(samples[0])
    if form == "text":
        return _profile_text(chosen, samples)
    return _profile_table(chosen, samples, form)


def worth_recording(found: DataProfile) -> DataProfile:
    """Without categories that are only what few rows happened to say."""
    most = min(MOST_CATEGORIES, _MOST_CATEGORIES_IN_ALL // max(1, len(found.columns)))

    def trimmed(column: Column) -> Column:
        present = found.rows * (1 - column.nulls)
        few = column.categories is not None and len(column.categories) <= min(
            most, present / _ROWS_PER_CATEGORY
        )
        return column if few else column.model_copy(update={"categories": None})

    return found.model_copy(update={"columns": tuple(map(trimmed, found.columns))})


def _choose(path: Path) -> _Chosen:
    if path.is_file():
        size_bytes = path.stat().st_size
        return _Chosen(files=(path,), count=1, left_out=0, chosen_bytes=size_bytes, of_bytes=size_bytes)
    if not path.is_dir():
        raise UnavailableError(f"{shown(path)} is neither a file nor a folder")
    groups: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for file in _files_below(path):
        groups[_suffix(file)].append((file, file.stat().st_size))
    if not groups:
        raise UnavailableError(f"{shown(path)} holds no file")
    suffix = max(groups, key=lambda suffix: (_rank(suffix), sum(size for _, size in groups[suffix]), suffix))
    group = sorted(groups[suffix])
    step = max(1, len(group) / _SAMPLED_FILES)
    taken = [group[int(number * step)] for number in range(min(len(group), _SAMPLED_FILES))]
    return _Chosen(
        files=tuple(file for file, _ in taken),
        count=len(group),
        left_out=sum(map(len, groups.values())) - len(group),
        chosen_bytes=sum(size for _, size in taken),
        of_bytes=sum(size for _, size in group),
    )


def _rank(suffix: str) -> int:
    """Tables before text before what only its content can tell."""
    form = _FORMS.get(suffix)
    return 0 if form is None else 1 if form == "text" else 2


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for inside, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files = (Path(inside) / name for name in names if not name.startswith("."))
        found += [file for file in files if file.is_file() and not file.name.endswith(SCHEMA_SUFFIX)]
        if len(found) > _MOST_FILES:
            raise UnavailableError(f"{shown(folder)} holds more than {_MOST_FILES:,} files")
    return found


def _suffix(file: Path) -> str:
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _guess(sample: Sample) -> Form:
    first = next((line for line in sample.chunks[0].split("\n", 100)[:100] if line.strip()), "")
    return "json lines" if first.lstrip().startswith("{") and read_object(first) is not None else "text"


def _profile_table(chosen: _Chosen, samples: list[Sample], form: Form) -> DataProfile:
    table = Table(typed=form == "json lines")
    seen_bytes = 0
    for file, sample in zip(chosen.files, samples, strict=True):
        if form == "json lines":
            seen_bytes += read_json_lines(sample, table, shown(file))
        else:
            delimiter = "\t" if _suffix(file) in (".tsv", ".tab") else sniff_delimiter(sample.chunks[0])
            seen_bytes += read_csv(sample, table, shown(file), delimiter)
    rows = table.rows + table.malformed
    if table.malformed > table.rows:
        name = shown(chosen.files[0])
        expected = "a JSON object" if form == "json lines" else f"of {len(table.tallies)} cells"
        raise UnavailableError(
            f"{name} is not {form}: {table.malformed:,} of {rows:,} rows are not {expected}",
            hint="the message names the form by the file's name; rename it if it is another",
        )
    sampled = _sampled(chosen, samples, seen_bytes)
    return DataProfile(
        form=form,
        encoding=_encoding(samples),
        delimiter=table.delimiter,
        header=table.header,
        files=chosen.count,
        left_out=chosen.left_out,
        rows=_scaled(rows, seen_bytes, sampled),
        malformed=round(table.malformed / rows, 4) if rows else 0.0,
        sampled=sampled,
        columns=table.columns(),
    )


def _profile_text(chosen: _Chosen, samples: list[Sample]) -> DataProfile:
    lines = [
        line.removesuffix("\r")
        for sample in samples
        for chunk in sample.chunks
        for line in chunk.removesuffix("\n").split("\n")
        if chunk
    ]
    characters = sum(map(len, lines))
    unreadable = sum(len(_UNREADABLE.findall(line)) for line in lines)
    if unreadable > _MOST_UNREADABLE * characters:
        raise UnknownFormError(f"{shown(chosen.files[0])} is neither text nor a table of a form known here")
    seen_bytes = sum(sum(sample.chunk_bytes) for sample in samples)
    sampled = _sampled(chosen, samples, seen_bytes)
    return DataProfile(
        form="text",
        encoding=_encoding(samples),
        files=chosen.count,
        left_out=chosen.left_out,
        rows=_scaled(len(lines), seen_bytes, sampled),
        sampled=sampled,
        lines=Lines(
            longest=max(map(len, lines), default=0),
            mean=round(characters / len(lines), 1) if lines else 0.0,
            blank=round(sum(not line.strip() for line in lines) / len(lines), 4) if lines else 0.0,
            unreadable=_scaled(unreadable, seen_bytes, sampled),
        ),
    )


def _profile_parquet(chosen: _Chosen) -> DataProfile:
    table, rows = Table(typed=True), 0
    most_rows = _MOST_PARQUET_ROWS // len(chosen.files)
    for number, file in enumerate(chosen.files, 1):
        rows += read_parquet(file, table, most_rows * number)
    share = (table.rows / rows if rows else 1.0) * chosen.chosen_bytes / max(1, chosen.of_bytes)
    sampled = None if share >= 1 else Sampled(bytes=round(share * chosen.of_bytes), of=chosen.of_bytes)
    return DataProfile(
        form="parquet",
        files=chosen.count,
        left_out=chosen.left_out,
        rows=round(rows * chosen.of_bytes / max(1, chosen.chosen_bytes)),
        sampled=sampled,
        columns=table.columns(),
    )


def _encoding(samples: list[Sample]) -> Encoding:
    """One word for many files: the worst of them, since a reader has to read them all."""
    found = {sample.encoding for sample in samples if sample.of_bytes} or {"utf-8"}
    order: tuple[Encoding, ...] = ("not utf-8", "utf-16", "utf-8 with BOM", "utf-8")
    return next(encoding for encoding in order if encoding in found)


def _sampled(chosen: _Chosen, samples: list[Sample], seen_bytes: int) -> Sampled | None:
    if len(chosen.files) == chosen.count and all(sample.whole for sample in samples):
        return None
    unpacked_bytes = sum(sample.of_bytes for sample in samples)
    of_bytes = round(unpacked_bytes * chosen.of_bytes / max(1, chosen.chosen_bytes))
    return Sampled(bytes=seen_bytes, of=max(of_bytes, seen_bytes))


def _scaled(count: int, seen_bytes: int, sampled: Sampled | None) -> int:
    return count if sampled is None else round(count * sampled.of / max(1, seen_bytes))
