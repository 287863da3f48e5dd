"""How do several ranks save one checkpoint together, and any other number of them restore it?"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checkpoint import (
    CheckpointError,
    Keep,
    LocalStore,
    NothingUsableError,
    StaleEpochError,
    fence,
    list_checkpoints,
    prune,
    restore,
    save,
    verify,
)
from wattline.checkpoint.resharding import Want, restore_shards
from wattline.checkpoint.shards import Shard, publish_shards, save_shard
from wattline.checkpoint.tensors import Box, require_tiling
from wattline.errors import UsageError

Array = np.ndarray[Any, Any]


class CountingStore(LocalStore):
    """Knows what was read of the packs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read_bytes = 0

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        data = super().read(name, start, length)
        if name.startswith("packs/"):
            self.read_bytes += len(data)
        return data


def rows(whole: Array, rank: int, ranks: int) -> Box:
    """A rank's rows, as even as can be: some may have none."""
    size = -(-whole.shape[0] // ranks)
    start = min(rank * size, whole.shape[0])
    return Box((start, *[0] * (whole.ndim - 1)), (min(size, whole.shape[0] - start), *whole.shape[1:]))


def cut(whole: Array, box: Box) -> Shard:
    slices = box.slices_in(Box((0,) * whole.ndim, whole.shape))
    return Shard(np.asarray(whole[slices]), whole.shape, box.offset)


def save_all(store: LocalStore, trees: Sequence[Any], *, step: int = 1, epoch: int = 0) -> Any:
    for rank, tree in enumerate(trees):
        save_shard(store, tree, step=step, epoch=epoch, rank=rank, ranks=len(trees))
    return publish_shards(store, step=step, epoch=epoch, ranks=len(trees), timeout_seconds=5)


def save_boxes(store: LocalStore, whole: Array, boxes: Sequence[Box], *, step: int = 1) -> Any:
    return save_all(store, [{"w": cut(whole, box)} for box in boxes], step=step)


def everything(place: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    return None


def just(box: Box) -> Want:
    return lambda place, shape, dtype: (box.offset, box.shape)


def whole_of(store: LocalStore) -> Any:
    restored = restore_shards(store, everything)
    assert restored is not None
    return restored.tree


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_what_four_ranks_saved_any_number_restores(tmp_path: Path, ranks: int) -> None:
    store = LocalStore(tmp_path)
    weights, moments = np.arange(70.0).reshape(10, 7), np.arange(13, dtype="f4")
    trees = [
        {
            "model": {"w": cut(weights, rows(weights, rank, 4)), "scale": np.array(2.0)},
            "optimizer": {0: {"m": cut(moments, rows(moments, rank, 4))}, "betas": (0.9, [0.999])},
            "step": 7,
        }
        for rank in range(4)
    ]
    save_all(store, trees)
    found: list[Any] = []
    for rank in range(ranks):

        def want(
            place: str, shape: tuple[int, ...], dtype: np.dtype[Any], rank: int = rank
        ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
            if not shape:
                return None
            box = rows(np.empty(shape), rank, ranks)
            return box.offset, box.shape

        restored = restore_shards(store, want)
        assert restored is not None
        found.append(restored.tree)
    assert np.array_equal(np.concatenate([tree["model"]["w"] for tree in found]), weights)
    assert np.array_equal(np.concatenate([tree["optimizer"][0]["m"] for tree in found]), moments)
    assert {tree["model"]["scale"].item() for tree in found} == {2.0}
    assert [tree["optimizer"]["betas"] for tree in found] == [(0.9, [0.999])] * ranks
    assert found[-1]["step"] == 7


def test_a_rank_is_asked_by_place_shape_and_dtype_for_every_tensor(tmp_path: Path) -> None:
    whole = np.arange(8, dtype=">i4").reshape(2, 4)
    asked = []

    def want(
        place: str, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> tuple[Sequence[int], Sequence[int]] | None:
        asked.append((place, shape, dtype))
        return ([1, 1], [1, 2]) if shape else None

    save_all(LocalStore(tmp_path), [{"a": [np.array(True)], "b": {3: cut(whole, Box((0, 0), (2, 4)))}}])
    restored = restore_shards(LocalStore(tmp_path), want)
    assert restored is not None
    assert asked == [("/a/0", (), np.dtype(bool)), ("/b/3", (2, 4), np.dtype(">i4"))]
    assert restored.tree["b"][3].tolist() == [[5, 6]]
    assert restored.raw_bytes == 9


def test_an_ordinary_checkpoint_can_be_restored_in_blocks_too(tmp_path: Path) -> None:
    save(LocalStore(tmp_path), {"w": np.arange(12).reshape(3, 4)}, step=1, epoch=0)
    restored = restore_shards(LocalStore(tmp_path), lambda place, shape, dtype: ((1, 2), (2, 1)))
    assert restored is not None
    assert restored.tree["w"].tolist() == [[6], [10]]
    assert restore_shards(LocalStore(tmp_path / "empty"), everything) is None


@st.composite
def tilings(draw: st.DrawFn, shape: tuple[int, ...]) -> list[Box]:
    """A tensor cut in two, either half cut again, and so on."""

    def split(box: Box, left: int) -> list[Box]:
        axes = [axis for axis, size in enumerate(box.shape) if size > 1]
        if not left or not axes or draw(st.booleans()):
            return [box]
        axis = draw(st.sampled_from(axes))
        at = draw(st.integers(1, box.shape[axis] - 1))

        def part(start: int, size: int) -> Box:
            offset = [*box.offset]
            offset[axis] += start
            sizes = [*box.shape]
            sizes[axis] = size
            return Box(tuple(offset), tuple(sizes))

        return split(part(0, at), left - 1) + split(part(at, box.shape[axis] - at), left - 1)

    return draw(st.permutations(split(Box((0,) * len(shape), shape), 4)))


@st.composite
def two_tilings(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Box], list[Box]]:
    shape = tuple(draw(st.lists(st.integers(1, 7), max_size=4)))
    return shape, draw(tilings(shape)), draw(tilings(shape))


@settings(max_examples=60, deadline=None)
@given(two_tilings(), st.sampled_from(["u1", "f4", "S3", "c16"]), st.integers(1, 64))
def test_any_tiling_restored_in_any_other_gives_the_same_tensor(
    tmp_path_factory: pytest.TempPathFactory,
    cuts: tuple[tuple[int, ...], list[Box], list[Box]],
    kind: str,
    chunk_bytes: int,
) -> None:
    shape, saved_in, wanted_in = cuts
    whole = np.arange(math.prod(shape)).astype(kind).reshape(shape)
    store = LocalStore(tmp_path_factory.mktemp("store"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wattline.checkpoint.saving.CHUNK_BYTES", chunk_bytes)
        save_boxes(store, whole, saved_in)
    for box in wanted_in:
        restored = restore_shards(store, just(box))
        assert restored is not None
        assert restored.tree["w"].tobytes() == cut(whole, box).array.tobytes()


def test_only_chunks_that_overlap_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wattline.checkpoint.saving.CHUNK_BYTES", 1000)
    store = CountingStore(tmp_path)
    whole = np.random.default_rng(0).integers(0, 256, size=(40, 1000), dtype=np.uint8)
    save_boxes(store, whole, [rows(whole, rank, 4) for rank in range(4)])
    for box, chunks in [
        (Box((15, 0), (1, 1000)), 1),
        (Box((9, 990), (2, 10)), 2),  # the last row of a rank, the first of the next
        (Box((0, 500), (40, 1)), 40),
        (Box((3, 3), (0, 5)), 0),
    ]:
        store.read_bytes = 0
        restored = restore_shards(store, just(box))
        assert restored is not None
        assert np.array_equal(restored.tree["w"], cut(whole, box).array)
        assert store.read_bytes <= chunks * 1100


def test_values_that_are_not_sharded_are_written_by_one_rank_alone(tmp_path: Path) -> None:
    table = np.random.default_rng(0).integers(0, 256, size=100_000, dtype=np.uint8)
    whole = np.arange(4.0)
    save_all(
        LocalStore(tmp_path), [{"table": table, "w": cut(whole, rows(whole, rank, 4))} for rank in range(4)]
    )
    stored = sum(path.stat().st_size for path in (tmp_path / "packs").iterdir())
    assert stored < 1.5 * table.nbytes
    assert np.array_equal(whole_of(LocalStore(tmp_path))["table"], table)


def test_a_block_that_two_ranks_hold_is_kept_once_if_it_is_the_same(tmp_path: Path) -> None:
    whole = np.arange(8.0)
    boxes = [Box((0,), (4,)), Box((4,), (4,)), Box((0,), (4,)), Box((4,), (4,))]
    saved = save_boxes(LocalStore(tmp_path), whole, boxes)
    assert saved.raw_bytes == whole.nbytes
    assert np.array_equal(whole_of(LocalStore(tmp_path))["w"], whole)
    different = [{"w": cut(whole + (rank > 1), box)} for rank, box in enumerate(boxes)]
    with pytest.raises(CheckpointError, match=r"/w: two ranks have different blocks \(4,\) at \(0,\)"):
        save_all(LocalStore(tmp_path), different, step=2)


@pytest.mark.parametrize(
    ("boxes", "says"),
    [
        ([Box((0, 0), (2, 4)), Box((3, 0), (1, 4))], "the blocks cover 12 of the 16 elements"),
        ([Box((0, 0), (3, 4)), Box((2, 0), (2, 4))], r"the blocks \(3, 4\) at \(0, 0\) and .* overlap"),
        ([Box((0, 0), (4, 2)), Box((0, 1), (4, 3))], "overlap"),
        ([Box((0, 0), (3, 3)), Box((2, 2), (2, 2))], "overlap"),
        ([Box((0, 0), (4, 5))], r"the block \(4, 5\) at \(0, 0\) does not lie in \(4, 4\)"),
        ([Box((-1, 0), (4, 4))], "does not lie in"),
        ([Box((0,), (16,))], "does not lie in"),
        ([], "the blocks cover 0 of the 16"),
    ],
)
def test_blocks_that_do_not_tile_the_tensor_are_refused(boxes: list[Box], says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        require_tiling((4, 4), boxes)


def test_a_checkpoint_with_a_gap_is_not_published(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with pytest.raises(CheckpointError, match="/w: the blocks cover 3 of the 4 elements"):
        save_boxes(store, np.arange(4.0), [Box((0,), (2,)), Box((3,), (1,))])
    assert list_checkpoints(store) == ()


def test_a_block_outside_its_tensor_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"/w: a block \(3,\) at \(2,\) does not lie in \(4,\)"):
        save_shard(
            LocalStore(tmp_path), {"w": Shard(np.zeros(3), (4,), (2,))}, step=1, epoch=0, rank=0, ranks=1
        )
    assert not list(tmp_path.rglob("*-of-*"))


def replicated(rank: int, value: Any) -> Any:
    """Rank 2 has another value than the others."""
    return {"a": {"x": value(rank == 2)}, "w": cut(np.arange(4.0), rows(np.arange(4.0), rank, 4))}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (lambda odd: 3 + odd, "/a/x"),
        (lambda odd: True if odd else 1, "/a/x"),
        (lambda odd: -0.0 if odd else 0.0, "/a/x"),
        (lambda odd: np.zeros(3) + odd, "/a/x"),
        (lambda odd: [1, (2, "b" if odd else "a")], "/a/x/1/1"),
        (lambda odd: [1, 2, 3] if odd else [1, 2], "/a/x"),
        (lambda odd: {"more": 1} if odd else {}, "/a/x"),
        (lambda odd: {1: "b" if odd else "a"}, "/a/x/1"),
        (lambda odd: None if odd else {}, "/a/x"),
        (lambda odd: np.zeros(2) if odd else Shard(np.zeros(2), (2,), (0,)), "/a/x"),
    ],
)
def test_what_is_not_sharded_must_be_the_same_on_all_ranks(tmp_path: Path, value: Any, place: str) -> None:
    store = LocalStore(tmp_path)
    with pytest.raises(CheckpointError, match=f"^{place}: rank 2 has another value than rank 0"):
        save_all(store, [replicated(rank, value) for rank in range(4)])
    assert list_checkpoints(store) == ()


def test_ranks_that_mean_different_tensors_are_refused(tmp_path: Path) -> None:
    trees = [{"w": Shard(np.zeros(2), (4,), (0,))}, {"w": Shard(np.zeros(2), (5,), (2,))}]
    with pytest.raises(CheckpointError, match="/w: the ranks do not agree on its dtype and shape"):
        save_all(LocalStore(tmp_path), trees)


def test_missing_ranks_are_named_and_nothing_is_visible(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    whole = np.arange(8.0)
    for rank in (0, 2):
        tree = {"w": cut(whole, rows(whole, rank, 4))}
        save_shard(store, tree, step=120, epoch=3, rank=rank, ranks=4)
    with pytest.raises(CheckpointError, match=r"step-00000120\.e3: 2 of 4 ranks .* after 0\.05 s: 1, 3"):
        publish_shards(store, step=120, epoch=3, ranks=4, timeout_seconds=0.05)
    assert list_checkpoints(store) == ()
    assert restore_shards(store, everything) is None


def test_a_late_rank_is_waited_for(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    whole = np.arange(8.0)
    trees = [{"w": cut(whole, rows(whole, rank, 2))} for rank in range(2)]
    save_shard(store, trees[0], step=1, epoch=0, rank=0, ranks=2)
    late = threading.Timer(
        0.2, save_shard, args=(store, trees[1]), kwargs={"step": 1, "epoch": 0, "rank": 1, "ranks": 2}
    )
    late.start()
    publish_shards(store, step=1, epoch=0, ranks=2, timeout_seconds=60)
    late.join()
    assert np.array_equal(whole_of(store)["w"], whole)


class MachineDiedError(Exception):
    """The machine went down."""


def test_a_rank_that_died_halfway_and_saved_again_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    whole = np.arange(8.0)
    trees = [{"w": cut(whole, rows(whole, rank, 2))} for rank in range(2)]

    def die(*args: Any, **options: Any) -> bool:
        raise MachineDiedError

    with monkeypatch.context() as patch:  # its pack is there, its part is not
        patch.setattr(LocalStore, "put", die)
        with pytest.raises(MachineDiedError):
            save_shard(store, trees[1], step=1, epoch=0, rank=1, ranks=2)
    stale = {"w": Shard(np.full(4, -1.0), (8,), (4,))}
    save_shard(store, stale, step=1, epoch=0, rank=1, ranks=2)  # a whole part, soon replaced
    save_all(store, trees)
    assert np.array_equal(whole_of(store)["w"], whole)
    assert len(list((tmp_path / "packs").iterdir())) == 4  # two are nobody's: retention sweeps them


def test_an_epoch_that_was_fenced_off_can_neither_save_nor_publish(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    tree = {"w": Shard(np.zeros(2), (2,), (0,))}
    save_shard(store, tree, step=1, epoch=3, rank=0, ranks=1)
    fence(store, 4)
    with pytest.raises(StaleEpochError):
        publish_shards(store, step=1, epoch=3, ranks=1)
    with pytest.raises(StaleEpochError):
        publish_shards(store, step=1, epoch=3, ranks=2, timeout_seconds=60)  # it does not wait in vain
    with pytest.raises(StaleEpochError):
        save_shard(store, tree, step=1, epoch=3, rank=0, ranks=1)
    assert list_checkpoints(store) == ()


def test_parts_of_another_epoch_or_number_of_ranks_do_not_count(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    tree = {"w": Shard(np.zeros(2), (2,), (0,))}
    save_shard(store, tree, step=1, epoch=2, rank=0, ranks=1)
    save_shard(store, tree, step=1, epoch=3, rank=0, ranks=2)
    with pytest.raises(CheckpointError, match="1 of 1 ranks have not saved"):
        publish_shards(store, step=1, epoch=3, ranks=1, timeout_seconds=0)


def test_publishing_leaves_parts_of_later_steps_only(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    tree = {"w": Shard(np.zeros(2), (2,), (0,))}
    for step, epoch in [(9, 0), (1, 1), (2, 1), (3, 1)]:
        save_shard(store, tree, step=step, epoch=epoch, rank=0, ranks=1)
    publish_shards(store, step=2, epoch=1, ranks=1)
    assert [stored.name for stored in store.list("parts/")] == ["parts/step-00000003.e1/0-of-1"]


def test_the_next_save_writes_only_what_has_changed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    whole = np.random.default_rng(0).random(20_000)
    formers = []
    for rank in range(2):
        tree = {"w": cut(whole, rows(whole, rank, 2))}
        formers.append(save_shard(store, tree, step=1, epoch=0, rank=rank, ranks=2).former)
    first = publish_shards(store, step=1, epoch=0, ranks=2)
    whole = whole.copy()
    whole[0] = 7  # of rank 0 alone
    for rank in range(2):
        tree = {"w": cut(whole, rows(whole, rank, 2))}
        save_shard(store, tree, step=2, epoch=0, rank=rank, ranks=2, former=formers[rank])
    second = publish_shards(
        store, step=2, epoch=0, ranks=2, parent=first.digest, lineage={"run": "a"}, keep=1
    )
    assert second.written_bytes < 0.7 * first.written_bytes
    restored = restore_shards(store, everything)
    assert restored is not None
    assert np.array_equal(restored.tree["w"], whole)
    assert (restored.step, restored.lineage, restored.digest) == (2, {"run": "a"}, second.digest)
    assert [entry.step for entry in list_checkpoints(store)] == [2]


def test_a_part_whose_pack_is_gone_is_not_published(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    save_shard(store, {"w": Shard(np.ones(2), (2,), (0,))}, step=1, epoch=0, rank=0, ranks=1)
    for pack in (tmp_path / "packs").iterdir():
        pack.unlink()
    with pytest.raises(CheckpointError, match="has None bytes, not"):
        publish_shards(store, step=1, epoch=0, ranks=1)
    assert list_checkpoints(store) == ()


def test_a_part_that_was_altered_is_named(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    save_shard(store, {"w": Shard(np.ones(2), (2,), (0,))}, step=1, epoch=0, rank=0, ranks=1)
    part = tmp_path / "parts" / "step-00000001.e0" / "0-of-1"
    part.write_bytes(part.read_bytes().replace(b'"offset":[0]', b'"offset":[1]'))
    with pytest.raises(CheckpointError, match=r"0-of-1: .*torn or altered"):
        publish_shards(store, step=1, epoch=0, ranks=1)


BROKEN = [
    {"sharded": {"dtype": "<f8", "shape": [2]}},
    {"sharded": {"dtype": "|O", "shape": [0], "blocks": []}},
    {"sharded": {"dtype": "<f8", "shape": [2], "blocks": 3}},
    {"sharded": {"dtype": "<f8", "shape": [2], "blocks": [[[0], [1], []], [[1], "a", []]]}},
    {"sharded": {"dtype": "<f8", "shape": [2], "blocks": [[[0], [2], ["0" * 64]]]}},
    {"sharded": {"dtype": "<f8", "shape": [2], "blocks": [[[-1], [3], []]]}},
    {"tensor": {"dtype": "<f8", "shape": [2], "chunks": []}},
    {"items": [[1, 2, 3]]},
    {"unknown": 1},
]


@pytest.mark.parametrize("node", BROKEN, ids=lambda node: json.dumps(node)[:60])
def test_a_manifest_that_says_what_cannot_be_is_refused(tmp_path: Path, node: Any) -> None:
    store = LocalStore(tmp_path)
    save_boxes(store, np.ones(2), [Box((0,), (2,))])
    path = tmp_path / "checkpoints" / "step-00000001.e0"
    fields = json.loads(path.read_bytes())
    del fields["blake3"]
    fields["tree"] = {"dict": {"w": node}}
    body = json.dumps(fields, separators=(",", ":"))[:-1].encode()
    path.write_bytes(body + b',"blake3":"' + blake3(body).hexdigest().encode() + b'"}\n')
    with pytest.raises(NothingUsableError):
        restore_shards(store, everything)


def test_a_damaged_block_is_told_by_name_and_otherwise_passed_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    whole = np.random.default_rng(0).random(1000)
    save_boxes(store, whole, [rows(whole, rank, 2) for rank in range(2)])
    before = set((tmp_path / "packs").iterdir())
    save_boxes(store, whole + 1, [rows(whole, rank, 2) for rank in range(2)], step=2)
    for pack in set((tmp_path / "packs").iterdir()) - before:
        raw = bytearray(pack.read_bytes())
        raw[len(raw) // 2] ^= 1
        pack.write_bytes(raw)
    restored = restore_shards(store, everything)
    assert restored is not None
    assert (restored.step, [each.name for each in restored.rejected]) == (1, ["step-00000002.e0"])
    with pytest.raises(CheckpointError, match=r"checkpoints/step-00000002\.e0: "):
        restore_shards(store, everything, name="step-00000002.e0")


def test_asking_for_what_is_outside_is_the_askers_fault_and_falls_back_to_nothing(tmp_path: Path) -> None:
    save_boxes(LocalStore(tmp_path), np.ones(4), [Box((0,), (4,))])
    with pytest.raises(UsageError, match=r"/w: a block \(3,\) at \(2,\) does not lie in \(4,\)"):
        restore_shards(LocalStore(tmp_path), lambda place, shape, dtype: ((2,), (3,)))


def test_a_rank_that_is_none_of_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="rank 4 is not one of 4 ranks"):
        save_shard(LocalStore(tmp_path), {}, step=1, epoch=0, rank=4, ranks=4)


def test_empty_and_dimensionless_tensors_can_be_sharded(tmp_path: Path) -> None:
    scalar, empty = np.array(5.0), np.empty((0, 3))
    trees = [
        {"scalar": Shard(scalar, (), ()), "empty": Shard(empty, (0, 3), (0, 0))},
        {"scalar": Shard(scalar, (), ()), "empty": Shard(empty, (0, 3), (0, 0))},
    ]
    save_all(LocalStore(tmp_path), trees)
    found = whole_of(LocalStore(tmp_path))
    assert (found["scalar"].shape, found["scalar"].item()) == ((), 5)
    assert found["empty"].shape == (0, 3)


def test_everything_else_treats_it_as_any_checkpoint_of_whole_tensors(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    whole = np.arange(70.0).reshape(10, 7)
    saved = save_boxes(store, whole, [rows(whole, rank, 4) for rank in range(4)])
    verify(store, saved.name)
    prune(store, Keep(last=1))
    restored = restore(store)
    assert restored is not None
    assert np.array_equal(restored.tree["w"], whole)
    assert restored.raw_bytes == whole.nbytes


def test_parts_that_nobody_published_are_swept_when_the_run_has_long_gone_on(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    save_shard(store, {"w": Shard(np.ones(2), (4,), (0,))}, step=1, epoch=0, rank=0, ranks=2)
    save(store, {}, step=2, epoch=0)
    prune(store, Keep(last=1))
    assert len(store.list("parts/")) == len(store.list("packs/")) == 1
    for path in [*tmp_path.glob("parts/*/*"), *tmp_path.glob("packs/*")]:
        os.utime(path, (0, 0))
    prune(store, Keep(last=1))
    assert store.list("parts/") == store.list("packs/") == []
