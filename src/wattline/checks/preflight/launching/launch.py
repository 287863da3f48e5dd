"""Do the numbers of a phase's launch fit each other, and the GPUs?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.environment.released import GPUS
from wattline.checks.preflight.launching.memory import estimate_memory
from wattline.spec.pipeline import Phase
from wattline.spec.preparation import Launch

_TIGHT = 0.9  # of a GPU's memory: what is not counted needs the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launched:
    """One phase and the ranks it has."""

    document: str
    name: str
    phase: Phase
    launch: Launch
    processes: int

    @property
    def data_parallel(self) -> int:
        return max(1, self.processes // (self.launch.tensor_parallel * self.launch.pipeline_parallel))

    def fail(self, check: str, message: str, fix: str) -> Check:
        return Check(
            check=f"launch.{check}",
            subject=self.name,
            outcome="fail",
            message=message,
            fix=fix,
            file=self.document,
        )

    def passes(self, check: str, message: str) -> Check:
        return Check(check=f"launch.{check}", subject=self.name, outcome="pass", message=message)

    def skip(self, check: str, message: str) -> Check:
        return Check(check=f"launch.{check}", subject=self.name, outcome="skip", message=message)


def check_launch(asking: Asking) -> Iterator[Check]:
    for name, phase in asking.pipeline.phases.items():
        launch = phase.launch
        if launch is None:
            continue
        launched = _Launched(
            document=asking.document,
            name=name,
            phase=phase,
            launch=launch,
            processes=launch.processes or phase.resources.gpus or 1,
        )
        yield _check_processes(launched)
        yield from _check_parallel(launched)
        yield _check_batch(launched)
        yield _check_memory(launched, asking)


def _check_processes(launched: _Launched) -> Check:
    gpus = launched.phase.resources.gpus
    if not gpus:
        return launched.skip("processes", "the phase asks for no GPU")
    if launched.processes != gpus:
        return launched.fail(
            "processes",
            f"{launched.processes} processes are launched on {gpus} GPUs",
            f"launch one for each: processes: {gpus}, or resources.gpus: {launched.processes}",
        )
    return launched.passes("processes", f"{gpus} processes on {gpus} GPUs")


def _check_parallel(launched: _Launched) -> Iterator[Check]:
    launch = launched.launch
    tensor, pipeline = launch.tensor_parallel, launch.pipeline_parallel
    faults = []
    if launched.processes % (tensor * pipeline):
        faults.append(
            (
                f"{launched.processes} processes are no multiple of tensor {tensor} × pipeline {pipeline}",
                f"launch a multiple of {tensor * pipeline} processes",
            )
        )
    for what, count, by, degree in (
        ("layers", launch.layers, "pipeline_parallel", pipeline),
        ("heads", launch.heads, "tensor_parallel", tensor),
        ("hidden", launch.hidden, "heads", launch.heads or 1),
    ):
        if count is not None and count % degree:
            message = f"{what} is {count}, which {by} {degree} does not divide"
            faults.append((message, f"make {what} a multiple of {degree}, or {by} a divisor of {count}"))
    for message, fix in faults:
        yield launched.fail("parallel", message, fix)
    if not faults:
        split = f"{tensor} (tensor) × {pipeline} (pipeline) × {launched.data_parallel} (data)"
        yield launched.passes("parallel", f"{launched.processes} processes as {split}")


def _check_batch(launched: _Launched) -> Check:
    batch, micro, ranks = launched.launch.global_batch, launched.launch.micro_batch, launched.data_parallel
    if batch is None:
        return launched.skip("batch", "global_batch is not said")
    each = (micro or 1) * ranks
    if batch % each:
        by = f"micro_batch {micro} × {ranks} data-parallel ranks" if micro else f"{ranks} data-parallel ranks"
        nearest = max(each, round(batch / each) * each)
        return launched.fail(
            "batch",
            f"global_batch {batch} is no multiple of {each} ({by})",
            f"set global_batch to a multiple of {each}, such as {nearest}",
        )
    steps = f", {batch // each} micro-batches on each rank" if micro else ""
    return launched.passes("batch", f"global_batch {batch} over {ranks} data-parallel ranks{steps}")


def _check_memory(launched: _Launched, asking: Asking) -> Check:
    estimate = estimate_memory(launched.launch, data_parallel=launched.data_parallel)
    if estimate is None:
        return launched.skip("memory", "parameters is not said")
    if not launched.phase.resources.gpus:
        return launched.skip("memory", "the phase asks for no GPU")
    named = launched.phase.resources.gpu
    memory_gib = {model: GPUS[model].memory_gib for model in named or asking.devices if model in GPUS}
    if not memory_gib:
        unknown = ", ".join(named or asking.devices)
        return launched.skip("memory", f"the memory of {unknown} is not in the table")
    # Named: the placement may choose any of them. Not named: it can be told to choose the largest.
    model = (min if named else max)(memory_gib, key=lambda each: memory_gib[each])
    share = estimate.total_gib / memory_gib[model]
    message = f"{estimate}, {share:.0%} of the {memory_gib[model]:g} GiB of one {model}"
    if share <= _TIGHT:
        return launched.passes("memory", message)
    return Check(
        check="launch.memory",
        subject=launched.name,
        outcome="fail" if share > 1 else "warn",
        message=message,
        fix=estimate.advice(launched.launch, data_parallel=launched.data_parallel),
        file=asking.document,
    )
