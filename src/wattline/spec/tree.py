"""Where does each value of a document stand? A tree of values with their places, grown event by event."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from wattline.errors import DocumentError, Problem
from wattline.spec.scalars import resolve

DEEPEST = 32
MOST_NODES = 200_000
MOST_PROBLEMS = 50

# What YAML itself refuses, and what reorders text on a screen so that a reviewer reads something else.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_PLAIN = re.compile(r"[\w-]+")
HIDDEN = "a control or direction character hides what the file says"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something begins; both count from one."""

    line: int
    column: int


@dataclass(slots=True)
class Node:
    """A value with its place; `value` is the plain Python object that its children have filled."""

    place: Place
    value: Any
    children: dict[str | int, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)


def field_name(path: tuple[str | int, ...]) -> str:
    """A path as people say it: `phases.train.after[0]`."""
    text = "".join(_step(part) for part in path)
    return printable(text.removeprefix("."), longest=200)


def _step(part: str | int) -> str:
    is_plain = isinstance(part, str) and _PLAIN.fullmatch(part)
    return f".{part}" if is_plain else f"[{part!r}]"


def printable(text: str, longest: int = 80) -> str:
    """Text that cannot disturb a terminal or a log."""
    shown = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text[:longest])
    return shown if len(text) <= longest else shown + "…"


@dataclass(slots=True)
class _Open:
    """A mapping or list that is not yet closed, and the key or index whose value comes next."""

    node: Node
    part: str | int | None


class TreeBuilder:
    """Takes a parser's events one by one; without recursion, so depth costs a check and not the stack."""

    def __init__(self, file: str) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._file = file
        self._stack: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._fatal(event, "a file holds one document; remove what follows the ---")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._stack.pop()
            self._value_done()
        elif isinstance(event, yaml.NodeEvent):
            self._count(event)
            self._refuse_indirection(event)
            if self._stack and self._stack[-1].part is None:
                self._take_key(event)
            else:
                self._take_value(event)

    def _take_key(self, event: yaml.NodeEvent) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._fatal(event, "a key is a word, not a list, a mapping or an alias")
        mapping, key = self._stack[-1], str(event.value)
        mapping.part = key
        self._check_characters(event, key)
        if key in mapping.node.keys:
            self._note(event, "this key stands here twice", value=printable(key))
        mapping.node.keys.setdefault(key, _place(event))

    def _take_value(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.CollectionStartEvent):
            if len(self._stack) == DEEPEST:
                raise self._fatal(event, f"values stand too deep inside each other; at most {DEEPEST} levels")
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            node = Node(_place(event), {} if is_mapping else [])
            self._attach(node)
            self._stack.append(_Open(node, None if is_mapping else 0))
        else:
            self._attach(Node(_place(event), self._scalar(event)))
            self._value_done()

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        parent, part = self._stack[-1].node, self._stack[-1].part
        assert part is not None
        parent.children[part] = node
        if isinstance(part, int):
            parent.value.append(node.value)
        else:
            parent.value[part] = node.value

    def _value_done(self) -> None:
        if self._stack:
            part = self._stack[-1].part
            self._stack[-1].part = part + 1 if isinstance(part, int) else None

    def _scalar(self, event: yaml.NodeEvent) -> object:
        if not isinstance(event, yaml.ScalarEvent):
            return None  # an alias, noted already
        text = str(event.value)
        self._check_characters(event, text)
        return resolve(text) if event.implicit[0] else text

    def _check_characters(self, event: yaml.Event, text: str) -> None:
        hidden = CONTROL.search(text) or DIRECTION.search(text)
        if hidden:
            self._note(event, HIDDEN, value=f"U+{ord(hidden[0]):04X}")

    def _refuse_indirection(self, event: yaml.NodeEvent) -> None:
        if event.anchor:
            self._note(event, "anchors and aliases are not allowed; write the value out")
        if tag := getattr(event, "tag", None):
            self._note(event, "tags are not allowed; write a plain value", value=printable(str(tag)))

    def _count(self, event: yaml.Event) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise self._fatal(event, f"the file holds too many values; at most {MOST_NODES:,}")

    def _note(self, event: yaml.Event, message: str, *, value: str | None = None) -> None:
        place = _place(event)
        path = tuple(part for part in (frame.part for frame in self._stack) if part is not None)
        self.problems.append(
            Problem(
                file=self._file,
                line=place.line,
                column=place.column,
                field=field_name(path),
                message=message,
                value=value,
            )
        )
        if len(self.problems) >= MOST_PROBLEMS:
            raise DocumentError(*self.problems)

    def _fatal(self, event: yaml.Event, message: str) -> DocumentError:
        self._note(event, message)
        return DocumentError(*self.problems)


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
