"""How long is an answer of PostgreSQL waited for, when the server cannot even say that it took too long?

Its own limits (statement_timeout) are kept by the server's process. One that was stopped, or whose disk does
not come back from a sync, keeps none, while the machine's kernel goes on answering for it. So the client has
a limit of its own, a little longer: then the connection is given up, and what it was asked is in doubt.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

Result = TypeVar("Result")

GRACE_SECONDS = 15.0
"""By how much the client's limit is longer than the server's, which has more to say."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection on which nothing is waited for longer than `answer_seconds`."""

    answer_seconds = 60.0

    def wait(self, gen: Generator[Any, Any, Result], *rest: Any, **options: Any) -> Result:
        return super().wait(self._bounded(gen), *rest, **options)

    def _bounded(self, gen: Generator[Any, Any, Result]) -> Generator[Any, Any, Result]:
        """Passes everything on; psycopg looks in a few times a second, also when nothing has come."""
        give_up_at = time.monotonic() + self.answer_seconds
        try:
            asked = next(gen)
            while True:
                ready = yield asked
                if not ready and time.monotonic() > give_up_at:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {self.answer_seconds:g} s")
                asked = gen.send(ready)
        except StopIteration as stopped:
            result: Result = stopped.value
            return result
