"""How does a run save again and again while it goes on training?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from wattline.checkpoint import CheckpointError, LocalStore, Series, StorageError, restore, verify
from wattline.checkpoint.chunks import Chunk
from wattline.checkpoint.reading import open_checkpoint
from wattline.checkpoint.saving import LONGEST_CHAIN


class Pair(NamedTuple):
    first: np.ndarray[Any, Any]
    second: list[np.ndarray[Any, Any]]


class Gated(LocalStore):
    """A store whose writes wait for leave."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.leave = threading.Event()

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        assert self.leave.wait(30)
        with super().create(name) as writing:
            yield writing


class Full(LocalStore):
    is_full = True

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        if self.is_full:
            raise StorageError("no space", hint="free some")
        with super().create(name) as writing:
            yield writing


def series(store: LocalStore) -> Series:
    return Series(store, epoch=0, keep=None, lineage={})


def test_what_is_saved_is_the_state_when_it_was_asked_for(tmp_path: Path) -> None:
    store = Gated(tmp_path)
    saving = series(store)
    weights = np.zeros(1000)
    assert saving.begin({"w": weights, "n": [weights]}, 1)
    weights += 1
    assert saving.take() is None
    store.leave.set()
    saving.end()
    restored = restore(store)
    assert restored is not None
    assert not restored.tree["w"].any()
    assert not restored.tree["n"][0].any()
    written = saving.take()
    assert written is not None
    assert written.saved is not None
    assert written.saved.step == 1
    assert 0.0 <= written.stopped_seconds <= written.seconds
    assert saving.take() is None


def test_a_save_that_comes_while_another_is_written_is_skipped_and_counted(tmp_path: Path) -> None:
    store = Gated(tmp_path)
    saving = series(store)
    assert saving.begin({"w": np.ones(3)}, 1)
    assert not saving.begin({"w": np.ones(3)}, 2)
    assert not saving.begin({"w": np.ones(3)}, 3)
    assert saving.skipped == 2
    store.leave.set()
    saving.end()
    assert saving.begin({"w": np.ones(3)}, 4)
    saving.end()
    assert saving.skipped == 2


def test_a_failure_behind_the_back_is_told_and_the_next_save_is_whole(tmp_path: Path) -> None:
    store = Full(tmp_path)
    saving = series(store)
    weights = np.random.default_rng(0).standard_normal(5000)
    store.is_full = False
    saving.begin({"w": weights}, 1)
    saving.end()
    for step, is_full in ((2, True), (3, False), (4, True), (5, True), (6, False)):
        store.is_full = is_full
        weights += 1e-3
        saving.begin({"w": weights}, step)
        saving.end()
        written = saving.take()
        assert written is not None
        assert isinstance(written.error, StorageError) == is_full
        if not is_full:
            restored = restore(store)
            assert restored is not None
            assert (restored.step, restored.rejected) == (step, ())
            assert np.array_equal(restored.tree["w"], weights)


def test_a_fault_of_our_own_is_raised_where_somebody_hears_it(tmp_path: Path) -> None:
    class Broken(LocalStore):
        def create(self, name: str) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    saving = series(Broken(tmp_path))
    saving.begin({"w": np.ones(3)}, 1)
    with pytest.raises(ZeroDivisionError):
        saving.end()


def test_what_cannot_be_kept_is_told_as_well(tmp_path: Path) -> None:
    saving = series(LocalStore(tmp_path))
    saving.begin({"w": object()}, 1)
    saving.end()
    written = saving.take()
    assert written is not None
    assert isinstance(written.error, CheckpointError)


def test_a_masked_array_does_not_lose_its_mask_on_the_way(tmp_path: Path) -> None:
    saving = series(LocalStore(tmp_path))
    saving.begin({"w": np.ma.masked_array([1.0, 2.0], mask=[True, False])}, 1)
    saving.end()
    written = saving.take()
    assert written is not None
    assert isinstance(written.error, CheckpointError)


def test_arrays_in_a_named_tuple_are_copied_too(tmp_path: Path) -> None:
    store = Gated(tmp_path)
    saving = series(store)
    pair = Pair(np.zeros(1000), [np.zeros(3)])
    saving.begin({"pair": pair}, 1)
    pair.first.fill(1)
    pair.second[0].fill(1)
    store.leave.set()
    saving.end()
    restored = restore(store)
    assert restored is not None
    first, (second,) = restored.tree["pair"]
    assert not first.any()
    assert not second.any()


