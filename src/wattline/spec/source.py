"""What does a YAML file say, and where does it say it?

Read from the parser's events rather than its objects: no recursion, no constructors, and each value keeps
its line and column. Anchors, tags and second documents are refused: nothing here needs them, and they are
how a small file becomes a large or a dangerous one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from wattline.errors import DocumentError, Problem
from wattline.spec.tree import CONTROL, DIRECTION, HIDDEN, MOST_PROBLEMS, Node, Place, TreeBuilder

LARGEST_BYTES = 1 << 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_source(raw: bytes, file: str) -> Node:
    """Read a whole document, or raise DocumentError with every fault found."""
    if len(raw) > LARGEST_BYTES:
        raise DocumentError(Problem(file=file, message="the file is too large", allowed="at most 1 MiB"))
    text = _decode(raw, file)
    builder = TreeBuilder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise DocumentError(*builder.problems, _syntax_problem(error, text, file)) from error
    except yaml.YAMLError as error:
        raise DocumentError(Problem(file=file, message=f"this is not YAML: {error}")) from error
    # Values were checked as they came, with their field; what is left stands in comments.
    problems = builder.problems or list(_forbidden(DIRECTION, text, file))
    if builder.root is None:
        problems = problems or [Problem(file=file, line=1, column=1, message="the file is empty")]
    if builder.root is None or problems:
        raise DocumentError(*problems)
    return builder.root


def _decode(raw: bytes, file: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_at(raw[: error.start].decode("utf-8"))
        raise DocumentError(
            Problem(
                file=file,
                line=place.line,
                column=place.column,
                message="the file is not UTF-8 text",
                value=f"byte 0x{raw[error.start]:02x}",
            )
        ) from error
    if problems := list(_forbidden(CONTROL, text, file)):
        raise DocumentError(*problems)
    return text


def _forbidden(pattern: re.Pattern[str], text: str, file: str) -> Iterator[Problem]:
    for match in islice(pattern.finditer(text), MOST_PROBLEMS):
        place = _place_at(text[: match.start()])
        yield Problem(
            file=file,
            line=place.line,
            column=place.column,
            message=HIDDEN,
            value=f"U+{ord(match[0]):04X}",
        )


def _place_at(before: str) -> Place:
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    # str.splitlines would also break at characters that YAML takes for ordinary ones.
    lines = text.split("\n")
    indent = re.match(r"\s*", lines[line - 1])[0] if line <= len(lines) else ""  # type: ignore[index]
    if "\t" in indent[:column]:
        column, message = indent.index("\t") + 1, "a tab cannot indent; use spaces"
    else:
        message = f"this is not YAML: {error.problem or error.context}"
        if error.problem and error.context:
            message += f" ({error.context})"
    return Problem(file=file, line=line, column=column, message=message)
