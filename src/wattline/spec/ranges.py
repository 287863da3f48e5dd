"""Which racks does `r2..r9` stand for? A range of like things, written once."""

from __future__ import annotations

import re

from wattline.spec.quantities import check_name

LONGEST_RANGE = 10_000

_RANGE = re.compile(r"(?P<stem>.*?)(?P<first>\d{1,9})\.\.(?P=stem)(?P<last>\d{1,9})\Z", re.DOTALL)


def check_name_or_range(value: str) -> str:
    """A name, or two names that differ in the number at their end: `r2..r9`, or `r02..r09`."""
    if ".." not in value:
        return check_name(value)
    match = _RANGE.match(value)
    if match is None:
        raise ValueError("a range is two names that differ in the number at their end, such as r2..r9")
    first, last = int(match["first"]), int(match["last"])
    if not first <= last:
        raise ValueError("a range goes up, such as r2..r9")
    if last - first >= LONGEST_RANGE:
        raise ValueError(f"a range holds at most {LONGEST_RANGE:,} names")
    for number in ("first", "last"):
        check_name(match["stem"] + match[number])
    return value


def names_in(value: str) -> tuple[str, ...]:
    """Every name that a checked name or range stands for; padded with zeros if it is written so."""
    match = _RANGE.match(value)
    if match is None:
        return (value,)
    width = len(match["first"])
    numbers = range(int(match["first"]), int(match["last"]) + 1)
    return tuple(f"{match['stem']}{number:0{width}}" for number in numbers)
