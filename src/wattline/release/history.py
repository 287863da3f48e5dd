"""Which release is current on a channel, what was before it, and who moved it?

A channel is one folder:

    1-9f86d081884c/     a release: artifacts/, manifest.json, metrics.json, gates.json, release.json
    2-60303ae22b99/
    current             a link to one of them; renaming it into place is the one step that counts
    history.jsonl       every move of the link
    .pending            the move under way; says after a crash what is to be finished or taken back
    .staging/           a release that is being put together
"""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from wattline.errors import UnavailableError, UsageError
from wattline.release.canonical import decode_canonical, encode_canonical
from wattline.release.durable import move_folder, point, sync_folder, write_whole
from wattline.release.facts import Artifact

LONGEST_TEXT = 2000
MOST_HISTORY_BYTES = 64 * 2**20
MOST_RELEASE_BYTES = 64 * 2**20

Number = Annotated[int, Meta(ge=1, le=10**9)]
ManifestDigest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
_FOLDER = re.compile(r"([1-9]\d{0,9})-([0-9a-f]{12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Who, when and why."""

    by: str
    at: float
    note: str = ""
    approved_by: str | None = None

    def __post_init__(self) -> None:
        for what, value in (("by", self.by), ("note", self.note), ("approved_by", self.approved_by or "")):
            if len(value) > LONGEST_TEXT or not value.isprintable():
                raise UsageError(f"{what}: at most {LONGEST_TEXT} printable characters, got {value[:40]!r}")
        if not self.by:
            raise UsageError("by: a promotion or rollback has somebody who did it")
        if not math.isfinite(self.at):
            raise UsageError(f"at: seconds since 1970, got {self.at}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What was released and by whose act. `previous` is the number that was current until then."""

    name: str
    channel: str
    number: Number
    manifest: ManifestDigest
    previous: Number | None
    artifacts: tuple[Artifact, ...]
    act: Act

    @property
    def folder(self) -> str:
        return folder_name(self.number, self.manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One move of the `current` link."""

    kind: Literal["promote", "rollback"]
    number: Number
    manifest: ManifestDigest
    previous: Number | None
    act: Act

    @property
    def folder(self) -> str:
        return folder_name(self.number, self.manifest)


def folder_name(number: int, manifest: str) -> str:
    return f"{number}-{manifest.removeprefix('sha256:')[:12]}"


class Channel:
    """The folder of one channel. Whoever changes it holds its lock and has called `settle`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staging = folder / ".staging"
        self._link = folder / "current"
        self._history = folder / "history.jsonl"
        self._pending = folder / ".pending"

    def current(self) -> Release | None:
        target = self._target()
        return None if target is None else self.read_release(target)

    def current_number(self) -> int | None:
        """By the link's own words: a way back must not depend on the current release being whole."""
        target = self._target()
        return None if target is None else int(target.partition("-")[0])

    def promotion(self, number: int) -> Move | None:
        """The move that put a release here; every promotion has its own number."""
        return next((move for move in self.moves() if (move.kind, move.number) == ("promote", number)), None)

    def numbers(self) -> dict[int, str]:
        """The folder of every release that was ever put together here."""
        matches = (_FOLDER.fullmatch(entry.name) for entry in self.folder.iterdir())
        return {int(match[1]): match[0] for match in matches if match}

    def read_release(self, folder: str) -> Release:
        """A release by its folder; what `release.json` says must fit the folder's name."""
        path = self.folder / folder / "release.json"
        release = decode_canonical(
            _read(path, MOST_RELEASE_BYTES), Release, what=str(path), most_bytes=MOST_RELEASE_BYTES
        )
        if release.folder != folder:
            raise UnavailableError(
                f"{path} is of the release {release.folder}, so it was altered or misplaced"
            )
        return release

    def moves(self) -> tuple[Move, ...]:
        """Every move that took effect, oldest first."""
        moves = self._written_moves()
        pending = self._pending_move()
        took_effect = pending is not None and self._target() == pending.folder
        return (*moves, pending) if pending and took_effect and moves[-1:] != (pending,) else moves

    def settle(self) -> None:
        """Finish or take back what a crash left half done."""
        _remove(self.staging)
        pending = self._pending_move()
        if pending is None:
            return
        if self._target() == pending.folder:
            self._write_moves(self.moves())
        elif pending.kind == "promote":
            _remove(self.folder / pending.folder)  # it was never current
        self._pending.unlink()
        sync_folder(self.folder)

    def apply(self, move: Move) -> None:
        """Move the link. A crash before its rename leaves all as it was; after it, all is new."""
        write_whole(self._pending, encode_canonical(move))
        if move.kind == "promote":
            move_folder(self.staging, self.folder / move.folder)
        point(self._link, move.folder)
        self.settle()

    def _target(self) -> str | None:
        try:
            target = str(self._link.readlink())
        except FileNotFoundError:
            return None
        if _FOLDER.fullmatch(target) is None:
            raise UnavailableError(
                f"{self._link} leads to {target[:80]!r}, which is no release of this channel",
                hint="let it lead to the folder of a release, as in `ln -sfn 3-0123456789ab current`",
            )
        return target

    def _pending_move(self) -> Move | None:
        try:
            data = _read(self._pending, MOST_HISTORY_BYTES)
        except FileNotFoundError:
            return None
        return decode_canonical(data, Move, what=str(self._pending), most_bytes=MOST_HISTORY_BYTES)

    def _written_moves(self) -> tuple[Move, ...]:
        try:
            lines = _read(self._history, MOST_HISTORY_BYTES).splitlines(keepends=True)
        except FileNotFoundError:
            return ()
        return tuple(
            decode_canonical(line, Move, what=f"{self._history}:{at}", most_bytes=MOST_HISTORY_BYTES)
            for at, line in enumerate(lines, start=1)
        )

    def _write_moves(self, moves: tuple[Move, ...]) -> None:
        write_whole(self._history, b"".join(encode_canonical(move) for move in moves))


def _read(path: Path, most_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most_bytes + 1)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
