"""Which policy was put in force in this state folder, what was before it, who approved that, and why?

    policies/history.jsonl     every promotion and rollback; the last line counts

Documents lie among the objects, by their digest. The file is replaced whole, so a reader sees the old history
or the new one. The journal has the same as `Adopted`, from the moment that decisions are made by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live import Home
from wattline.release.durable import locked, write_whole

_MOST_BYTES = 16 << 20
_MOST_CHARACTERS = 2000


class Placing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the history. Number 0: nothing is promoted, as it was before the first."""

    number: int
    at: float
    by: str
    policy: str = ""  # its name
    sha256: str = ""
    approved_by: str = ""
    because: str = ""
    previous: int = 0  # the number that was in force until then
    rolled_back: bool = False


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Placing).decode


class PolicyShelf:
    """The history of one state folder."""

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "policies"
        self._file = self._folder / "history.jsonl"

    def history(self) -> tuple[Placing, ...]:
        """All of it, the oldest first; empty where nothing was ever promoted."""
        try:
            with self._file.open("rb") as file:
                data = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise UnavailableError(f"{self._file}: cannot be read: {error.strerror or error}") from error
        try:
            return tuple(_decode(line) for line in data.splitlines())
        except msgspec.MsgspecError as error:
            raise UnavailableError(
                f"{self._file}: this is no history of policies: {error}",
                hint="restore it from a backup, or move it away: then nothing is promoted",
            ) from error

    def current(self) -> Placing | None:
        """What is promoted now; None where nothing is."""
        return _current(self.history())

    def stamp(self) -> tuple[int, int] | None:
        """Another one means that the history may have changed; quick enough to be asked at every turn."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ino)

    def promote(
        self, policy: str, sha256: str, *, by: str, at: float, approved_by: str, because: str
    ) -> Placing:
        """Put a document in force; one that is there already stays, and nothing is written."""
        for what, text in (("--approved-by", approved_by), ("--because", because)):
            check_words(what, text)
        with self._held() as history:
            now = _current(history)
            if now is not None and now.sha256 == sha256:
                return now
            placing = Placing(
                number=max((each.number for each in history), default=0) + 1,
                at=at,
                by=by,
                policy=policy,
                sha256=sha256,
                approved_by=approved_by,
                because=because,
                previous=now.number if now is not None else 0,
            )
            self._write(history, placing)
        return placing

    def rollback(self, *, by: str, at: float, because: str = "") -> Placing:
        """Back to what was in force before the present one was promoted, which may be nothing."""
        check_words("--because", because, needed=False)
        with self._held() as history:
            now = _current(history)
            if now is None:
                raise RefusedError(
                    "no policy is promoted here, so there is none to take back",
                    hint="`wattline policy show` has the history",
                )
            promoted = {each.number: each for each in history if not each.rolled_back}
            before = promoted.get(promoted[now.number].previous)
            placing = Placing(
                number=before.number if before is not None else 0,
                at=at,
                by=by,
                policy=before.policy if before is not None else "",
                sha256=before.sha256 if before is not None else "",
                because=because,
                previous=now.number,
                rolled_back=True,
            )
            self._write(history, placing)
        return placing

    @contextmanager
    def _held(self) -> Iterator[tuple[Placing, ...]]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with locked(self._folder):
            yield self.history()

    def _write(self, history: Sequence[Placing], placing: Placing) -> None:
        lines = b"".join(_encode(each) + b"\n" for each in (*history, placing))
        write_whole(self._file, lines)


def check_words(what: str, text: str, *, needed: bool = True) -> None:
    """Words of people reach terminals and journals."""
    if (needed and not text.strip()) or len(text) > _MOST_CHARACTERS or not text.isprintable():
        raise UsageError(
            f"{what}: {'1' if needed else '0'} to {_MOST_CHARACTERS} printable characters, got {text[:40]!r}"
        )


def _current(history: Sequence[Placing]) -> Placing | None:
    return history[-1] if history and history[-1].number else None
