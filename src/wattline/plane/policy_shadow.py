"""A candidate in shadow: who asked for it, and what was seen of it so far?

    policies/canary.json          the candidate, by digest; written by who asks for it
    policies/canary-seen.json     what was seen; written by who conducts, and by nobody else

Whoever conducts looks at the first at every turn, so that a candidate comes and goes under a queue that runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from wattline.control import Canary, Sighting
from wattline.decoding import decode_json
from wattline.errors import UnavailableError, WattlineError
from wattline.live import Home
from wattline.plane.session import Session
from wattline.release.durable import write_whole
from wattline.spec.policy import Policy
from wattline.state import Decision, State

_WRITE_EVERY_SECONDS = 2.0
_MOST_BYTES = 4 << 20
_Told = TypeVar("_Told", bound=msgspec.Struct)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried in shadow, since when, at whose word."""

    policy: str
    sha256: str
    by: str
    at: float
    # Sites, racks or nodes that it decides for, and the share of runs that go there; empty: in shadow.
    on: tuple[str, ...] = ()
    share: float = 0.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one candidate up to a time."""

    candidate: Candidate
    at: float
    sighting: Sighting


class CanaryFiles:
    """The two files of a state folder."""

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "policies"
        self._asked, self._seen = self._folder / "canary.json", self._folder / "canary-seen.json"

    def stamp(self) -> tuple[int, int] | None:
        """Another one means that the candidate may be another; quick enough for every turn."""
        try:
            found = self._asked.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ino)

    def begin(self, candidate: Candidate) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_whole(self._asked, msgspec.json.encode(candidate))

    def stop(self) -> Candidate | None:
        """What was tried until now, as far as that can be read; what was seen of it stays."""
        try:
            return self.candidate()
        except UnavailableError:
            return None
        finally:
            self._asked.unlink(missing_ok=True)

    def candidate(self) -> Candidate | None:
        return read_told(self._asked, Candidate)

    def seen(self) -> Seen | None:
        """Of the last candidate of which anything was seen."""
        return read_told(self._seen, Seen)

    def note(self, seen: Seen) -> None:
        """Without waiting for the disk: a turn must not, and what a power cut takes is a count."""
        beside = self._seen.with_name(f".{self._seen.name}.new")
        beside.write_bytes(msgspec.json.encode(seen))
        beside.replace(self._seen)


class Shadow:
    """What a conductor keeps of it: asks the candidate at every turn, and never fails because of it."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._files = CanaryFiles(session.home)
        self._stamp: tuple[int, int] | None = None
        self._candidate: Candidate | None = None
        self._canary: Canary | None = None
        self._before = Sighting()
        self._write_at = 0.0

    def watch(self, state: State, decided: Decision, in_force: Policy) -> None:
        """One turn, between its decision and its settling."""
        stamp = self._files.stamp()
        if stamp != self._stamp:
            self.close()
            self._stamp = stamp
            self._begin()
        if self._canary is None:
            return
        self._canary.watch(state, decided, in_force)
        if self._clock() >= self._write_at:
            self.close()

    def close(self) -> None:
        """Write down what was seen up to now."""
        if self._canary is not None:
            self._write(self._before.plus(self._canary.seen()))

    def _begin(self) -> None:
        self._canary, self._candidate, self._before = None, None, Sighting()
        try:
            self._candidate = self._files.candidate()
            if self._candidate is None or self._candidate.on:
                return
            seen = self._files.seen()
            if seen is not None and seen.candidate == self._candidate:
                self._before = seen.sighting  # an earlier process saw it
            self._canary = Canary(self._session.policy_of(self._candidate.sha256))
        except WattlineError as error:
            self._write(self._before.plus(Sighting(errors=1, first_errors=(error.message,))))

    def _write(self, sighting: Sighting) -> None:
        self._write_at = self._clock() + _WRITE_EVERY_SECONDS
        if self._candidate is None or self._candidate.on:
            return
        # A disk that is full must not end what trains; what was seen is kept here, and written later.
        with suppress(OSError):
            self._files.note(Seen(candidate=self._candidate, at=time.time(), sighting=sighting))


def read_told(path: Path, kind: type[_Told]) -> _Told | None:
    try:
        with path.open("rb") as file:
            return decode_json(file.read(_MOST_BYTES), kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnavailableError(f"{path}: cannot be read: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise UnavailableError(
            f"{path}: cannot be read: {error}", hint="`wattline policy canary stop` ends it"
        ) from error
