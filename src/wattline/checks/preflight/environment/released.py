"""Which driver, CUDA, torch, Python and GPU were made for each other? A table, with where it was read.

Read on 2026-11-16. A version that is not here is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]

# Tables 2 and 3: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
# A CUDA program runs on any driver from the first of its major release on (minor-version compatibility,
# https://docs.nvidia.com/deploy/cuda-compatibility/); code that the driver must still compile (PTX) needs the
# driver of its own release.
LEAST_DRIVER_OF_MAJOR: dict[int, str] = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
DRIVER_OF_TOOLKIT: dict[str, str] = {
    "11.0": "450.51.05",
    "11.1": "455.23",
    "11.2": "460.27.03",
    "11.3": "465.19.01",
    "11.4": "470.42.01",
    "11.5": "495.29.05",
    "11.6": "510.39.01",
    "11.7": "515.43.04",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
    "13.3": "610.43.02",
}


@dataclass(frozen=True, slots=True)
class Torch:
    """One release: the CUDA versions it is published for, stable or not, and the Pythons."""

    cuda: tuple[str, ...]
    first_python: str
    last_python: str


# https://github.com/pytorch/pytorch/blob/main/RELEASE.md#release-compatibility-matrix
TORCH: dict[str, Torch] = {
    "1.12": Torch(("11.3", "11.6"), "3.7", "3.10"),
    "1.13": Torch(("11.6", "11.7"), "3.7", "3.10"),
    "2.0": Torch(("11.7", "11.8"), "3.8", "3.11"),
    "2.1": Torch(("11.8", "12.1"), "3.8", "3.11"),
    "2.2": Torch(("11.8", "12.1"), "3.8", "3.12"),
    "2.3": Torch(("11.8", "12.1"), "3.8", "3.12"),
    "2.4": Torch(("11.8", "12.1", "12.4"), "3.8", "3.12"),
    "2.5": Torch(("11.8", "12.1", "12.4"), "3.9", "3.13"),
    "2.6": Torch(("11.8", "12.4", "12.6"), "3.9", "3.13"),
    "2.7": Torch(("11.8", "12.6", "12.8"), "3.9", "3.13"),
    "2.8": Torch(("12.6", "12.8", "12.9"), "3.9", "3.13"),
    "2.9": Torch(("12.6", "12.8", "13.0"), "3.10", "3.14"),
    "2.10": Torch(("12.6", "12.8", "13.0"), "3.10", "3.14"),
    "2.11": Torch(("12.6", "12.8", "13.0"), "3.10", "3.14"),
    "2.12": Torch(("12.6", "13.0", "13.2"), "3.10", "3.14"),
    "2.13": Torch(("12.6", "13.0", "13.2"), "3.10", "3.15"),
    "2.14": Torch(("12.6", "13.0", "13.2"), "3.10", "3.15"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a GPU needs of CUDA, and how much it holds."""

    capability: str
    first_cuda: str
    last_cuda_major: int | None = None  # None: still supported
    memory_gib: float  # of the largest one of this name


# Compute capability: https://developer.nvidia.com/cuda-gpus. First toolkit with each: release notes of 9.0
# (7.0), 11.0 (8.0), 11.8 (9.0) and 12.8 (10.0); 13.0 took Volta out. Memory: NVIDIA's data sheets; V100 also
# comes with 16 GB and A100 with 40 GB.
GPUS: dict[str, Gpu] = {
    "V100": Gpu(capability="7.0", first_cuda="9.0", last_cuda_major=12, memory_gib=32.0),
    "A100": Gpu(capability="8.0", first_cuda="11.0", memory_gib=80.0),
    "H100": Gpu(capability="9.0", first_cuda="11.8", memory_gib=80.0),
    "H200": Gpu(capability="9.0", first_cuda="11.8", memory_gib=141.0),
    "B200": Gpu(capability="10.0", first_cuda="12.8", memory_gib=180.0),
}


def version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def minor(text: str) -> str:
    """The first two numbers: 12.4 of 12.4.1. What has one number gets a zero."""
    parts = [*text.split("."), "0"]
    return ".".join(parts[:2])
