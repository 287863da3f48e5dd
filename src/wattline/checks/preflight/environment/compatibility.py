"""Would the driver, CUDA, torch, Python and the GPUs work with each other?

By what the pipeline says under `runtime`, and the table in `released.py`. What is not said, or newer than the
table, is skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.environment.dependencies import required_python
from wattline.checks.preflight.environment.released import (
    DRIVER_OF_TOOLKIT,
    GPUS,
    LEAST_DRIVER_OF_MAJOR,
    TORCH,
    Gpu,
    minor,
    version,
)
from wattline.spec.preparation import Runtime


def check_runtime(asking: Asking) -> Iterator[Check]:
    runtime = asking.pipeline.runtime
    if runtime is None:
        if any(phase.resources.gpus for phase in asking.pipeline.phases.values()):
            message = "the pipeline does not say its runtime: python, torch, cuda and driver"
            yield Check(check="runtime.driver", outcome="skip", message=message)
        return
    yield _check_driver(asking, runtime)
    yield _check_torch(asking, runtime)
    yield from _check_python(asking, runtime)
    yield from _check_gpus(asking, runtime)


def _check_driver(asking: Asking, runtime: Runtime) -> Check:
    cuda, driver = runtime.cuda, runtime.driver
    if cuda is None or driver is None:
        missing = "cuda" if cuda is None else "driver"
        return Check(check="runtime.driver", outcome="skip", message=f"runtime.{missing} is not said")
    least = LEAST_DRIVER_OF_MAJOR.get(version(cuda)[0])
    own = DRIVER_OF_TOOLKIT.get(minor(cuda))
    if least is None:
        return Check(check="runtime.driver", outcome="skip", message=f"CUDA {cuda} is not in the table")
    if version(driver) < version(least):
        return Check(
            check="runtime.driver",
            outcome="fail",
            message=f"CUDA {cuda} needs driver {least} or newer, the hosts have {driver}",
            fix=f"have the hosts' driver renewed, or use an image with CUDA {_newest_for(driver)}",
            file=asking.document,
        )
    message = f"driver {driver} runs CUDA {cuda}"
    if own is not None and version(driver) < version(own):
        message += f" by minor-version compatibility; code shipped as PTX would need {own}"
    return Check(check="runtime.driver", outcome="pass", message=message)


def _newest_for(driver: str) -> str:
    fitting = [cuda for cuda, least in DRIVER_OF_TOOLKIT.items() if version(least) <= version(driver)]
    return max(fitting, key=version, default="10 or older")


def _check_torch(asking: Asking, runtime: Runtime) -> Check:
    torch, cuda = runtime.torch, runtime.cuda
    if torch is None or cuda is None:
        missing = "torch" if torch is None else "cuda"
        return Check(check="runtime.torch", outcome="skip", message=f"runtime.{missing} is not said")
    release = TORCH.get(minor(torch))
    if release is None:
        return Check(check="runtime.torch", outcome="skip", message=f"torch {torch} is not in the table")
    built = ", ".join(release.cuda)
    if minor(cuda) in release.cuda:
        message = f"torch {torch} is published for CUDA {minor(cuda)}"
        return Check(check="runtime.torch", outcome="pass", message=message)
    same_major = version(cuda)[0] in {version(each)[0] for each in release.cuda}
    return Check(
        check="runtime.torch",
        # Within a major release it runs, if somebody built it; across majors the libraries have other names.
        outcome="warn" if same_major else "fail",
        message=f"torch {torch} is published for CUDA {built}, not for {minor(cuda)}",
        fix=f"take CUDA {release.cuda[-1]}, or a torch that is published for {minor(cuda)}",
        file=asking.document,
    )


def _check_python(asking: Asking, runtime: Runtime) -> Iterator[Check]:
    python, torch = runtime.python, runtime.torch
    if python is None:
        yield Check(check="runtime.python", outcome="skip", message="runtime.python is not said")
        return
    faults = []
    release = TORCH.get(minor(torch)) if torch else None
    if release and not (
        version(release.first_python) <= version(minor(python)) <= version(release.last_python)
    ):
        pythons = f"{release.first_python} to {release.last_python}"
        faults.append(f"torch {torch} is published for Python {pythons}")
    required = required_python(asking.folder)
    if required is not None and not _allows(required, python):
        faults.append(f"pyproject.toml requires Python {required}")
    for fault in faults:
        yield Check(
            check="runtime.python",
            outcome="fail",
            message=f"{fault}, the image has {python}",
            fix="take an image with a Python that fits, and say it under runtime",
            file=asking.document,
        )
    if not faults:
        yield Check(check="runtime.python", outcome="pass", message=f"Python {python} fits")


def _allows(required: SpecifierSet, python: str) -> bool:
    """Python 3.11 may be any of its patch releases."""
    candidates = [python] if python.count(".") >= 2 else [f"{minor(python)}.{patch}" for patch in (0, 99)]
    return any(required.contains(candidate, prereleases=True) for candidate in candidates)


def _check_gpus(asking: Asking, runtime: Runtime) -> Iterator[Check]:
    for name, phase in asking.pipeline.phases.items():
        if not phase.resources.gpus:
            continue
        if runtime.cuda is None:
            message = "runtime.cuda is not said"
            yield Check(check="runtime.gpu", subject=name, outcome="skip", message=message)
            continue
        named = phase.resources.gpu
        models = named or tuple(sorted(asking.devices))
        known = {model: GPUS[model] for model in models if model in GPUS}
        faults = [fault for model, gpu in known.items() if (fault := _fault(model, gpu, runtime.cuda))]
        if faults:
            yield Check(
                check="runtime.gpu",
                subject=name,
                outcome="fail" if named else "warn",
                message="; ".join(faults),
                fix="use another CUDA, or name under resources.gpu those that it works on",
                file=asking.document,
            )
        elif known:
            message = f"CUDA {runtime.cuda} works on {', '.join(known)}"
            yield Check(check="runtime.gpu", subject=name, outcome="pass", message=message)
        else:
            message = f"{', '.join(models)} is not in the table"
            yield Check(check="runtime.gpu", subject=name, outcome="skip", message=message)


def _fault(model: str, gpu: Gpu, cuda: str) -> str | None:
    if version(minor(cuda)) < version(gpu.first_cuda):
        what = f"needs CUDA {gpu.first_cuda} or newer"
    elif gpu.last_cuda_major is not None and version(cuda)[0] > gpu.last_cuda_major:
        what = f"is supported up to CUDA {gpu.last_cuda_major}"
    else:
        return None
    return f"{model} (compute capability {gpu.capability}) {what}, the image has {cuda}"
