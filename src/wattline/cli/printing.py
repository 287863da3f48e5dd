"""How does data reach stdout: as text for people, as JSON for programs, and never as orders to a terminal?"""

from __future__ import annotations

import codecs
import io
import json
import re
import sys

import msgspec
from rich.console import Console
from rich.table import Table

# For a terminal that cannot do Unicode; anything else becomes a question mark.
_ASCII = {
    "×": "x",
    "→": "->",
    "–": "-",
    "…": "...",
    "°": "",
    "·": ",",
    "≤": "<=",
    "✓": "+",
    "✗": "X",
    "█": "#",
    "░": "-",
}
# Everything that moves a cursor, changes a terminal's mode or reorders what is read, but line ends and tabs.
_ORDERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_WIDEST = 120  # sentences are hard to follow on wider lines


def stdout_console() -> Console:
    """A console for data: colours on a terminal only, symbols only where the encoding has them."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("wattline", _spell)
        sys.stdout.reconfigure(errors="wattline")
    console = Console(highlight=False, markup=False, emoji=False)
    if console.width > _WIDEST:
        console.width = _WIDEST
    return console


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_ASCII.get(letter, "?") for letter in text), error.end


def columns(*names: str, last_ratio: bool = True) -> Table:
    """A table without borders, as wide as it needs; the last column takes what is left and wraps."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    for at, name in enumerate(names):
        is_last = at == len(names) - 1
        # The first column names things that people copy.
        table.add_column(name, overflow="fold", no_wrap=at == 0, ratio=1 if is_last and last_ratio else None)
    return table


def print_json(value: object) -> None:
    """Structs, dataclasses and plain values alike; what is not a finite number becomes null."""
    plain = json.loads(msgspec.json.encode(value))
    json.dump(plain, sys.stdout, indent=2)
    sys.stdout.write("\n")


def plain(text: str) -> str:
    """Text from a script or a person, with nothing in it that a terminal would obey."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _ORDERS.sub(lambda found: _visible(found[0]), lines)


def _visible(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
