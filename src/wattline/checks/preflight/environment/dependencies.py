"""What does a project say it needs, and what did its lock file settle on?

Read from files only: pyproject.toml (also Poetry's own tables), requirements.in and requirements.txt on the
one side, uv.lock, poetry.lock, pdm.lock, pylock.toml and requirements.txt on the other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wattline.checks.preflight.files import line_of, read_text

_LARGEST_LOCK_BYTES = 16 << 20
_MOST_REQUIREMENTS = 5000
_POETRY_BOUND = re.compile(r"(\^|~(?!=))\s*([0-9][0-9a-zA-Z.]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One dependency as a person declared it."""

    name: str  # canonical
    allowed: SpecifierSet
    is_pinned: bool  # to one version, or to an address
    applies: bool  # its marker holds here
    file: str
    line: int | None
    group: str = ""  # empty: what the project always needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What a lock file settled on; a name may have several versions, for several platforms."""

    file: str
    versions: Mapping[str, frozenset[str]]  # empty: from a path or a repository, without a version
    has_groups: bool  # it also locks what is optional
    relock: str  # the command that brings it up to date

    def fault(self, need: Need) -> str | None:
        """Why this lock does not give what is needed; None: it does."""
        versions = self.versions.get(need.name)
        if versions is None:
            return f"is not in {self.file}" if need.applies else None
        if not versions or any(_allows(need.allowed, version) for version in versions):
            return None
        listed = ", ".join(sorted(versions))
        return f"is {listed} in {self.file}, which {need.allowed} does not allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLock:
    """A file that is there and cannot be read."""

    file: str
    why: str


def read_needs(folder: Path) -> list[Need]:
    """What pyproject.toml declares; where that declares nothing, requirements.in, else requirements.txt."""
    needs = list(_of_pyproject(folder))
    if not needs:
        inputs = "requirements.in" if (folder / "requirements.in").is_file() else "requirements.txt"
        needs = list(_of_requirements(folder, inputs))
    return needs[:_MOST_REQUIREMENTS]


def read_lock(folder: Path) -> Lock | BrokenLock | None:
    """The lock file that is there; of several, the first of uv, Poetry, PDM and pylock."""
    for file, table, has_groups, relock in (
        ("uv.lock", "package", True, "uv lock"),
        ("poetry.lock", "package", True, "poetry lock"),
        ("pdm.lock", "package", False, "pdm lock"),
        ("pylock.toml", "packages", False, "pip lock, or export it again"),
    ):
        if (folder / file).is_file():
            document = _read_toml(folder / file)
            if document is None:
                return BrokenLock(file=file, why="it is no TOML of up to 16 MB")
            versions = _locked(document.get(table))
            return Lock(file=file, versions=versions, has_groups=has_groups, relock=relock)
    return _compiled(folder)


def _compiled(folder: Path) -> Lock | None:
    """requirements.txt is a lock where it was compiled: all pinned, from what stands elsewhere."""
    entries = list(_of_requirements(folder, "requirements.txt"))
    is_made = (folder / "requirements.in").is_file() or any(True for _ in _of_pyproject(folder))
    if not (entries and is_made and all(entry.is_pinned for entry in entries)):
        return None
    versions: dict[str, frozenset[str]] = {}
    for entry in entries:
        pins = {bound.version for bound in entry.allowed if bound.operator in ("==", "===")}
        versions[entry.name] = versions.get(entry.name, frozenset()) | pins
    relock = "pip-compile, or uv pip compile"
    return Lock(file="requirements.txt", versions=versions, has_groups=False, relock=relock)


def required_python(folder: Path) -> SpecifierSet | None:
    project = _table((_read_toml(folder / "pyproject.toml") or {}).get("project"))
    text = project.get("requires-python")
    try:
        return SpecifierSet(text) if isinstance(text, str) else None
    except InvalidSpecifier:
        return None


def project_name(folder: Path) -> str | None:
    document = _read_toml(folder / "pyproject.toml") or {}
    poetry = _table(_table(document.get("tool")).get("poetry"))
    name = _table(document.get("project")).get("name") or poetry.get("name")
    return canonicalize_name(name) if isinstance(name, str) else None


