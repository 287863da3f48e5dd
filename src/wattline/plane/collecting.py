"""When is garbage looked for? Between two turns of a server's loop, not while somebody waits for an answer.

Turns and answers leave hardly any cycles behind, and a fleet's state is millions of objects. Left to itself,
Python goes through them whenever somebody happens to make one object too many: half of the slowest answers
were slow for that alone. What is there when a server begins is there for good.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# New objects, collections of the young, and of the middle-aged, after which it is time for the next older.
_YOUNG, _MIDDLE, _OLD = 2_000, 10, 100
# So many new objects at once, and it is not waited for the end of a turn.
_TOO_MANY = 100_000


@contextmanager
def collecting_between_turns() -> Iterator[Callable[[], None]]:
    """Gives what is to be called between turns; as it was before, afterwards."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_TOO_MANY, *before[1:])
    try:
        yield _collect
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _collect() -> None:
    """As often as Python itself would, at a better moment."""
    young, middle, old = gc.get_count()
    if young >= _YOUNG:
        gc.collect(2 if old >= _OLD else 1 if middle >= _MIDDLE else 0)
