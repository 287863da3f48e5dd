"""Why can a line of a trace not be used? Numbers and times that others wrote, or the rule they break."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

# Traces write local time without its zone; only the gaps between times count.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class FlawError(ValueError):
    """A value breaks a rule. Rules are few and fixed, since jobs are counted by them."""

    def __init__(self, rule: str, value: object) -> None:
        super().__init__(rule)
        self.rule = rule
        self.value = value


def number_of(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FlawError(f"{what} is not a number", text) from None


def count_of(what: str, text: str) -> int:
    """A whole number, also where a table wrote 8.0."""
    try:
        return int(text)
    except ValueError:
        number = number_of(what, text)
        if not number.is_integer():
            raise FlawError(f"{what} is not a whole number", text) from None
        return int(number)


def time_of(what: str, text: str) -> float:
    """Seconds since 1970 of a date with a time; without a zone it is taken as it stands."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FlawError(f"{what} is not a time", text) from None
    return (moment - _EPOCH).total_seconds() if moment.tzinfo is None else moment.timestamp()


def split_row(text: str, width: int, separator: str = ",") -> list[str]:
    try:
        fields = next(csv.reader([text])) if '"' in text and separator == "," else text.split(separator)
    except csv.Error as error:
        raise FlawError(f"the row cannot be split: {error}", text) from None
    if len(fields) != width:
        raise FlawError("wrong number of columns", f"{len(fields)} instead of {width}")
    return fields


def check_gpus(gpus: int) -> None:
    """A job without GPUs is a CPU job: the twin's halls have nothing to place."""
    if gpus < 1:
        raise FlawError("no GPU asked for", gpus)
