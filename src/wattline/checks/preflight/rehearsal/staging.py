"""The stage of a rehearsal: a copy of the source and the data, and what the code is told and tells."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from wattline.checks.preflight.asking import Asking
from wattline.checks.preflight.environment.importing import python_script
from wattline.checks.preflight.files import read_text, source_files
from wattline.checks.preflight.rehearsal.confining import GUARD
from wattline.errors import UnavailableError
from wattline.spec.pipeline import Phase
from wattline.spec.preparation import Rehearsal

_MOST_BYTES = 256 << 20  # of source, and of data; larger data is linked, as a run links it
_MOST_TOLD_BYTES = 4 << 20
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_OFFLINE = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "offline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What `wattline.train` reported, and whom the code would have talked to."""

    is_steered: bool  # it uses wattline.train, so it ends after the steps asked for
    steps: int = 0
    finished: bool = False
    not_finite: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    asking: Asking
    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    def attempt(self, phase: str) -> Path:
        return self.root / "attempts" / phase

    def environment(self, name: str, phase: Phase, rehearsal: Rehearsal) -> dict[str, str]:
        """What the phase's processes get: nothing of this one's environment but what a run gets too."""
        attempt = self.attempt(name)
        home, scratch = attempt / "home", attempt / "tmp"
        for made in (home, scratch):
            made.mkdir(parents=True, exist_ok=True)
        given = self.asking.environment
        named = (*_PASSED_ON, *self.asking.pipeline.secrets)
        environment = {variable: given[variable] for variable in named if variable in given}
        environment |= _ONE_THREAD | _OFFLINE
        environment |= {
            "PATH": f"{Path(sys.executable).parent}:{given.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(home),
            "TMPDIR": str(scratch),
            "PYTHONPATH": str(GUARD),
            "PYTHONUNBUFFERED": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONFAULTHANDLER": "1",
            "WATTLINE_REHEARSE": str(rehearsal.steps),
            "WATTLINE_REHEARSAL_NOTES": str(attempt / "hosts"),
            "WATTLINE_ATTEMPT": str(attempt),
            "WATTLINE_PHASE": name,
            "WATTLINE_OUT": str(self.work / "out"),
            "WATTLINE_CPUS": str(max(1, int(phase.profile.cpus))),
        }
        if phase.checkpoint is not None:
            environment["WATTLINE_CHECKPOINTS"] = str(attempt / "checkpoints")
        if self.asking.pipeline.params is not None:
            environment["WATTLINE_PARAMS"] = str(self._write_params(rehearsal.params))
        elif rehearsal.params:
            raise UnavailableError(
                "rehearse.params changes parameters, and the pipeline has no params file",
                hint="name one under params, or give the rehearsal a run of its own",
            )
        return environment

    def _write_params(self, changes: Mapping[str, Any]) -> Path:
        """The pipeline's parameters with these in their place; `model.width` reaches inside."""
        assert self.asking.pipeline.params is not None
        path = self.work / self.asking.pipeline.params
        if not changes:
            return path
        is_json = path.suffix == ".json"
        if not is_json and path.suffix not in (".yaml", ".yml"):
            raise UnavailableError(
                f"rehearse.params cannot be written into {path.name}",
                hint="parameters are changed in JSON and YAML; or give the rehearsal a run of its own",
            )
        text = read_text(self.asking.folder / self.asking.pipeline.params) or ""
        try:
            document = json.loads(text) if is_json else yaml.safe_load(text)
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            raise UnavailableError(f"{path.name} cannot be read: {error}", hint="correct it") from error
        if not isinstance(document, dict):
            raise UnavailableError(f"{path.name} is no mapping", hint="write names and values")
        for name, value in changes.items():
            _put(document, name, value)
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(document) if is_json else yaml.safe_dump(document), encoding="utf-8")
        return path


def _put(document: dict[str, Any], name: str, value: object) -> None:
    place = document
    if name not in document:
        *parents, name = name.split(".")
        for parent in parents:
            inside = place.get(parent)
            if not isinstance(inside, dict):
                inside = place[parent] = {}
            place = inside
    place[name] = value


def lay_out(asking: Asking, root: Path) -> Stage:
    """Copy what travels with the run, so that nothing of the original is touched."""
    stage = Stage(asking=asking, root=root)
    (stage.work / "out").mkdir(parents=True)
    data = [entry.path for entry in asking.pipeline.data]
    size_bytes = 0
    for path in source_files(asking):
        if any(path == entry or path.startswith(f"{entry}/") for entry in data):
            continue
        original = asking.folder / path
        if not original.is_symlink() and not original.is_file():
            continue
        size_bytes += original.lstat().st_size
        if size_bytes > _MOST_BYTES:
            raise UnavailableError(
                f"the source is larger than {_MOST_BYTES >> 20} MiB",
                hint="name large files under data, or keep them out of the repository",
            )
        _copy(original, stage.work / path)
    for path in data:
        _bring_data(asking.folder / path, stage.work / path)
    return stage


def _copy(original: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(original, copy, follow_symlinks=False)


def _bring_data(original: Path, copy: Path) -> None:
    if not original.exists():
        return  # the check of the data says so
    copy.parent.mkdir(parents=True, exist_ok=True)
    files = [original] if original.is_file() else [each for each in original.rglob("*") if each.is_file()]
    if sum(file.stat().st_size for file in files) > _MOST_BYTES:
        copy.symlink_to(original.resolve())
    elif original.is_file():
        shutil.copy2(original, copy)
    else:
        shutil.copytree(original, copy, symlinks=True, dirs_exist_ok=True)


@dataclass(slots=True)
class _Tally:
    steps: int = 0
    finished: bool = False
    not_finite: set[str] = field(default_factory=set)


def read_told(stage: Stage, phase: str) -> Told:
    attempt = stage.attempt(phase)
    reports = read_text(attempt / "reports.jsonl", _MOST_TOLD_BYTES)
    hosts = read_text(attempt / "hosts", _MOST_TOLD_BYTES) or ""
    tally = _Tally()
    for line in (reports or "").splitlines():
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut off by the end of its writer
        if isinstance(report, dict):
            _count(report, tally)
    script = python_script(stage.asking.pipeline.phases[phase].run, stage.work)
    code = (read_text(script) if script else None) or ""
    return Told(
        is_steered=tally.steps > 0 or ("wattline" in code and ".steps(" in code),
        steps=tally.steps,
        finished=tally.finished,
        not_finite=tuple(sorted(tally.not_finite)),
        hosts=tuple(dict.fromkeys(hosts.split())),
    )


def _count(report: dict[str, Any], tally: _Tally) -> None:
    kind, step, lost = report.get("kind"), report.get("step"), report.get("not_finite")
    if kind == "step" and isinstance(step, int):
        tally.steps = max(tally.steps, step)
    tally.finished |= kind == "finished"
    if isinstance(lost, list):
        tally.not_finite |= {name for name in lost if isinstance(name, str)}
