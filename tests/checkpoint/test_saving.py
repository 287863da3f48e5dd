"""How does a tree in memory become a checkpoint on disk, whatever goes wrong meanwhile?"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wattline.checkpoint import (
    CheckpointError,
    LocalStore,
    StaleEpochError,
    StorageError,
    fence,
    list_checkpoints,
    restore,
    save,
    verify,
)

arrays = hnp.arrays(
    dtype=st.one_of(
        hnp.boolean_dtypes(),
        hnp.integer_dtypes(endianness="?"),
        hnp.unsigned_integer_dtypes(endianness="?"),
        hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
        hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    ),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(
    arrays | scalars | st.integers(-(2**200), 2**200),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=12,
)
slow_disk = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


def fingerprint(value: Any) -> Any:
    """Equal only for values that are the same to the bit, types included."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, dict):
        return [(key, fingerprint(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [fingerprint(item) for item in value]
    return type(value), value


@slow_disk
@given(tree=trees)
def test_a_tree_comes_back_the_same_to_the_bit(tree: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        saved = save(store, tree, step=1, epoch=0)
        verify(store, saved.name)
        restored = restore(store)
        assert restored is not None
        assert fingerprint(restored.tree) == fingerprint(tree)
        assert restored.digest == saved.digest
        assert saved.size_bytes == saved.written_bytes == sum(each.size_bytes for each in store.list())


@slow_disk
@given(tree=trees, data=st.data())
def test_any_flipped_byte_and_any_truncation_of_any_file_is_detected(
    tree: object, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        name = save(store, tree, step=1, epoch=0).name
        files = store.list()
        file = Path(folder) / files[data.draw(st.integers(0, 1)) % len(files)].name
        raw = bytearray(file.read_bytes())
        position = data.draw(st.integers(0, 2**20)) % len(raw)
        raw[position] ^= data.draw(st.integers(1, 255))
        for damaged in (bytes(raw), bytes(raw[:position])):
            file.write_bytes(damaged)
            with pytest.raises(CheckpointError):
                verify(store, name)
            with pytest.raises(CheckpointError):
                restore(store)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-3],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(7.5),
        np.zeros((3, 0, 2), dtype=np.int16),
        np.arange(5, dtype=">i4"),
        np.array([0.0, -0.0, np.nan, np.inf]),
    ],
    ids=["strided", "fortran", "zero-dimensional", "empty", "big-endian", "signed-zero-and-nan"],
)
def test_unusual_arrays_keep_dtype_shape_and_bits(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    save(LocalStore(tmp_path), {"a": array}, step=1, epoch=0)
    restored = restore(LocalStore(tmp_path))
    assert restored is not None
    assert fingerprint(restored.tree["a"]) == fingerprint(array)


def test_a_restored_array_can_be_trained_further(tmp_path: Path) -> None:
    save(LocalStore(tmp_path), np.zeros(3), step=1, epoch=0)
    restored = restore(LocalStore(tmp_path))
    assert restored is not None
    restored.tree[:] += 1
    assert restored.tree.tolist() == [1, 1, 1]


def test_a_checkpoint_says_where_it_comes_from(tmp_path: Path) -> None:
    saved = save(LocalStore(tmp_path), {}, step=120, epoch=3, lineage={"run": "r-1", "phase": "train"})
    assert saved.name == "step-00000120.e3"
    restored = restore(LocalStore(tmp_path))
    assert restored is not None
    assert (restored.step, restored.epoch) == (120, 3)
    assert restored.lineage == {"run": "r-1", "phase": "train"}


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    save(LocalStore(tmp_path), "first", step=1, epoch=0)
    save(LocalStore(tmp_path), "second", step=1, epoch=0)
    restored = restore(LocalStore(tmp_path))
    assert restored is not None
    assert restored.tree == "second"
    assert [entry.name for entry in list_checkpoints(LocalStore(tmp_path))] == ["step-00000001.e0"]


def test_a_tree_that_cannot_be_kept_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"/optimizer/hook: a builtins\.object cannot be kept"):
        save(LocalStore(tmp_path), {"model": np.zeros(10), "optimizer": {"hook": object()}}, step=1, epoch=0)
    assert not LocalStore(tmp_path).list()


@pytest.mark.parametrize(("step", "epoch"), [(-1, 0), (0, -1), (2**63, 0)])
def test_a_step_or_an_epoch_out_of_range_is_refused(tmp_path: Path, step: int, epoch: int) -> None:
    with pytest.raises(CheckpointError, match="is not between"):
        save(LocalStore(tmp_path), {}, step=step, epoch=epoch)


def test_a_save_below_the_fence_is_refused_before_it_writes(tmp_path: Path) -> None:
    fence(LocalStore(tmp_path), 4)
    with pytest.raises(StaleEpochError, match="epoch 3 is stale: the repository belongs to epoch 4"):
        save(LocalStore(tmp_path), {}, step=1, epoch=3)
    assert save(LocalStore(tmp_path), {}, step=1, epoch=4).epoch == 4


def test_a_fence_raised_while_a_save_is_under_way_stops_it_at_publishing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)

    class Fencing(dict[str, object]):
        """A tree that is still being walked when a newer attempt takes over."""

        def items(self) -> Any:
            fence(store, 2)
            return super().items()

    with pytest.raises(StaleEpochError):
        save(store, Fencing(w=np.ones(3)), step=1, epoch=1)
    assert list_checkpoints(store) == ()


def test_savers_at_the_same_time_do_not_sweep_each_other(tmp_path: Path) -> None:
    tree = {"w": np.arange(100_000.0)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda step: save(LocalStore(tmp_path), tree, step=step, epoch=0), range(24)))
    assert [entry.step for entry in list_checkpoints(LocalStore(tmp_path))] == list(range(23, -1, -1))
    for entry in list_checkpoints(LocalStore(tmp_path)):
        verify(LocalStore(tmp_path), entry.name)


