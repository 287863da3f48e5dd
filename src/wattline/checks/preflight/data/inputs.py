"""Are data and parameters there, and are they those that were pinned?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wattline.checks.preflight.asking import Asking, Check
from wattline.errors import WattlineError
from wattline.live import hash_data


@dataclass(frozen=True, slots=True)
class Inputs:
    """Hashes by path, of what is there; what is not has its reason."""

    sha256: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def hash_inputs(asking: Asking) -> Inputs:
    """Everything is read once, here."""
    inputs = Inputs()
    paths = [data.path for data in asking.pipeline.data]
    for path in [*paths, *([asking.pipeline.params] if asking.pipeline.params else [])]:
        try:
            inputs.sha256[path] = hash_data(asking.folder / path)
        except WattlineError as error:
            inputs.missing[path] = error.message
    return inputs


def check_data(asking: Asking, inputs: Inputs) -> Iterator[Check]:
    for data in asking.pipeline.data:
        found = inputs.sha256.get(data.path)
        if found is None:
            yield Check(
                check="data.there",
                subject=data.name,
                outcome="fail",
                message=inputs.missing[data.path],
                fix=f"put it at {data.path}, or take the entry out",
                file=asking.document,
            )
        elif data.sha256 is None:
            yield Check(
                check="data.hash",
                subject=data.name,
                outcome="warn",
                message=f"{data.path} is not pinned",
                fix=f"`wattline data pin {data.path}` writes its hash",
                file=asking.document,
            )
        elif found != data.sha256.removeprefix("sha256:"):
            yield Check(
                check="data.hash",
                subject=data.name,
                outcome="fail",
                message=f"{data.path} has sha256 {found}, the pipeline says {data.sha256}",
                fix=f"restore the file, or pin the new one with `wattline data pin {data.path}`",
                file=data.path,
            )
        else:
            message = f"sha256 {found[:12]}… as pinned"
            yield Check(check="data.hash", subject=data.name, outcome="pass", message=message)


def check_params(asking: Asking, inputs: Inputs) -> Iterator[Check]:
    params = asking.pipeline.params
    if params is None:
        return
    if params in inputs.sha256:
        yield Check(check="params", outcome="pass", message=f"{params} is there")
    else:
        message, fix = inputs.missing[params], f"put it at {params}"
        yield Check(check="params", outcome="fail", message=message, fix=fix, file=asking.document)
