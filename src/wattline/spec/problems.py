"""What is wrong with a document, where, and what would be right? Pydantic's findings in our words."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from wattline.errors import Problem
from wattline.spec.flaws import KEY, Flaw, FlawedError
from wattline.spec.literals import SpellingError
from wattline.spec.nearest import listed, nearest
from wattline.spec.tree import MOST_PROBLEMS, Node, Place, field_name, printable

Path = tuple[str | int, ...]

_WORDS = {
    "missing": "this field is required",
    "extra_forbidden": "unknown field",
    "literal_error": "this is not one of the values it may have",
    "enum": "this is not one of the values it may have",
    "bool_type": "this is either true or false",
    "bool_parsing": "this is either true or false",
    "int_type": "this is a whole number",
    "int_parsing": "this is a whole number",
    "int_from_float": "this is a whole number",
    "float_type": "this is a number",
    "float_parsing": "this is a number",
    "finite_number": "this is a finite number",
    "string_type": "this is text; put it in quotes",
    "tuple_type": "this is a list, such as [a, b]",
    "list_type": "this is a list, such as [a, b]",
    "dict_type": "this is a mapping, with a name before each value",
    "model_type": "this is a mapping of fields",
    "model_attributes_type": "this is a mapping of fields",
    "greater_than": "this is too small",
    "greater_than_equal": "this is too small",
    "less_than": "this is too large",
    "less_than_equal": "this is too large",
    "string_too_short": "this text is too short",
    "string_too_long": "this text is too long",
    "too_short": "this has too few entries",
    "too_long": "this has too many entries",
    "timezone_aware": "a time says its zone, such as 2026-12-01T08:00Z",
}
_BOUNDS = {
    "gt": "more than {}",
    "ge": "at least {}",
    "lt": "less than {}",
    "le": "at most {}",
    "min_length": "at least {}",
    "max_length": "at most {}",
}
_WITHOUT_VALUE = frozenset({"missing", "extra_forbidden", "string_too_long"})


@dataclass(frozen=True, slots=True)
class _Finding:
    """One of pydantic's, or one flaw of those that a check handed over."""

    kind: str
    path: Path
    value: object
    words: str
    context: Mapping[str, Any]
    flaw: Flaw | None = None


def problems_of(error: ValidationError, root: Node, model: type[BaseModel], file: str) -> list[Problem]:
    """What was found, in the order of the file. Only so many get words: a hostile file has thousands."""
    placed = [(*_locate(root, finding), finding) for finding in _findings(error)]
    placed.sort(key=lambda entry: (entry[0].line, entry[0].column))
    problems = []
    for place, path, finding in placed[:MOST_PROBLEMS]:
        flaw = finding.flaw or _worded(finding, model)
        problems.append(_problem(file, place, path, flaw))
    if len(placed) > MOST_PROBLEMS:
        last, message = problems[-1], f"and {len(placed) - MOST_PROBLEMS:,} more problems after this one"
        problems.append(Problem(file=file, line=last.line, column=last.column, message=message))
    return problems


def problems_at(flaws: Sequence[Flaw], root: Node, file: str) -> list[Problem]:
    """What a check found after the document was read, each flaw by its path from the top."""
    problems = []
    for flaw in flaws[:MOST_PROBLEMS]:
        place, path = _locate(root, _Finding("", flaw.at, None, "", {}))
        problems.append(_problem(file, place, path, flaw))
    return problems


def say_findings(error: ValidationError) -> str:
    """In one line, of what stands in no file: a flag."""
    return "; ".join(_said(finding) for finding in _findings(error))


def _said(finding: _Finding) -> str:
    """Findings of one kind have no bounds: theirs are in the words."""
    bounds, value = _bounds(finding.context), _shown(finding.value)
    if finding.kind == "value_error" or value is None:
        return _message(finding)
    return f"{_message(finding)}, got {value}" + (f"; allowed: {bounds}" if bounds else "")


def _problem(file: str, place: Place, path: Path, flaw: Flaw) -> Problem:
    return Problem(
        file=file,
        line=place.line,
        column=place.column,
        field=field_name(path),
        message=flaw.message,
        value=flaw.value,
        allowed=flaw.allowed,
        nearest=flaw.nearest,
    )


