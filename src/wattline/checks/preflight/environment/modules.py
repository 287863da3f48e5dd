"""Which modules may a script import, besides Python's own and those beside it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder

from wattline.checks.preflight.asking import Asking
from wattline.checks.preflight.environment.dependencies import Lock, project_name, read_lock, read_needs

# Distributions whose modules have names that theirs does not hold.
_NAMED_OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "antlr4-python3-runtime": ("antlr4",),
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "biopython": ("Bio",),
    "nvidia-ml-py": ("pynvml",),
    "opencv-contrib-python": ("cv2",),
    "opencv-python": ("cv2",),
    "opencv-python-headless": ("cv2",),
    "pillow": ("PIL",),
    "protobuf": ("google",),
    "psycopg2-binary": ("psycopg2",),
    "pycryptodome": ("Crypto",),
    "pyjwt": ("jwt",),
    "pyyaml": ("yaml",),
    "scikit-image": ("skimage",),
    "scikit-learn": ("sklearn",),
    "setuptools": ("setuptools", "pkg_resources"),
    "tensorboard": ("tensorboard",),
    "tensorflow-cpu": ("tensorflow",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """Modules of what is declared or locked, and of what is installed here."""

    names: frozenset[str]
    parts: frozenset[str]  # words of their distributions' names
    is_declared: bool  # the project says what it needs
    may_be_in_image: bool

    def has(self, module: str) -> bool:
        return (
            module in self.names
            or module.lower() in self.parts
            or f"py{module.lower()}" in self.parts
            or _is_installed(module)
        )


def provided_modules(asking: Asking) -> Provided:
    declared = {need.name for need in read_needs(asking.folder)}
    lock = read_lock(asking.folder)
    if isinstance(lock, Lock):
        declared |= set(lock.versions)
    own = project_name(asking.folder)
    names: set[str] = {own.replace("-", "_")} if own else set()
    parts: set[str] = set()
    for distribution in declared:
        names |= set(_NAMED_OTHERWISE.get(distribution, ()))
        names.add(distribution.replace("-", "_"))
        parts |= set(distribution.split("-"))
    return Provided(
        names=frozenset(names),
        parts=frozenset(parts),
        is_declared=bool(declared),
        may_be_in_image=asking.pipeline.image is not None,
    )


def _is_installed(module: str) -> bool:
    """Found on the path without importing it, nor anything it would import."""
    spec = PathFinder.find_spec(module)
    if spec is None or spec.origin is not None:
        return spec is not None
    # Any folder on the path counts as a package without a file of its own; only installed ones are meant.
    return any("-packages" in place for place in spec.submodule_search_locations or ())
