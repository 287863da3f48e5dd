"""What can go wrong, by who can mend it; each kind has one exit code."""

from __future__ import annotations

from dataclasses import dataclass


class WattlineError(Exception):
    """Anything a person should read as a sentence, not as a traceback.

    The message names the subject, the rule and the value; `hint` says what to do.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class RefusedError(WattlineError):
    """Policy or a limit said no, a gate failed, or the training failed."""

    exit_code = 1


class UsageError(WattlineError):
    """The command line asks for something that cannot be asked."""

    exit_code = 2


class UnavailableError(WattlineError):
    """Something needed is missing, unreadable or broken, so nothing could be evaluated."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault in a document, with its place and what would be right."""

    file: str
    line: int = 0
    column: int = 0
    field: str = ""
    message: str
    value: str | None = None
    allowed: str | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        text = f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"
        if self.value is not None:
            text += f", got {self.value}"
        if self.allowed is not None:
            text += f"; allowed: {self.allowed}"
        if self.nearest is not None:
            text += f"; did you mean {self.nearest!r}?"
        return text


class DocumentError(WattlineError):
    """A document that people wrote is wrong: every fault found, in the order of the file."""

    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column)))
        super().__init__("\n".join(str(problem) for problem in self.problems))
