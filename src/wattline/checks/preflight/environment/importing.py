"""Would every import at the top of the training code find something?

Only read, never run: the scripts that phases start, and the local modules that they import, as syntax trees.
An import inside a function, under `try` or under a condition is left to the rehearsal.
"""

from __future__ import annotations

import ast
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from pkgutil import iter_modules
from typing import TypeGuard

from wattline.checks.preflight.asking import Asking, Check, Outcome
from wattline.checks.preflight.entry import script_of
from wattline.checks.preflight.environment.modules import Provided, provided_modules
from wattline.checks.preflight.files import read_text
from wattline.spec.nearest import nearest

_MOST_FILES = 500
_MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Fault:
    file: str
    line: int
    message: str
    fix: str
    outcome: Outcome = "fail"


@dataclass(slots=True)
class _Walk:
    """What has been read, and what was found wrong."""

    folder: Path
    roots: tuple[Path, ...]  # where Python would look for modules, besides what is installed
    provided: Provided
    seen: set[Path] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)  # may come with the image


def check_imports(asking: Asking) -> Iterator[Check]:
    provided: Provided | None = None
    for name, phase in asking.pipeline.phases.items():
        script = python_script(phase.run, asking.folder)
        if script is None:
            message = f"no Python script to read in {phase.run!r}"
            yield Check(check="import", subject=name, outcome="skip", message=message)
            continue
        provided = provided or provided_modules(asking)
        walk = _Walk(asking.folder, _roots(asking.folder, script, phase.run), provided)
        _read(script, walk)
        for fault in walk.faults[:_MOST_FAULTS]:
            yield Check(
                check="import",
                subject=name,
                outcome=fault.outcome,
                message=fault.message,
                fix=fault.fix,
                file=fault.file,
                line=fault.line,
            )
        if not walk.faults:
            yield _verdict(name, walk)


def _verdict(name: str, walk: _Walk) -> Check:
    if walk.unknown:
        message = f"{', '.join(sorted(walk.unknown))}: not declared here, may come with the image"
        return Check(check="import", subject=name, outcome="skip", message=message)
    message = f"imports of {len(walk.seen)} files resolve"
    return Check(check="import", subject=name, outcome="pass", message=message)


def python_script(command: str, folder: Path) -> Path | None:
    """The Python file that a command starts, where that can be told and it is there."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    script = script_of(words)
    if script is not None and script.endswith(".py"):
        path = folder / script
        return path if path.is_file() else None
    if len(words) >= 3 and Path(words[0]).name in ("python", "python3") and words[1] == "-m":
        return _module_file(words[2].split("."), (folder,), as_program=True)
    return None


def _roots(folder: Path, script: Path, command: str) -> tuple[Path, ...]:
    """A script finds its neighbours; what is a project finds its own packages, once installed."""
    is_project = any((folder / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg"))
    if is_project:
        return (script.parent, folder, folder / "src")
    return (folder,) if shlex.split(command)[1] == "-m" else (script.parent,)


def _module_file(parts: list[str], roots: tuple[Path, ...], *, as_program: bool = False) -> Path | None:
    for root in roots:
        path = root.joinpath(*parts)
        inside = path / ("__main__.py" if as_program else "__init__.py")
        for candidate in (path.with_suffix(".py"), inside):
            if candidate.is_file():
                return candidate
    return None


def _read(path: Path, walk: _Walk) -> None:
    if path in walk.seen or len(walk.seen) >= _MOST_FILES:
        return
    walk.seen.add(path)
    shown = path.relative_to(walk.folder).as_posix()
    text = read_text(path)
    if text is None:
        walk.faults.append(Fault(shown, 1, f"{shown} is too large to read", "split it"))
        return
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes in strings: not what is asked here
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        walk.faults.append(Fault(shown, line, f"{shown} is no Python: {reason}", "correct the line"))
        return
    for statement in _top_imports(tree.body):
        for module in _modules_of(statement, path, walk):
            _resolve(module, statement.lineno, shown, walk)


def _top_imports(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.With) or _is_main(statement):
            yield from _top_imports(statement.body)


def _is_main(statement: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _modules_of(statement: ast.Import | ast.ImportFrom, path: Path, walk: _Walk) -> Iterator[list[str]]:
    """Dotted names as lists, from the roots."""
    if isinstance(statement, ast.Import):
        yield from (alias.name.split(".") for alias in statement.names)
    elif not statement.level:
        yield (statement.module or "").split(".")
    else:
        package = path.parent
        for _ in range(statement.level - 1):
            package = package.parent
        for root in walk.roots:
            if package.is_relative_to(root):
                inside = list(package.relative_to(root).parts)
                parts = [*inside, *(statement.module.split(".") if statement.module else [])]
                if parts:
                    yield parts
                return


def _resolve(module: list[str], line: int, shown: str, walk: _Walk) -> None:
    top = module[0]
    if top in sys.stdlib_module_names:
        return
    if not any(_is_local(top, root) for root in walk.roots):
        if not walk.provided.has(top):
            _missing(top, line, shown, walk)
        return
    for length in range(1, len(module) + 1):
        found = _module_file(module[:length], walk.roots)
        if found is not None:
            _read(found, walk)
        elif not any(root.joinpath(*module[:length]).is_dir() for root in walk.roots):
            name = ".".join(module[:length])
            if not walk.provided.has(top):
                message = f"imports {name}, which is not in the folder"
                walk.faults.append(Fault(shown, line, message, f"add {name}, or correct it"))
            return


def _is_local(top: str, root: Path) -> bool:
    """A folder without Python in it, such as data/, hides no module of that name."""
    if (root / f"{top}.py").is_file():
        return True
    return (root / top).is_dir() and next((root / top).rglob("*.py"), None) is not None


def _missing(top: str, line: int, shown: str, walk: _Walk) -> None:
    if _is_local(top, walk.folder):
        message = f"imports {top}, which is in the folder, but not where the script looks"
        walk.faults.append(Fault(shown, line, message, "start it with `python -m` from the folder"))
        return
    if walk.provided.may_be_in_image:
        walk.unknown.add(top)
        return
    local = [PurePosixPath(path.name).stem for root in walk.roots for path in root.glob("*.py")]
    installed = [module.name for module in iter_modules()]
    close = nearest(top, [*local, *walk.provided.names, *installed])
    walk.faults.append(
        Fault(
            shown,
            line,
            f"imports {top}, which is neither in the folder, nor declared, nor installed",
            f"did you mean {close}?" if close else f"declare what provides {top}, or correct it",
            # Where nothing is declared, only the site knows what is installed; a slip is a slip anyway.
            "fail" if close or walk.provided.is_declared else "warn",
        )
    )