SAVE_FOREVER = """
import sys
from pathlib import Path
import numpy as np
from wattline.checkpoint import LocalStore, save
tree = {"w": np.ones(8_000_000)}
for step in range(1, 1_000_000):
    tree["w"][::64] = step
    save(LocalStore(Path(sys.argv[1])), tree, step=step, epoch=0, keep=2)
"""


def kill_while_saving(root: Path) -> bool:
    """Start a saver and kill it in the middle of a pack; tells whether one was left behind."""
    with subprocess.Popen([sys.executable, "-c", SAVE_FOREVER, str(root)]) as saver:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and saver.poll() is None:
            if list_checkpoints(LocalStore(root)) and any(drafts(root)):
                break
        saver.send_signal(signal.SIGKILL)
    return any(drafts(root))


def drafts(root: Path) -> list[Path]:
    found = []
    for path in (root / ".writing").glob("*"):
        with suppress(FileNotFoundError):
            found += [path] if path.stat().st_size else []
    return found


def test_kill_9_while_saving_leaves_the_earlier_ones_intact_and_its_leftovers_are_swept(
    tmp_path: Path,
) -> None:
    for attempt in range(20):
        root = tmp_path / str(attempt)
        if kill_while_saving(root):
            break
    else:
        pytest.fail("no kill out of 20 came in the middle of a save")
    store = LocalStore(root)
    for entry in list_checkpoints(store):
        verify(store, entry.name)
    restored = restore(store)
    assert restored is not None
    assert restored.rejected == ()
    for path in drafts(root):  # as if it had died a while ago
        os.utime(path, (0, 0))
    save(store, {}, step=restored.step + 1, epoch=0, keep=2)
    assert not drafts(root)


SAVE_MORE_THAN_ALLOWED = """
import resource, sys
from pathlib import Path
import numpy as np
from wattline.checkpoint import LocalStore, StorageError, save
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    save(LocalStore(Path(sys.argv[1])), {"w": np.random.default_rng(0).random(1_000_000)}, step=2, epoch=0)
except StorageError as error:
    print(error)
    sys.exit(3)
"""


def test_a_disk_that_takes_no_more_costs_only_this_save(tmp_path: Path) -> None:
    save(LocalStore(tmp_path), {"w": np.arange(10)}, step=1, epoch=0)
    done = subprocess.run(
        [sys.executable, "-c", SAVE_MORE_THAN_ALLOWED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "could not be saved: File too large" in done.stdout
    assert "hint: free some space or keep fewer" in done.stdout
    assert not list((tmp_path / ".writing").iterdir())
    restored = restore(LocalStore(tmp_path))
    assert restored is not None
    assert restored.step == 1


def noise(count: int) -> np.ndarray[Any, Any]:
    """Numbers that no codec makes fewer."""
    return np.frombuffer(np.random.default_rng(count).bytes(8 * count), np.uint8)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs more rights than this test has")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_keeps_what_was_there_and_says_what_to_do(small_disk: Path) -> None:
    save(LocalStore(small_disk), {"w": noise(25_000)}, step=1, epoch=0)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        save(LocalStore(small_disk), {"w": noise(200_000)}, step=2, epoch=0)
    assert "free some space" in str(caught.value)
    assert not list((small_disk / ".writing").iterdir())
    verify(LocalStore(small_disk), "step-00000001.e0")
    save(LocalStore(small_disk), {"w": noise(25_000)}, step=3, epoch=0)


@pytest.mark.parametrize(
    "tree",
    [
        {1: np.zeros(3), "1": np.ones(3)},
        {"a/b": np.zeros(3), "a": {"b": np.ones(3)}},
        [np.zeros(3), {"/0": np.ones(3)}],
    ],
    ids=["an int and its text", "a slash in a key", "an index"],
)
def test_places_that_are_spelled_alike_are_not_mixed_up(tmp_path: Path, tree: Any) -> None:
    for step in (1, 2):
        save(LocalStore(tmp_path), tree, step=step, epoch=0)
        restored = restore(LocalStore(tmp_path))
        assert restored is not None
        assert fingerprint(restored.tree) == fingerprint(tree)
