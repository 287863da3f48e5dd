"""What did a phase leave behind? Its outputs, captured as they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wattline.errors import RefusedError
from wattline.release.index import Tree
from wattline.release.tree import (
    Limits,
    materialise_tree,
    read_tree,
    store_survey,
    survey_folder,
    walk_folder,
)
from wattline.store import ObjectStore

LIMITS = Limits(
    files=100_000,
    file_bytes=64 * 2**30,
    total_bytes=64 * 2**30,
    hint="write fewer or smaller results, or remove intermediate ones before the phase ends",
)

read_outputs = read_tree
materialise_outputs = materialise_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs(Tree):
    """A phase's results; `left_out` says what could not be kept, and why."""

    left_out: tuple[str, ...]


def capture_outputs(folder: Path, objects: ObjectStore) -> Outputs:
    """Store all results of a phase. One odd file is no reason to lose the rest of a day's training."""
    if folder.is_symlink():
        raise RefusedError(
            f"{folder} has become a link, so what it leads to is not taken for results",
            hint="write into the folder that the phase was given",
        )
    paths = walk_folder(folder, lambda _: False) if folder.exists() else ()
    survey = survey_folder(folder, paths, LIMITS)
    tree = store_survey(folder, survey, objects)
    return Outputs(
        digest=tree.digest,
        files=tree.files,
        links=tree.links,
        left_out=tuple(sorted(survey.unfit)),
    )
