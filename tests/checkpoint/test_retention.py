"""Which checkpoints, and which packs that no checkpoint needs, may go?"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from checkpoint.damage import manifest, packs
from wattline.checkpoint import (
    CheckpointError,
    Keep,
    LocalStore,
    Series,
    list_checkpoints,
    prune,
    restore,
    save,
    verify,
)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def steps(store: LocalStore) -> list[int]:
    return [entry.step for entry in list_checkpoints(store)]


def numbers(step: int) -> dict[str, object]:
    return {"w": np.full(1000, step)}


def test_saving_keeps_the_newest(store: LocalStore) -> None:
    for step in range(1, 6):
        save(store, numbers(step), step=step, epoch=0, keep=2)
    assert steps(store) == [5, 4]
    assert len(store.list("packs/")) == 2


def test_pruning_tells_what_went_and_a_dry_run_what_would(store: LocalStore, tmp_path: Path) -> None:
    for step in range(1, 5):
        save(store, numbers(step), step=step, epoch=0)
    would = prune(store, Keep(last=3), dry_run=True)
    assert steps(store) == [4, 3, 2, 1]
    went = prune(store, Keep(last=3))
    assert went == would
    assert went.checkpoints == ("step-00000001.e0",)
    assert len(went.packs) == 1
    assert went.freed_bytes > 0
    assert prune(LocalStore(tmp_path / "missing"), Keep()).checkpoints == ()


@pytest.mark.parametrize("content", [b"", b"\0" * 32], ids=["torn", "altered"])
def test_a_damaged_checkpoint_is_not_counted_among_those_kept(store: LocalStore, content: bytes) -> None:
    for step in (1, 2, 3):
        save(store, numbers(step), step=step, epoch=0)
    packs(store, "step-00000003.e0")[0].write_bytes(content)
    prune(store, Keep(last=1))
    assert steps(store) == [3, 2]


def test_saving_does_not_count_a_torn_one_either(store: LocalStore) -> None:
    for step in (1, 2):
        save(store, numbers(step), step=step, epoch=0)
    packs(store, "step-00000002.e0")[0].write_bytes(b"")
    save(store, numbers(3), step=3, epoch=0, keep=2)
    assert steps(store) == [3, 2, 1]


def test_what_was_just_saved_stays_even_below_a_damaged_higher_step(store: LocalStore) -> None:
    save(store, numbers(1), step=120, epoch=0)
    packs(store, "step-00000120.e0")[0].write_bytes(b"\0" * 32)
    save(store, numbers(2), step=110, epoch=0, keep=1)
    restored = restore(store)
    assert restored is not None
    assert restored.step == 110


def test_keeping_none_at_all_is_refused(store: LocalStore) -> None:
    save(store, {}, step=1, epoch=0)
    with pytest.raises(CheckpointError, match="cannot keep 0"):
        prune(store, Keep(last=0))
    assert steps(store) == [1]


def test_what_a_release_pins_and_what_is_young_stays(store: LocalStore) -> None:
    saved = [save(store, numbers(step), step=step, epoch=0) for step in range(1, 6)]
    for age_days, name in ((9, "step-00000001.e0"), (8, "step-00000002.e0"), (2, "step-00000003.e0")):
        path = manifest(store, name)
        at = path.stat().st_mtime - age_days * 86400
        os.utime(path, (at, at))
    keep = Keep(last=1, within_seconds=3 * 86400.0, pinned=frozenset({saved[0].digest}))
    assert prune(store, keep).checkpoints == ("step-00000002.e0",)
    assert steps(store) == [5, 4, 3, 1]
    for entry in list_checkpoints(store):
        verify(store, entry.name)


def test_the_best_stay_by_what_was_measured(store: LocalStore) -> None:
    series = Series(store, epoch=0, keep=None, lineage={})
    for step, loss in ((1, 0.9), (2, 0.3), (3, 0.5), (4, 0.2), (5, 0.8)):
        series.begin(numbers(step), step, metrics={"loss": loss})
        series.end()
    series.begin(numbers(6), 6)
    series.end()
    prune(store, Keep(last=1, best=2))
    assert steps(store) == [6, 4, 2]
    for entry in list_checkpoints(store):
        verify(store, entry.name)


def test_a_pack_stays_as_long_as_a_later_checkpoint_is_a_difference_to_it(store: LocalStore) -> None:
    series = Series(store, epoch=0, keep=None, lineage={})
    weights = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32)
    for step in range(1, 6):
        weights += np.float32(1e-4)
        series.begin({"w": weights}, step)
        series.end()
        prune(store, Keep(last=1))
        assert steps(store) == [step]
        verify(store, f"step-{step:08d}.e0")
    assert len(packs(store, "step-00000005.e0")) > 1


def test_differences_do_not_outlive_those_that_are_kept(store: LocalStore) -> None:
    series = Series(store, epoch=0, keep=2, lineage={})
    weights = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32)
    for step in range(1, 12):
        weights += np.float32(1e-4)
        series.begin({"w": weights}, step)
        series.end()
        assert len(packs(store, f"step-{step:08d}.e0")) <= 2


def test_no_damage_to_one_file_takes_all_there_is(store: LocalStore) -> None:
    series = Series(store, epoch=0, keep=3, lineage={})
    weights = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32)
    for step in range(1, 30):
        weights += np.float32(1e-4)
        series.begin({"w": weights}, step)
        series.end()
        assert steps(store)[0] == step
        assert len(steps(store)) <= 4
        if step >= 2:
            needs = [set(packs(store, entry.name)) for entry in list_checkpoints(store)]
            assert not set.intersection(*needs)


def test_packs_that_nobody_names_go_when_they_are_old(store: LocalStore, tmp_path: Path) -> None:
    save(store, numbers(1), step=1, epoch=0)
    for name, age_seconds in (("packs/dead", 2 * 3600.0), ("packs/about-to-be-published", 60.0)):
        store.put(name, b"x" * 10, replace=False)
        at = manifest(store, "step-00000001.e0").stat().st_mtime - age_seconds
        os.utime(tmp_path / name, (at, at))
    assert prune(store, Keep()).packs == ("packs/dead",)
    assert {stored.name for stored in store.list("packs/")} >= {"packs/about-to-be-published"}


def test_while_a_manifest_cannot_be_read_nobody_says_what_it_named(store: LocalStore, tmp_path: Path) -> None:
    save(store, numbers(1), step=1, epoch=0)
    save(store, numbers(2), step=2, epoch=0)
    mine = packs(store, "step-00000002.e0")[0]
    os.utime(mine, (0, 0))
    manifest(store, "step-00000002.e0").write_bytes(b"garbage")
    prune(store, Keep(last=1))
    assert mine.exists()
