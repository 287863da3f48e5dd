"""What is the name of some content?"""

from __future__ import annotations

import hashlib
import re
from typing import Self

from wattline.errors import UsageError

_SYNTAX = re.compile(r"sha256:[0-9a-f]{64}")


class Digest(str):
    """`sha256:` and 64 lower-case hex digits, nothing else: safe to make a path of."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not _SYNTAX.fullmatch(text):
            raise UsageError(
                f"digest: must be 'sha256:' and 64 lower-case hex digits, got {text[:80]!r}",
                hint="copy the digest whole, as it was printed",
            )
        return super().__new__(cls, text)

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(f"sha256:{hashlib.sha256(content).hexdigest()}")

    @property
    def hex(self) -> str:
        return self.removeprefix("sha256:")
