"""Build: is there a C compiler here to make the kernel of the codecs with?

Where there is none the package is complete all the same: NumPy does that work, more slowly.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LIBRARY = "src/wattline/checkpoint/codecs/libkernel.so"
_SOURCE = "src/wattline/checkpoint/codecs/kernel.c"


class KernelHook(BuildHookInterface[Any]):
    """Runs before a wheel is put together, also that of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        library = Path(self.root, _LIBRARY)
        if why_not := compile_kernel(Path(self.root, _SOURCE), library):
            library.unlink(missing_ok=True)  # it may be of an earlier source
            print(f"wattline: NumPy will encode checkpoints, as {why_not}", file=sys.stderr)
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(f"/{_LIBRARY}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"  # whichever Python: it is loaded by ctypes


def compile_kernel(source: Path, library: Path) -> str | None:
    """Why there is none, if so. A process that has loaded the one before keeps it."""
    unfinished = library.with_suffix(".partial")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    command = [*compiler, "-std=c99", "-O3", "-shared", "-fPIC", "-o", str(unfinished), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        unfinished.replace(library)
    except OSError as error:
        return f"its kernel cannot be compiled: {error}"
    except subprocess.CalledProcessError as error:
        return f"{shlex.join(command)} failed: {error.stderr.strip()[-1000:]}"
    return None