def _read_toml(path: Path) -> dict[str, Any] | None:
    text = read_text(path, _LARGEST_LOCK_BYTES)
    if text is None:
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _of_pyproject(folder: Path) -> Iterator[Need]:
    document = _read_toml(folder / "pyproject.toml")
    if document is None:
        return
    text = read_text(folder / "pyproject.toml") or ""
    project = _table(document.get("project"))
    declared = [("", _strings(project.get("dependencies")))]
    for groups in (project.get("optional-dependencies"), document.get("dependency-groups")):
        declared += [(group, _strings(items)) for group, items in _table(groups).items()]
    for group, items in declared:
        for item in items:
            if (need := _need(item, "pyproject.toml", line_of(text, item), group)) is not None:
                yield need
    yield from _of_poetry(_table(_table(document.get("tool")).get("poetry")), text)


def _of_poetry(poetry: Mapping[str, Any], text: str) -> Iterator[Need]:
    groups = {"": _table(poetry.get("dependencies")), "dev": _table(poetry.get("dev-dependencies"))}
    for group, table in _table(poetry.get("group")).items():
        groups[group] = _table(_table(table).get("dependencies"))
    for group, table in groups.items():
        for name, constraint in table.items():
            if name == "python":
                continue
            details = _table(constraint)
            asked = details.get("version", "*") if details else constraint
            allowed = poetry_specifiers(asked) if isinstance(asked, str) else SpecifierSet()
            yield Need(
                name=canonicalize_name(name),
                allowed=allowed,
                is_pinned=_is_pinned(allowed) or bool(details.keys() & {"git", "path", "url"}),
                applies=not details.get("markers"),
                file="pyproject.toml",
                line=line_of(text, f"\n{name} ") or line_of(text, name),
                group=group,
            )


def poetry_specifiers(text: str) -> SpecifierSet:
    """^1.2 is >=1.2,<2 and ~1.2 is >=1.2,<1.3; what is not understood allows all."""

    def bounds(match: re.Match[str]) -> str:
        parts = [int(part) for part in re.findall(r"\d+", match[2])]
        if match[1] == "^":
            at = next((at for at, part in enumerate(parts) if part), len(parts) - 1)
        else:
            at = min(1, len(parts) - 1)
        above = ".".join(str(part) for part in [*parts[:at], parts[at] + 1])
        return f">={match[2]},<{above}"

    text = text.strip()
    if text in ("", "*") or "||" in text:
        return SpecifierSet()
    plain = _POETRY_BOUND.sub(bounds, text)
    if plain[0].isdigit():
        plain = f"=={plain}"
    try:
        return SpecifierSet(plain)
    except InvalidSpecifier:
        return SpecifierSet()


def _of_requirements(folder: Path, file: str) -> Iterator[Need]:
    text = read_text(folder / file)
    for number, line in _logical_lines(text or ""):
        if (need := _need(line, file, number, "")) is not None:
            yield need


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Requirements without comments, options and hashes, each with its line."""
    started, joined = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        started = started if joined else number
        joined += line
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        plain = re.sub(r"(^|\s)#.*", "", joined).split(" --", 1)[0].strip()
        joined = ""
        if plain and not plain.startswith("-"):
            yield started, plain


def _need(text: str, file: str, line: int | None, group: str) -> Need | None:
    """None for what is no requirement by name: a path, an address."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    return Need(
        name=canonicalize_name(requirement.name),
        allowed=requirement.specifier,
        is_pinned=requirement.url is not None or _is_pinned(requirement.specifier),
        applies=requirement.marker is None or _holds(requirement.marker),
        file=file,
        line=line,
        group=group,
    )


def _holds(marker: Marker) -> bool:
    try:
        return marker.evaluate({"extra": ""})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True


def _is_pinned(allowed: SpecifierSet) -> bool:
    return any(bound.operator in ("==", "===") for bound in allowed)


def _locked(packages: object) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for package in packages if isinstance(packages, list) else ():
        name, version = _table(package).get("name"), _table(package).get("version")
        if isinstance(name, str):
            versions = {version} if isinstance(version, str) else set()
            canonical = canonicalize_name(name)
            found[canonical] = found.get(canonical, frozenset()) | versions
    return found


def _allows(allowed: SpecifierSet, version: str) -> bool:
    try:
        return allowed.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