def test_what_has_not_changed_is_stored_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    saving = series(store)
    frozen = np.random.default_rng(0).bytes(2_000_000)
    layer = np.frombuffer(frozen, np.uint8)
    tree: dict[str, Any] = {"frozen": layer, "again": layer.copy(), "head": np.zeros(9)}
    for step in range(1, 5):
        tree["head"] = tree["head"] + 1
        saving.begin(tree, step)
        saving.end()
    assert sum(stored.size_bytes for stored in store.list()) < 2_100_000
    restored = restore(store)
    assert restored is not None
    assert restored.tree["again"].tobytes() == frozen


def test_after_a_restart_what_has_not_changed_is_still_stored_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    frozen = np.frombuffer(np.random.default_rng(0).bytes(1_000_000), np.uint8)
    first = series(store)
    first.begin({"w": frozen}, 1)
    first.end()
    restored = restore(store)
    assert restored is not None
    second = series(store)
    second.build_on(restored.digest, restored.table)
    second.begin({"w": frozen, "more": np.ones(3)}, 2)
    second.end()
    assert sum(stored.size_bytes for stored in store.list()) < 1_010_000
    assert open_checkpoint(store, "step-00000002.e0").manifest.parent == restored.digest


def test_chains_of_differences_are_bounded(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    saving = series(store)
    weights = np.random.default_rng(0).standard_normal(100_000, dtype=np.float32)
    for step in range(3 * LONGEST_CHAIN):
        weights += np.float32(1e-5)
        saving.begin({"w": weights}, step)
        saving.end()
        table = open_checkpoint(store, f"step-{step:08d}.e0").manifest.table
        lengths = [len(list(table.chain(digest))) for digest in table.chunks]
        assert max(lengths) <= LONGEST_CHAIN
        verify(store, f"step-{step:08d}.e0")


def chunks_of(store: LocalStore, name: str) -> list[Chunk]:
    return list(open_checkpoint(store, name).manifest.table.chunks.values())


def test_a_save_that_somebody_waits_for_is_stored_as_it_is(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    saving = series(store)
    weights = np.random.default_rng(0).standard_normal(1_500_000)  # several chunks, the last one short
    tree = {"w": weights, "t": weights[::2], "n": 3}
    saving.save_now(tree, 1, metrics={"loss": 0.5})
    written = saving.take()
    assert written is not None
    assert written.saved is not None
    assert written.stopped_seconds == written.seconds > 0.0
    assert {chunk.codec for chunk in chunks_of(store, "step-00000001.e0")} == {"raw"}
    verify(store, "step-00000001.e0")
    restored = restore(store)
    assert restored is not None
    assert np.array_equal(restored.tree["w"], weights)
    assert np.array_equal(restored.tree["t"], weights[::2])


def test_saves_behind_and_saves_that_are_waited_for_build_on_each_other(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    saving = series(store)
    rng = np.random.default_rng(0)
    frozen = np.frombuffer(rng.bytes(2_000_000), np.uint8)
    tree: dict[str, Any] = {"frozen": frozen, "head": rng.standard_normal(20_000)}
    for step in range(1, 9):
        tree["head"] += 1e-3
        if step % 3:
            saving.begin(tree, step)
            saving.end()
        else:
            saving.save_now(tree, step)
        restored = restore(store)
        assert restored is not None
        assert (restored.step, restored.rejected) == (step, ())
        assert np.array_equal(restored.tree["head"], tree["head"])
        assert np.array_equal(restored.tree["frozen"], frozen)
    assert sum(stored.size_bytes for stored in store.list()) < 2_000_000 + 8 * 200_000


def test_a_pack_of_which_little_is_left_is_not_built_on_in_a_hurry_either(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    saving = series(store)
    rng = np.random.default_rng(0)
    kept = rng.standard_normal(20_000)
    saving.begin({"kept": kept, "gone": rng.standard_normal(200_000)}, 1)
    saving.end()
    saving.save_now({"kept": kept, "new": rng.standard_normal(10)}, 2)
    assert {chunk.codec for chunk in chunks_of(store, "step-00000002.e0")} == {"raw"}


def test_a_save_that_is_waited_for_tells_of_a_full_disk_and_the_next_one_works(tmp_path: Path) -> None:
    store = Full(tmp_path)
    saving = series(store)
    weights = np.random.default_rng(0).standard_normal(5000)
    saving.save_now({"w": weights}, 1)
    written = saving.take()
    assert written is not None
    assert isinstance(written.error, StorageError)
    store.is_full = False
    saving.save_now({"w": weights}, 2)
    restored = restore(store)
    assert restored is not None
    assert np.array_equal(restored.tree["w"], weights)
