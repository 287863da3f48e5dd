"""Repository: which checkpoints does a store hold, and whose turn is it to add one?

A checkpoint is there when its manifest is: `checkpoints/step-00000120.e3`. `fence` says which epoch may
publish, and which checkpoints of earlier ones were there when it began: what an old attempt publishes later
does not count, even in a store that cannot keep it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from wattline.checkpoint.errors import CheckpointError, StaleEpochError
from wattline.checkpoint.stores import MissingError, Store

CHECKPOINTS = "checkpoints/"
PACKS = "packs/"
PARTS = "parts/"
MAX_NUMBER = 2**63 - 1
_FENCE = "fence"
_MOST_FENCE_BYTES = 2**24
_NAME = re.compile(r"step-(\d{8,19})\.e(\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A checkpoint by its name alone: nothing of it has been read or verified."""

    name: str
    step: int
    epoch: int
    modified_at: float


@dataclass(frozen=True, slots=True)
class _Fence:
    epoch: int
    before: frozenset[str]  # names of earlier epochs that count


def checkpoint_name(step: int, epoch: int) -> str:
    """Sorts by step for people."""
    for what, number in (("step", step), ("epoch", epoch)):
        if not 0 <= number <= MAX_NUMBER:
            raise CheckpointError(f"{what} {number} is not between 0 and {MAX_NUMBER}")
    return f"step-{step:08d}.e{epoch}"


def list_checkpoints(store: Store) -> tuple[Entry, ...]:
    """Newest first: a later epoch owns the repository, so it goes before a higher step."""
    fence = _read_fence(store)
    entries = [entry for entry in _all_entries(store) if _counts(entry, fence)]
    return tuple(sorted(entries, key=lambda entry: (entry.epoch, entry.step), reverse=True))


def fence(store: Store, epoch: int) -> None:
    """From now on only attempts of this epoch or a later one may publish here."""
    checkpoint_name(0, epoch)
    with store.exclusive():
        current = _read_fence(store)
        if current is not None and epoch <= current.epoch:
            _require(store, current, epoch)
            return
        before = sorted(entry.name for entry in _all_entries(store) if _counts(entry, current))
        store.put(_FENCE, json.dumps({"epoch": epoch, "before": before}).encode() + b"\n", replace=True)


def require_current(store: Store, epoch: int) -> None:
    """Raise when the repository has been fenced above this epoch."""
    current = _read_fence(store)
    if current is not None:
        _require(store, current, epoch)


def publish(store: Store, raw_manifest: bytes, *, step: int, epoch: int) -> str:
    """Make it the checkpoint of its step, unless a newer epoch has fenced this one off meanwhile."""
    name = checkpoint_name(step, epoch)
    with store.exclusive():
        require_current(store, epoch)
        store.put(CHECKPOINTS + name, raw_manifest, replace=True)
    require_current(store, epoch)  # where nobody can be kept out: it came too late, and does not count
    return name


def _all_entries(store: Store) -> Sequence[Entry]:
    entries = []
    for stored in store.list(CHECKPOINTS):
        name = stored.name.removeprefix(CHECKPOINTS)
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        step, epoch = int(match[1]), int(match[2])
        if max(step, epoch) <= MAX_NUMBER and name == checkpoint_name(step, epoch):
            entries.append(Entry(name=name, step=step, epoch=epoch, modified_at=stored.modified_at))
    return entries


def _counts(entry: Entry, fence: _Fence | None) -> bool:
    return fence is None or entry.epoch >= fence.epoch or entry.name in fence.before


def _require(store: Store, current: _Fence, epoch: int) -> None:
    if epoch < current.epoch:
        raise StaleEpochError(
            f"{store.address}: epoch {epoch} is stale: the repository belongs to epoch {current.epoch}",
            hint="a newer attempt of this phase has taken over; this one has nothing left to do",
        )


def _read_fence(store: Store) -> _Fence | None:
    try:
        raw = store.read(_FENCE, 0, _MOST_FENCE_BYTES)
    except MissingError:
        return None
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"epoch": int(epoch), "before": [*before]} if epoch >= 0:
            return _Fence(epoch, frozenset(str(name) for name in before))
    raise CheckpointError(
        f"{store.address}/{_FENCE}: says {raw[:40]!r} instead of an epoch, so nothing may be published",
        hint='write {"epoch": N, "before": []} into it, N being the epoch of the current attempt',
    )
