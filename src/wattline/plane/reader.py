"""How are questions answered while somebody else decides?

By the journal, as any other process would: a reader has a session of its own and folds what was recorded. No
question ever waits for a decision or holds one up, nothing is locked, and a server that stands by answers
just as the one that conducts. One thread asks the session, so that every answer is of one moment. Questions
about the past take as long as the journal is, and have a thread and a session of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from wattline.errors import UnavailableError
from wattline.live import Home
from wattline.plane.finding import View
from wattline.plane.session import Session

T = TypeVar("T")

_LOOK_SECONDS = 0.2
_MOST_RECALLS = 4  # questions about the past at once, the one that is answered included


class Reader:
    """One session that follows the journal, and the thread that asks it."""

    def __init__(self, home: Home, database: str | None) -> None:
        self._home, self._database = home, database
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wattline-reader")
        self._past = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wattline-past")
        self._recalls = threading.BoundedSemaphore(_MOST_RECALLS)
        self._session: Session = self._thread.submit(Session, home, database).result()
        self._closed = threading.Event()
        self._heard: list[Callable[[int], None]] = []
        self._last_seq = 0
        self._watcher = threading.Thread(target=self._watch, name="wattline-journal", daemon=True)
        self._watcher.start()

    def ask(self, question: Callable[[View], T]) -> Future[T]:
        """Answer from the journal as it is now; nothing was ever run is an UnavailableError."""
        return self._thread.submit(lambda: question(_view_of(self._session)))

    def look(self, question: Callable[[Session, View | None], T]) -> Future[T]:
        """The same where nothing was run yet."""
        return self._thread.submit(lambda: question(self._session, _view_if_any(self._session)))

    def recall(self, question: Callable[[View], T]) -> Future[T]:
        """Answer what needs the journal from some earlier time on."""
        if not self._recalls.acquire(blocking=False):
            raise UnavailableError(
                f"{_MOST_RECALLS} questions about the past wait already", hint="ask again in a moment"
            )

        def answer() -> T:
            session = Session(self._home, self._database)
            try:
                return question(_view_of(session))
            finally:
                session.close()

        asked = self._past.submit(answer)
        asked.add_done_callback(lambda _: self._recalls.release())
        return asked

    @property
    def last_seq(self) -> int:
        """Of the newest record that was seen; may be a moment old."""
        return self._last_seq

    def when_recorded(self, tell: Callable[[int], None]) -> Callable[[], None]:
        """Tell of new records, from a thread of its own; returns how to stop that."""
        self._heard = [*self._heard, tell]

        def stop() -> None:
            self._heard = [each for each in self._heard if each is not tell]

        return stop

    def close(self) -> None:
        self._closed.set()
        self._watcher.join()
        self._past.shutdown(cancel_futures=True)
        self._thread.submit(self._session.close).result()
        self._thread.shutdown()

    def _watch(self) -> None:
        """Look for new records now and then; a database that is away is asked again."""
        while not self._closed.wait(_LOOK_SECONDS):
            try:
                last = self._session.store.journal.last_seq()
            except UnavailableError:
                continue
            if last != self._last_seq:
                self._last_seq = last
                for tell in self._heard:
                    tell(last)


def _view_if_any(session: Session) -> View | None:
    session.refresh()
    if session.state is None:
        return None
    writer = session.store.lease.current()
    at = session.state.at if writer is None else max(time.time(), session.state.at)
    return View(session=session, state=session.state, writer=writer, at=at)


def _view_of(session: Session) -> View:
    view = _view_if_any(session)
    if view is None:
        raise UnavailableError("nothing was ever run here", hint="submit a run first")
    return view
