"""Escaping: how does text from outside stand in a comment, a log or a file without becoming part of it?

Names, paths and messages come from a pull request. They must not hide what they say, ping people, link, close
a tag, or end a line that a machine reads.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from urllib.parse import quote

# Control and format characters, direction overrides among them, halves of pairs, line and paragraph ends.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# A numeric reference never takes the place of markup (CommonMark, "Entity and numeric character references").
_MARKUP = frozenset("\\`*_{}[]<>#|~$!&@^")
_BREAK = "\u200b"  # of no width: what is before it and after it are read apart
# What turns into a mention, an issue, a label, a link or a picture of a face once the text is on the page.
_JOINED = re.compile(
    r"(?<=[@#!~$%&^])(?=[\w\"])|(?<=GH)(?=-\d)|(?<=:)(?=//|[a-z+-][\w+-]{0,64}:)|(?<=www)(?=\.)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"`([^`]+)`")
_CODE = "<code>{}</code>"
_LONGEST_MARKER = 400


def visible(text: str, *, keep: str = "\n\t") -> str:
    """Every character that cannot be seen, as its number; line ends and tabs stay."""
    return "".join(
        f"\\u{ord(letter):04x}" if letter not in keep and unicodedata.category(letter) in _HIDDEN else letter
        for letter in text
    )


def one_line(text: str, most: int = 500) -> str:
    """Text on one line, cut where there is no more room."""
    line = " ".join(visible(text[: 4 * most], keep="\n\t\r").split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def markdown(text: str, most: int = 500) -> str:
    """Text as text: nothing in it is markup, a mention or a link. At most this long, as written."""
    return _spell(one_line(text, most), most)


def code(text: str, most: int = 200) -> str:
    """A name, set apart from the words around it; in a table too."""
    return _CODE.format(markdown(text, most)) if text.strip() else ""


def sentence(text: str, most: int = 500) -> str:
    """A message, in which what stands between backticks is a command or a name."""
    written = ""
    for at, part in enumerate(_PARTS.split(one_line(text, most))):
        room = most - len(written)
        if part and room > len(_CODE) + 1:
            written += _CODE.format(_spell(part, room - len(_CODE))) if at % 2 else _spell(part, room)
    return written


def _spell(line: str, most: int) -> str:
    written: list[str] = []
    room = most - 1
    for letter in _JOINED.sub(_BREAK, line):
        spelled = f"&#{ord(letter)};" if letter in _MARKUP or letter == _BREAK else letter
        room -= len(spelled)
        if room < 0:
            return "".join(written) + "…"
        written.append(spelled)
    return "".join(written)


def marker(file: str) -> str:
    """What a comment is found by when it is to be updated; nobody sees it."""
    name = quote(file, errors="replace")
    if len(name) > _LONGEST_MARKER:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"<!-- wattline:check:{name} -->"


def units(text: str) -> int:
    """How long a text is for those who count UTF-16: never less than what others count as characters."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2
