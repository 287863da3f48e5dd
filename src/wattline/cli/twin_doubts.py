"""What of a trace or a series could not be used as it stands? Sentences for people, before a run begins."""

from __future__ import annotations

from collections.abc import Iterator

from wattline.twin.replaying import Material
from wattline.twin.traces import Trace

# What a number counts: Slurm's JSON has jobs and no lines, a journal has records.
_COUNTED = {"slurm": "row", "journal": "record"}


def doubts_about(material: Material) -> list[str]:
    """Nothing is left out or mended unseen."""
    return [*_of_trace(material.trace), *_of_series(material)]


def _of_trace(trace: Trace) -> Iterator[str]:
    if trace.refused_jobs:
        rows = "1 row was" if trace.refused_jobs == 1 else f"{trace.refused_jobs:,} rows were"
        yield f"{rows} not read: {'; '.join(_by_rule(trace))}"
    if trace.unsorted:
        jobs = "1 job stood" if trace.unsorted == 1 else f"{trace.unsorted:,} jobs stood"
        yield f"{jobs} after a later one: all are replayed in the order of arrival"


def _by_rule(trace: Trace) -> Iterator[str]:
    """The commonest first."""
    for rule, count in sorted(trace.refused_by_rule.items(), key=lambda item: (-item[1], item[0])):
        first = next(flawed for flawed in trace.refused if flawed.rule == rule)
        where = f"{_COUNTED.get(trace.kind, 'line')} {first.line}"
        yield f"{count:,} × {rule} (first: {where}, {first.value})"


def _of_series(material: Material) -> Iterator[str]:
    for site, surroundings in material.surroundings.items():
        for source in surroundings.sources:
            if source.filled_hours:
                yield (
                    f"{site}: {source.file} lacks {source.filled_hours:,} hours of the year: "
                    f"each has the last {source.what} before it"
                )
