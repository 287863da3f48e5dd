"""Documents: what does a file in an attempt's directory say, whoever wrote it?"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from wattline.decoding import decode_json
from wattline.engines.files import read_bounded

Document = TypeVar("Document")


def read_document(directory: Path, name: str, kind: type[Document]) -> Document | None:
    """A document of this kind; None where there is none, or the command has put something else there."""
    try:
        text = read_bounded(directory, name)
        return None if text is None else decode_json(text, kind)
    except (msgspec.DecodeError, RecursionError, OSError):
        return None