def _findings(error: ValidationError) -> Iterator[_Finding]:
    found = error.errors(include_url=False)
    parents = {details["loc"][:depth] for details in found for depth in range(len(details["loc"]))}
    for details in found:
        kind, path, context = details["type"], details["loc"], details.get("ctx", {})
        if kind == "too_short" and path in parents:
            continue  # pydantic counts only the entries that are right, and the wrong ones are told
        finding = _Finding(kind, path, details["input"], details["msg"], context)
        if isinstance(cause := context.get("error"), FlawedError):
            yield from (replace(finding, path=path + flaw.at, flaw=flaw) for flaw in cause.flaws)
        else:
            yield finding


def _worded(finding: _Finding, model: type[BaseModel]) -> Flaw:
    value = None if finding.kind in _WITHOUT_VALUE else _shown(finding.value)
    if isinstance(cause := finding.context.get("error"), SpellingError):
        return Flaw(
            at=finding.path,
            message=cause.summary,
            value=value,
            allowed=listed(cause.known) or None,
            nearest=cause.nearest,
        )
    choices = _choices(finding, model)
    wrong = str(finding.path[-1]) if finding.kind == "extra_forbidden" else str(finding.value)
    return Flaw(
        at=finding.path,
        message=_message(finding),
        value=value,
        allowed=", ".join(choices) or _bounds(finding.context) or None,
        nearest=nearest(wrong, choices),
    )


def _message(finding: _Finding) -> str:
    if finding.kind == "value_error":
        return str(finding.context["error"])
    if finding.kind.startswith(("datetime", "date_")):
        return "this is a time, such as 2026-12-01T08:00Z"
    # A kind without words of ours still reads as a sentence about the field.
    return _WORDS.get(finding.kind, finding.words.replace("Input should be", "this should be"))


def _bounds(context: Mapping[str, Any]) -> str:
    return " and ".join(words.format(context[name]) for name, words in _BOUNDS.items() if name in context)


def _choices(finding: _Finding, model: type[BaseModel]) -> tuple[str, ...]:
    if finding.kind in {"literal_error", "enum"}:
        expected = str(finding.context.get("expected", ""))
        return tuple(re.findall(r"'([^']*)'", expected)) or (expected.lower(),)
    if finding.kind == "extra_forbidden":
        return _fields_at(model, finding.path[:-1])
    return ()


def _shown(value: object) -> str | None:
    """A value as it may stand in a message; what is large or nested stays out of it."""
    if isinstance(value, str):
        return repr(printable(value))
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return printable(str(value)) if isinstance(value, int | float) else None


def _locate(root: Node, finding: _Finding) -> tuple[Place, Path]:
    """Walk a path through the tree; a part that the document does not have is one that pydantic added."""
    node, key_place = root, root.place
    walked: Path = ()
    for part in finding.path:
        child = node.children.get(part)
        if child is not None:
            key_place = node.keys[part] if isinstance(part, str) else child.place
            node, walked = child, (*walked, part)
    if finding.kind == "missing":
        return node.place, (*walked, finding.path[-1])
    at_key = finding.kind == "extra_forbidden" or finding.path[-1:] == (KEY,)
    return key_place if at_key else node.place, walked


def _fields_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The fields that are known where `path` leads, by the names that documents use."""
    annotation: object = model
    for part in path:
        annotation = _step(annotation, part)
    found = _unwrapped(annotation)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        return ()
    return tuple(field.alias or name for name, field in found.model_fields.items())


def _step(annotation: object, part: str | int) -> object:
    chosen = _tagged(annotation).get(part)
    if chosen is not None:
        return chosen
    found = _unwrapped(annotation)
    if isinstance(found, type) and issubclass(found, BaseModel):
        known = {field.alias or name: field.annotation for name, field in found.model_fields.items()}
        return known.get(str(part))
    arguments = get_args(found)
    return arguments[-1 if get_origin(found) is dict else 0] if arguments else None


def _tagged(annotation: object) -> dict[str | int, object]:
    """Of a value that is one of several kinds, each by its tag, which stands in pydantic's paths."""
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    kinds = get_args(inner) if get_origin(inner) in (Union, types.UnionType) else ()
    return {
        part.tag: kind
        for kind in kinds
        for part in (get_args(kind)[1:] if get_origin(kind) is Annotated else ())
        if isinstance(part, Tag)
    }


def _unwrapped(annotation: object) -> object:
    """Without `Annotated[…]` and `… | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _unwrapped(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return _unwrapped(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation
