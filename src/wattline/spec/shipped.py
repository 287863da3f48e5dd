"""Which file does `--facility lab` mean? Examples that ship, by name; anything else is a path.

Templates for `wattline init` ship too: a folder each.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import wattline
from wattline.errors import UnavailableError, UsageError
from wattline.spec.nearest import nearest


def shipped_facilities() -> dict[str, Path]:
    """The facilities that ship, by name."""
    return _shipped("facility/examples", "examples/facilities")


def shipped_policies() -> dict[str, Path]:
    """The policies that ship, by name."""
    return _shipped("spec/policies", "examples/policies")


def shipped_scenarios() -> dict[str, Path]:
    """The scenarios that ship, by name."""
    return _shipped("spec/scenarios", "examples/scenarios")


def shipped_plans() -> dict[str, Path]:
    """The plans that ship, by name."""
    return _shipped("spec/plans", "examples/plans")


def shipped_templates() -> dict[str, Path]:
    """The folders that `wattline init` copies, by name."""
    folder = _folder("spec/templates", "examples/templates")
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/wattline.yaml"))}


def shipped_workflows() -> dict[str, Path]:
    """GitHub workflows that check pull requests, by file name."""
    return {path.name: path for path in sorted(_folder("spec/workflows", "ci/github").glob("*.yml"))}


def find_facility(name_or_path: str | Path) -> Path:
    """The file of a shipped facility, or the path as it is."""
    return _find(name_or_path, shipped_facilities(), "facility")


def find_policy(name_or_path: str | Path) -> Path:
    """The file of a shipped policy, or the path as it is."""
    return _find(name_or_path, shipped_policies(), "policy")


def find_scenario(name_or_path: str | Path) -> Path:
    """The file of a shipped scenario, or the path as it is."""
    return _find(name_or_path, shipped_scenarios(), "scenario")


def find_plan(name_or_path: str | Path) -> Path:
    """The file of a shipped plan, or the path as it is."""
    return _find(name_or_path, shipped_plans(), "plan")


def find_template(name: str) -> Path:
    """The folder of a shipped template; there are no others."""
    shipped = shipped_templates()
    if name not in shipped:
        close = nearest(name, shipped)
        hint = f"did you mean {close!r}?" if close else f"name one of {', '.join(shipped)}"
        raise UsageError(f"there is no template {name!r}", hint=hint)
    return shipped[name]


def _shipped(installed: str, in_checkout: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted(_folder(installed, in_checkout).glob("*.yaml"))}


def _folder(installed: str, in_checkout: str) -> Path:
    # A wheel carries the examples inside the package; a checkout has them beside `src`.
    folder = Path(str(files(wattline))) / installed
    return folder if folder.is_dir() else Path(str(files(wattline))).parents[1] / in_checkout


def _find(name_or_path: str | Path, shipped: dict[str, Path], what: str) -> Path:
    path, name = Path(name_or_path), str(name_or_path)
    if name in shipped:
        return shipped[name]
    is_bare = path.name == name and not path.suffix
    if is_bare and not path.exists():
        close = nearest(name, shipped)
        hint = f"did you mean {close!r}?" if close else f"name a file, or one of {', '.join(shipped)}"
        raise UnavailableError(f"{what} {name!r} is neither a file nor one that ships", hint=hint)
    return path
