"""Does a condition that somebody wrote hold? CEL behind one small door, for rules, rungs and gates."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cel_expr_python import cel  # type: ignore[import-untyped]

from wattline.errors import WattlineError
from wattline.spec.literals import Promoted, SpellingError, Token, promote, tokens_of
from wattline.spec.nearest import nearest

LONGEST_EXPRESSION = 2000

# CEL's own `size` gives an int, which no longer compares with literals that are doubles.
_CONFIG = cel.NewEnvConfigFromYaml("stdlib: {exclude_functions: [{name: size}]}")
_SIZE = cel.FunctionDecl(
    "size",
    [
        cel.Overload("size_of", cel.Type.DOUBLE, [cel.Type.DYN], False, lambda value: float(len(value))),
        cel.Overload("size_in", cel.Type.DOUBLE, [cel.Type.DYN], True, lambda value: float(len(value))),
    ],
)

_COMPLAINT = re.compile(r"<input>:(-?\d+):(-?\d+): (.*)")
_MISSING = re.compile(r'(?:No value with name|Key not found in map :) "([^"]*)"')
_NOT_VARIABLES = frozenset({"true", "false", "null", "in"})
_BINDERS = frozenset({"all", "exists", "exists_one", "map", "filter"})


class ExpressionError(WattlineError):
    """An expression could not be evaluated with the values at hand; it is neither true nor false."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled condition. Equal when the text and what it may speak of are equal."""

    text: str
    names: tuple[str, ...]
    # Of structs, each field that it speaks of; None where it does not name them: `job["gpus"]`.
    inputs: tuple[tuple[str, str], ...] | None
    _program: cel.Expression = field(repr=False, compare=False)

    def holds(self, values: Mapping[str, object]) -> bool:
        """True or false by the values; anything else, a missing or unusable one too, is an error."""
        data = {
            name: self._usable(name, self._spoken_of(name, values[name]))
            for name in self.names
            if name in values
        }
        try:
            result = self._program.eval(data=data)
        except RuntimeError as error:
            raise ExpressionError(f"expression {self.text!r}: {_trimmed(str(error))}") from error
        if result.type() == cel.Type.BOOL:
            return bool(result.value())
        if result.type() == cel.Type.ERROR:
            raise self._failure(str(result.value()), values)
        raise ExpressionError(
            f"expression {self.text!r} gives {result.type().name()}, neither true nor false"
        )

    def _spoken_of(self, name: str, value: object) -> object:
        """Of a struct, only what is spoken of: the rest need not be made ready for CEL."""
        if self.inputs is None or not isinstance(value, Mapping):
            return value
        return {field: value[field] for struct, field in self.inputs if struct == name and field in value}

    def _failure(self, complaint: str, values: Mapping[str, object]) -> ExpressionError:
        missing = _MISSING.search(complaint)
        if missing is None:
            return ExpressionError(f"expression {self.text!r}: {_trimmed(complaint)}")
        known = list(values)
        for value in values.values():
            known += [str(key) for key in value] if isinstance(value, Mapping) else []
        close = nearest(missing[1], known)
        return ExpressionError(
            f"expression {self.text!r}: there is no value named {missing[1]!r}",
            hint=f"did you mean {close!r}?" if close else None,
        )

    def _usable(self, name: str, value: object) -> object:
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._double(name, value)
        if isinstance(value, Mapping):
            return {key: self._usable(f"{name}.{key}", part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._usable(name, part) for part in value]
        return value

    def _double(self, name: str, value: float) -> float:
        try:
            number = float(value)
        except OverflowError as error:
            raise ExpressionError(f"expression {self.text!r}: {name} is too large a number") from error
        if math.isnan(number):
            # `!(loss > 5)` would hold for a loss that is not a number.
            raise ExpressionError(f"expression {self.text!r}: {name} is not a number (NaN)")
        return number


def compile_expression(text: str, variables: Sequence[str], structs: Collection[str] = ()) -> Expression:
    """Compile a condition over doubles (`variables`) and maps (`structs`).

    When `structs` is a mapping from struct to its fields, an unknown field is refused here rather than at
    the first evaluation. Raises SpellingError, a ValueError, with CEL's complaint and the place in the text.
    """
    fields = (
        tuple((name, tuple(known)) for name, known in structs.items()) if isinstance(structs, Mapping) else ()
    )
    return _compile(text, tuple(variables), tuple(structs), fields)


@lru_cache(maxsize=4096)
def _compile(
    text: str,
    variables: tuple[str, ...],
    structs: tuple[str, ...],
    fields: tuple[tuple[str, tuple[str, ...]], ...],
) -> Expression:
    if len(text) > LONGEST_EXPRESSION:
        raise SpellingError(
            f"an expression has at most {LONGEST_EXPRESSION} characters, this one {len(text)}"
        )
    if not text.strip():
        raise SpellingError("an expression says something, such as power_headroom < 15%")
    promoted = promote(text)
    _check_fields(tokens_of(text), dict(fields))
    types = dict.fromkeys(variables, cel.Type.DOUBLE) | dict.fromkeys(structs, cel.Type.DYN)
    environment = cel.NewEnv(config=_CONFIG, variables=types, functions=[_SIZE])
    try:
        program = environment.compile(promoted.text)
    except RuntimeError as error:
        raise _explained(str(error), promoted, text, types) from error
    returned = program.return_type()
    if returned not in (cel.Type.BOOL, cel.Type.DYN):
        raise SpellingError(f"an expression is true or false, this one is a {returned.name().lower()}")
    spoken_of = {token.text for token in tokens_of(text)} | set(spoken_names(text))
    names = tuple(name for name in (*variables, *structs) if name in spoken_of)
    return Expression(text, names, _inputs(text, structs), program)


def _inputs(text: str, structs: Collection[str]) -> tuple[tuple[str, str], ...] | None:
    inputs: dict[tuple[str, str], None] = {}
    for name in spoken_names(text):
        struct, _, path = name.partition(".")
        if struct in structs:
            if not path:
                return None
            inputs[struct, path.partition(".")[0]] = None
    return tuple(inputs)


def spoken_names(text: str) -> tuple[str, ...]:
    """The free names of an expression, dotted ones whole, in the order they first appear."""
    tokens = tokens_of(text)
    bound = {
        tokens[at + 2].text
        for at, token in enumerate(tokens[:-2])
        if token.text in _BINDERS and tokens[at + 1].text == "("
    }
    names: dict[str, None] = {}
    for at, token in enumerate(tokens):
        if token.kind != "name" or token.text in _NOT_VARIABLES | bound or _mark(tokens, at - 1) == ".":
            continue
        parts, end = [token.text], at + 1
        while _mark(tokens, end) == "." and _mark(tokens, end + 2) != "(":
            parts += [part.text for part in tokens[end + 1 : end + 2]]
            end += 2
        if _mark(tokens, end) != "(":
            names[".".join(parts)] = None
    return tuple(names)


def _mark(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _check_fields(tokens: Sequence[Token], fields: Mapping[str, tuple[str, ...]]) -> None:
    for at, token in enumerate(tokens[:-2]):
        known = fields.get(token.text, ())
        asked = tokens[at + 2]
        if not known or _mark(tokens, at - 1) == "." or tokens[at + 1].text != "." or asked.text in known:
            continue
        raise SpellingError(
            f"{asked.place}: {token.text} has no {asked.text!r}", name=asked.text, known=known
        )


def _explained(complaint: str, promoted: Promoted, text: str, known: Collection[str]) -> SpellingError:
    """CEL's first complaint in one line, with its column in the text as written."""
    found = _COMPLAINT.search(complaint)
    if found is None or int(found[1]) < 1:
        too_deep = "recursion" in complaint
        return SpellingError("the expression is nested too deep" if too_deep else _trimmed(complaint))
    lines = promoted.text.splitlines(keepends=True)
    offset = promoted.written_offset(sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1)
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    place = f"at column {column}" if line == 1 else f"at line {line}, column {column}"
    unknown = re.match(r"undeclared reference to '([^']*)'", found[3])
    if unknown:
        return SpellingError(f"{place}: unknown name {unknown[1]!r}", name=unknown[1], known=known)
    return SpellingError(f"{place}: {_trimmed(found[3])}")


def _trimmed(complaint: str) -> str:
    """Without CEL's status words and its list of every token the grammar knows."""
    text = re.sub(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$", "", complaint.splitlines()[0])
    return re.sub(r" expecting \{.*", "", text).replace("<EOF>", "end of expression")
