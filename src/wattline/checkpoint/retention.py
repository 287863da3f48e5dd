"""Retention: which checkpoints, and which packs that no checkpoint needs, may go?

A pack goes when no checkpoint that stays refers to it, however old the checkpoint is that it was written
for: a later one may be a difference to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.reading import Opened, open_checkpoint, verify_tensors
from wattline.checkpoint.repository import CHECKPOINTS, PACKS, PARTS, Entry, list_checkpoints
from wattline.checkpoint.stores import Store

# A pack that no checkpoint names may be one whose writer is about to publish it.
GRACE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays. Each rule keeps checkpoints of its own; what no rule keeps may go.

    Where several are wanted, one more stays if all of them need one and the same pack: the newest that does
    not. So no damage to one file takes all there is.
    """

    last: int = 1  # the newest so many that are whole
    best: int = 0  # and so many with the lowest of this metric
    by: str = "loss"
    within_seconds: float = 0.0  # and all that are younger than this, by the store's clock
    pinned: frozenset[str] = frozenset()  # and these, by the hash of their manifest: releases need them


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What went, or would go."""

    checkpoints: tuple[str, ...]
    packs: tuple[str, ...]
    freed_bytes: int


def prune(store: Store, keep: Keep, *, dry_run: bool = False) -> Pruned:
    """Remove what no rule keeps. Every byte of the newest that stay is read first: what this removes may be
    the last good copy."""
    return _prune(store, list_checkpoints(store), keep, verify_tensors, dry_run=dry_run)


def prune_after_saving(store: Store, latest: str, *, keep: int) -> None:
    """The same, trusting manifests and sizes: reading it all costs too much.

    The one just written counts first though it need not be first in order: after falling back past a damaged
    checkpoint a run saves lower steps than the damaged one has.
    """
    entries = sorted(list_checkpoints(store), key=lambda entry: entry.name != latest)
    _prune(store, entries, Keep(last=keep), _check_sizes(store))


def _prune(
    store: Store,
    entries: Sequence[Entry],
    keep: Keep,
    check: Callable[[Opened], None],
    *,
    dry_run: bool = False,
) -> Pruned:
    if keep.last < 1:
        raise CheckpointError(f"cannot keep {keep.last} checkpoints", hint="keep at least 1")
    opened = {entry.name: _open(store, entry.name) for entry in entries}
    staying = _staying(entries, opened, keep, check)
    going = [entry.name for entry in entries if entry.name not in staying]
    needed = {pack for name in staying for pack in _packs_of(opened[name])}
    named = {pack for name in going for pack in _packs_of(opened[name])}
    readable = all(opened[name] is not None for name in staying)
    packs, freed_bytes = _surplus_packs(store, needed, named, entries if readable else ())
    if not dry_run:
        with store.exclusive():
            for name in going:  # the manifest first: half a removal leaves packs, never a gap
                store.delete(CHECKPOINTS + name)
            for pack in packs:
                store.delete(pack)
            for part in _dead_parts(store, entries):
                store.delete(part)
        store.sweep(GRACE_SECONDS)
    return Pruned(checkpoints=tuple(going), packs=tuple(packs), freed_bytes=freed_bytes)


def _staying(
    entries: Sequence[Entry],
    opened: dict[str, Opened | None],
    keep: Keep,
    check: Callable[[Opened], None],
) -> set[str]:
    """What is damaged never counts as kept. Where fewer than wanted are whole, nothing goes."""
    newest_at = max((entry.modified_at for entry in entries), default=0.0)
    staying = _best(opened, keep)
    whole = 0
    for entry in entries:
        found = opened[entry.name]
        if whole < keep.last:
            staying.add(entry.name)  # also a damaged one: people may want to look at it
            whole += found is not None and _is_whole(found, check)
        elif newest_at - entry.modified_at < keep.within_seconds or _is_pinned(found, keep):
            staying.add(entry.name)
    if keep.last > 1:
        staying |= _independent(entries, opened, staying)
    return staying


def _best(opened: dict[str, Opened | None], keep: Keep) -> set[str]:
    """By what was measured when they were saved; one without that is never among the best."""
    measured = [
        (known.manifest.metrics[keep.by], -known.manifest.step, name)
        for name, known in opened.items()
        if known is not None and keep.by in known.manifest.metrics
    ]
    return {name for _, _, name in sorted(measured)[: keep.best]}


def _independent(entries: Sequence[Entry], opened: dict[str, Opened | None], staying: set[str]) -> set[str]:
    """The newest of the others that shares no pack with all that stay, where those share one."""
    needs = {name: set(_packs_of(known)) for name, known in opened.items() if known is not None}
    kept = [needs[name] for name in staying if needs.get(name)]
    shared = set.intersection(*kept) if kept else set()
    if not shared:
        return set()
    apart = [entry.name for entry in entries if entry.name in needs and not needs[entry.name] & shared]
    return set(apart[:1])


def _is_pinned(opened: Opened | None, keep: Keep) -> bool:
    return opened is not None and opened.digest in keep.pinned


def _is_whole(opened: Opened, check: Callable[[Opened], None]) -> bool:
    try:
        check(opened)
    except CheckpointError:
        return False
    return True


def _open(store: Store, name: str) -> Opened | None:
    try:
        return open_checkpoint(store, name)
    except CheckpointError:
        return None


def _packs_of(opened: Opened | None) -> Iterable[str]:
    return () if opened is None else opened.manifest.table.packs


def _check_sizes(store: Store) -> Callable[[Opened], None]:
    sizes = {stored.name: stored.size_bytes for stored in store.list(PACKS)}

    def check(opened: Opened) -> None:
        for pack in opened.manifest.table.packs.values():
            if sizes.get(pack.name) != pack.size_bytes:
                raise CheckpointError(f"{pack.name} has {sizes.get(pack.name)} bytes, not {pack.size_bytes}")

    return check


def _surplus_packs(
    store: Store, needed: Collection[str], named: Collection[str], entries: Sequence[Entry]
) -> tuple[list[str], int]:
    """Packs that only checkpoints on their way out named, and old ones that nobody names.

    Old by the newest of `entries`; without any, nobody can say what a damaged manifest named.
    """
    newest_at = max((entry.modified_at for entry in entries), default=0.0)
    surplus, freed_bytes = [], 0
    for stored in store.list(PACKS):
        old = newest_at - stored.modified_at > GRACE_SECONDS
        if stored.name not in needed and (stored.name in named or old):
            surplus.append(stored.name)
            freed_bytes += stored.size_bytes
    return surplus, freed_bytes


def _dead_parts(store: Store, entries: Sequence[Entry]) -> list[str]:
    """What ranks saved for a checkpoint that nobody published: the run has gone on without it for long."""
    newest_at = max((entry.modified_at for entry in entries), default=0.0)
    return [part.name for part in store.list(PARTS) if newest_at - part.modified_at > GRACE_SECONDS]
