"""How does a call that is made again after a lost answer count once? By the key that it came with."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated

from msgspec import Meta

from wattline.api.call import Call, Parameter
from wattline.api.problems import ProblemError
from wattline.plane.submitting import new_key

_MOST_KEY_CHARS = 200

KEY = Parameter(
    name="Idempotency-Key",
    kind=Annotated[str, Meta(min_length=1, max_length=_MOST_KEY_CHARS)],
    say="The same for a repeat of the same call, so that it counts once.",
)


def scope_of(call: Call) -> str:
    """What repeats of this call have in common: keys of one caller are no business of another.

    Without a key every call is one of its own, so this is asked once a call.
    """
    given = call.request.headers.get("idempotency-key")
    if given is not None and (not 0 < len(given) <= _MOST_KEY_CHARS or not given.isprintable()):
        raise ProblemError(
            422,
            f"Idempotency-Key: 1 to {_MOST_KEY_CHARS} printable characters, got {len(given)}",
            exit_code=2,
        )
    return f"{call.caller.name}\0{new_key() if given is None else given}"


def name_message(kind: str, scope: str) -> str:
    """Under which id what a call asks for is handed over: the second of the same id is not new."""
    return f"{kind}-{sha256(scope.encode()).hexdigest()[:40]}"
