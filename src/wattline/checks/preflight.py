"""Preflight: is everything there that the run needs, before a GPU is touched?"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from wattline.errors import WattlineError
from wattline.live import hash_data
from wattline.spec import Pipeline, Policy
from wattline.spec.nearest import nearest

Outcome = Literal["pass", "warn", "fail"]
_INTERPRETERS = ("python", "python3", "bash", "sh")
_PLAIN_FLAGS = frozenset({"-u", "-B", "-E", "-I", "-O", "-OO", "-s", "-S", "-e", "-x", "-eu", "-ex", "-eux"})
_PLAIN_PATH = re.compile(r"[\w.][\w./-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check found, and what to do about it."""

    check: str
    outcome: Outcome
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    checks: tuple[Check, ...]
    data_sha256: dict[str, str] = field(default_factory=dict)  # by path, as found
    params_sha256: str | None = None

    @property
    def passed(self) -> bool:
        return all(check.outcome != "fail" for check in self.checks)


def preflight(
    pipeline: Pipeline,
    policy: Policy,
    folder: Path,
    *,
    source: Collection[str] | None = None,
    sites: Collection[str] | None = None,
) -> Preflight:
    """Every check, also after one has failed: people mend a list faster than a drip of single faults.

    `source` names the files that travel with the run; a script that Git ignores is there and still missing.
    `sites` are the facility's.
    """
    data_sha256: dict[str, str] = {}
    checks = [*_check_metadata(pipeline, policy), *_check_data(pipeline, folder, data_sha256)]
    if sites is not None:
        checks += _check_replicas(pipeline, sites)
    params_sha256 = None
    if pipeline.params is not None:
        try:
            params_sha256 = hash_data(folder / pipeline.params)
            checks.append(Check(check="params", outcome="pass", message=f"{pipeline.params} is there"))
        except WattlineError as error:
            checks.append(Check(check="params", outcome="fail", message=str(error)))
    checks += _check_entry_points(pipeline, folder, source)
    return Preflight(checks=tuple(checks), data_sha256=data_sha256, params_sha256=params_sha256)


def _check_metadata(pipeline: Pipeline, policy: Policy) -> Iterator[Check]:
    missing = [name for name in policy.required_metadata if not getattr(pipeline, name)]
    if missing:
        message = f"the policy requires {', '.join(missing)}; add it to the pipeline"
        yield Check(check="metadata", outcome="fail", message=message)
    else:
        yield Check(check="metadata", outcome="pass", message=f"{', '.join(policy.required_metadata)} given")


def _check_replicas(pipeline: Pipeline, sites: Collection[str]) -> Iterator[Check]:
    """A checkpoint cannot be copied to a site that there is not."""
    for name, phase in pipeline.phases.items():
        for wanted in phase.checkpoint.replicate_to if phase.checkpoint else ():
            if wanted not in sites:
                close = nearest(wanted, sites)
                meant = f"; did you mean {close}?" if close else f"; it has {', '.join(sorted(sites))}"
                message = f"phase {name}: replicate_to names {wanted}, which is no site here{meant}"
                yield Check(check="replicas", outcome="fail", message=message)


def _check_data(pipeline: Pipeline, folder: Path, data_sha256: dict[str, str]) -> Iterator[Check]:
    for data in pipeline.data:
        name = f"data {data.name}"
        try:
            found = hash_data(folder / data.path)
        except WattlineError as error:
            yield Check(check=name, outcome="fail", message=error.message)
            continue
        data_sha256[data.path] = found
        if data.sha256 is None:
            message = f"{data.path} is not pinned; `wattline data pin {data.path}` writes its hash"
            yield Check(check=name, outcome="warn", message=message)
        elif found != data.sha256.removeprefix("sha256:"):
            message = (
                f"{data.path} has sha256 {found}, the pipeline says {data.sha256}; restore the file, or pin "
                f"the new one with `wattline data pin {data.path}`"
            )
            yield Check(check=name, outcome="fail", message=message)
        else:
            yield Check(check=name, outcome="pass", message=f"sha256 {found[:12]}… as pinned")


def _check_entry_points(pipeline: Pipeline, folder: Path, source: Collection[str] | None) -> Iterator[Check]:
    """Does the script that each phase names exist? Only plain `python script.py` can be told."""
    for name, phase in pipeline.phases.items():
        try:
            words = shlex.split(phase.run)
        except ValueError as error:
            yield Check(
                check=f"entry {name}", outcome="fail", message=f"cannot be read as a command: {error}"
            )
            continue
        script = _script_of(words)
        if script is None:
            continue
        if (folder / script).is_file() and source is not None and posixpath.normpath(script) not in source:
            message = f"{script} is there but not in the source bundle; is it ignored by Git?"
            yield Check(check=f"entry {name}", outcome="fail", message=message)
        elif (folder / script).is_file():
            yield Check(check=f"entry {name}", outcome="pass", message=f"{script} is there")
        else:
            message = f"{phase.run!r} names {script}, which is not in {folder}"
            yield Check(check=f"entry {name}", outcome="fail", message=message)


def _script_of(words: list[str]) -> str | None:
    """The script among a command's words, where it stands as a plain path inside the pipeline's folder.

    Anything else could be right for reasons that only a shell knows: an option that takes the next word, a
    variable, a script that an earlier phase writes.
    """
    if not words or Path(words[0]).name not in _INTERPRETERS:
        return None
    script = next((word for word in words[1:] if word not in _PLAIN_FLAGS), "")
    made_here = PurePosixPath(script).parts[:1] == ("out",)
    return script if _PLAIN_PATH.fullmatch(script) and not made_here else None
