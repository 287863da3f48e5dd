"""Repositories with one defect in what surrounds their code, in its imports, or in its first step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checks.corpus.making import Defect, change_pipeline, good, rewrite, write

DEFECTS: list[Defect] = []
_Make = Callable[[Path], None]


def _defect(check: str, *, rehearse: bool = False, outcome: str = "fail") -> Callable[[_Make], _Make]:
    def register(make: _Make) -> _Make:
        name = make.__name__.strip("_").replace("_", " ")
        DEFECTS.append(Defect(name, check, make, rehearse, outcome))
        return make

    return register


def _change(kind: str, check: str, name: str, **changes: Any) -> None:
    def make(folder: Path) -> None:
        good(folder, kind)
        change_pipeline(folder, **changes)

    DEFECTS.append(Defect(name, check, make))


def _rewrite(kind: str, check: str, name: str, file: str, old: str, new: str) -> None:
    def make(folder: Path) -> None:
        good(folder, kind)
        rewrite(folder, file, old, new)

    DEFECTS.append(Defect(name, check, make))


def _script(check: str, name: str, code: str, **rehearsal: Any) -> None:
    """A training script of its own, in a good repository around it."""

    def make(folder: Path) -> None:
        good(folder, "loop")
        write(folder, "train.py", inspect.cleandoc(code) + "\n")
        change_pipeline(folder, phases__train__rehearse={"steps": 2, "within": "20s"} | rehearsal)

    DEFECTS.append(Defect(name, check, make, rehearse=bool(rehearsal) or check == "rehearsal"))


# Secrets

_change("image", "secrets", "a secret that nobody has set", secrets=["WANDB_API_KEY", "MISSING_TOKEN"])


@_defect("secrets.written", outcome="warn")
def a_token_in_the_source(folder: Path) -> None:
    good(folder, "loop")
    write(folder, "upload.sh", "export HF_TOKEN=hf" + "_AbCdEfGhIjKlMnOpQrStUvWxYz01234567\n")


@_defect("secrets.written", outcome="warn")
def a_private_key_in_the_source(folder: Path) -> None:
    good(folder, "loop")
    write(folder, "deploy/id", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaA==\n")


# Lock

_rewrite(
    "uv",
    "lock",
    "a dependency that uv.lock lacks",
    "pyproject.toml",
    '"wattline",',
    '"wattline", "rich>=13",',
)
_rewrite("uv", "lock", "a bound that uv.lock breaks", "pyproject.toml", "numpy>=2.0,<3", "numpy>=2.2,<3")
_rewrite("uv", "lock", "an optional dependency that uv.lock breaks", "pyproject.toml", ">=3.9", ">=3.10")
_rewrite(
    "uv",
    "lock",
    "a lock file with marks of a merge",
    "uv.lock",
    "version = 1\n",
    "<<<<<<< HEAD\nversion = 1\n",
)
_rewrite("poetry", "lock", "a caret that poetry.lock breaks", "pyproject.toml", '"^2.0"', '"^1.26"')
_rewrite(
    "requirements", "lock", "requirements.in ahead of requirements.txt", "requirements.in", ">=2.0", ">=2.2"
)


@_defect("lock")
def a_requirement_that_was_never_compiled(folder: Path) -> None:
    good(folder, "requirements")
    write(folder, "requirements.in", "numpy>=2.0\nwattline\nPyYAML>=6\nscipy\n")


@_defect("lock", outcome="warn")
def dependencies_without_a_lock_file(folder: Path) -> None:
    good(folder, "uv")
    (folder / "uv.lock").unlink()


# Image


@_defect("image.base", outcome="warn")
def a_base_image_by_tag(folder: Path) -> None:
    good(folder, "image")
    rewrite(folder, "Dockerfile", "COPY train.py", "FROM ubuntu:24.04\nCOPY train.py")


# Runtime

_change("launch", "runtime.driver", "a driver too old for CUDA", runtime__driver="470.57.02")
_change(
    "launch",
    "runtime.torch",
    "a torch that was never built for this CUDA",
    runtime={"python": "3.10", "torch": "1.13.1", "cuda": "12.4", "driver": "550.54.15"},
)
_change("launch", "runtime.python", "a Python too new for torch", runtime__python="3.14")
_change(
    "launch", "runtime.gpu", "a GPU too new for CUDA", phases__train__resources={"gpus": 16, "gpu": "B200"}
)


@_defect("runtime.gpu")
def a_gpu_too_old_for_cuda(folder: Path) -> None:
    good(folder, "launch")
    change_pipeline(
        folder,
        runtime={"python": "3.12", "torch": "2.11.0", "cuda": "13.0", "driver": "580.82.07"},
        phases__train__resources={"gpus": 16, "gpu": ["V100"]},
    )


@_defect("runtime.python")
def a_python_that_pyproject_refuses(folder: Path) -> None:
    good(folder, "uv")
    change_pipeline(folder, runtime={"python": "3.10"})


# Launch

_change("launch", "launch.processes", "fewer processes than GPUs", phases__train__launch__processes=8)
_change("launch", "launch.parallel", "ranks that do not divide", phases__train__launch__tensor_parallel=5)
_change("launch", "launch.parallel", "layers that no pipeline divides", phases__train__launch__layers=33)
_change(
    "launch", "launch.parallel", "heads that hidden does not divide into", phases__train__launch__heads=36
)
_change("launch", "launch.batch", "a batch that ranks cannot share", phases__train__launch__global_batch=250)
_change("launch", "launch.memory", "a model that no rank can hold", phases__train__launch__parameters="70B")
_change("launch", "launch.memory", "activations that no rank can hold", phases__train__launch__micro_batch=32)

# Imports

_rewrite(
    "loop", "import", "a module that nobody provides", "train.py", "import numpy as np", "import numppy as np"
)
_rewrite("loop", "import", "a script that is no Python", "train.py", "def main():", "def main()")
_rewrite("phases", "import", "a local module that is not there", "train.py", "linear.model", "linear.models")
_rewrite(
    "phases",
    "import",
    "a fault in a module that is imported",
    "linear/model.py",
    "import numpy",
    "import numpyy",
)

# The first step

_script(
    "rehearsal",
    "a script that waits for ever",
    """
    import threading

    threading.Event().wait()
    """,
    within="6s",
)
_script(
    "rehearsal",
    "a script that forks without end",
    """
    import os, time

    while True:
        os.fork()
        time.sleep(0.01)
    """,
)
_script(
    "rehearsal",
    "a script that needs the network",
    """
    import urllib.request

    urllib.request.urlopen("https://models.example.org/weights.bin")
    """,
)
_script(
    "rehearsal",
    "an exception in the first step",
    """
    import numpy as np
    from wattline import train

    run = train.start(model={"w": np.zeros(3)})
    for step in run.steps(100):
        run.log(loss=float(np.zeros(3) @ np.zeros(4)))
    """,
)
_script(
    "rehearsal",
    "an import that fails only when it is reached",
    """
    def main():
        import a_module_that_nobody_has

    main()
    """,
)
_script(
    "rehearsal",
    "a name that a local module lacks",
    """
    import json
    from json import loadz
    """,
)
_script(
    "rehearsal",
    "a loss that is no number",
    """
    import numpy as np
    from wattline import train

    run = train.start(model={"w": np.zeros(3)})
    for step in run.steps(100):
        run.log(loss=float("nan"))
    """,
)
_script(
    "rehearsal",
    "a step that never ends",
    """
    import numpy as np
    from wattline import train

    run = train.start(model={"w": np.zeros(3)})
    for step in run.steps(100):
        while True:
            pass
    """,
    within="3s",
)


@_defect("rehearsal", rehearse=True)
def a_parameter_that_is_gone(folder: Path) -> None:
    good(folder, "loop")
    rewrite(folder, "params.json", '"width"', '"breadth"')
    change_pipeline(folder, phases__train__rehearse={"steps": 1})


@_defect("rehearsal", rehearse=True)
def a_phase_that_reads_what_none_wrote(folder: Path) -> None:
    good(folder, "phases")
    rewrite(folder, "prepare.py", "out/points.npy", "out/numbers.npy")


@_defect("rehearsal", rehearse=True)
def a_shell_script_that_stops_half_way(folder: Path) -> None:
    good(folder, "shell")
    rewrite(folder, "fit.sh", "mkdir -p out", "mkdir -p out\ncat data/absent.txt")
