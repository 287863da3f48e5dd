"""A folder as a store: what a crash, another process or a stranger's file does to it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.stores import LocalStore, MissingError

DATA = bytes(range(256)) * 6000  # two parts
DIGEST = blake3(DATA).hexdigest()
PART_BYTES = 2**20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is made durable and renamed, in order, by the last part of its path."""
    told: list[tuple[str, str]] = []
    fsync, mkdir, rename, unlink, link = os.fsync, os.mkdir, os.rename, os.unlink, os.link

    def record(verb: str, path: object) -> None:
        told.append((verb, Path(str(path)).name))

    def wrap(verb: str, real: Callable[..., None], which: int) -> Callable[..., None]:
        def wrapped(*arguments: object, **options: object) -> None:
            real(*arguments, **options)
            record(verb, arguments[which])

        return wrapped

    def recorded_fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        fsync(descriptor)
        record("sync" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file", path)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "mkdir", wrap("mkdir", mkdir, 0))
    monkeypatch.setattr(os, "rename", wrap("rename", rename, 1))
    monkeypatch.setattr(os, "unlink", wrap("unlink", unlink, 0))
    monkeypatch.setattr(os, "link", wrap("link", link, 1))
    return told


def arrive(store: LocalStore, name: str = "packs/a") -> None:
    arriving = store.arrive(name, len(DATA), DIGEST)
    for number in arriving.missing:
        arriving.put(number, memoryview(DATA)[number * PART_BYTES : (number + 1) * PART_BYTES])
    arriving.finish()


def make_old(path: Path) -> None:
    os.utime(path, (time.time() - 7200, time.time() - 7200))


# what survives a power cut


def test_an_object_is_on_disk_before_it_has_its_name_and_its_folder_after(
    store: LocalStore, journal: list[tuple[str, str]]
) -> None:
    for replace in (True, False):
        journal.clear()
        store.put(f"packs/{replace}", b"1", replace=replace)
        verbs = [verb for verb, name in journal if name in (f"{replace}", "packs") or verb == "sync file"]
        assert verbs[-3:] == ["sync file", "rename" if replace else "link", "sync"]


def test_every_folder_made_for_an_object_is_made_durable(
    store: LocalStore, journal: list[tuple[str, str]]
) -> None:
    store.put("packs/a", b"1", replace=True)
    shown = journal.index(("rename", "a"))
    for made, above in (("deep", None), ("store", "deep"), ("packs", "store")):
        assert ("mkdir", made) in journal[:shown]
        if above is not None:
            assert ("sync", above) in journal[journal.index(("mkdir", made)) : shown]


def test_a_folder_that_another_process_has_just_made_is_made_durable_too(
    store: LocalStore, root: Path, journal: list[tuple[str, str]]
) -> None:
    for name in ("packs", ".writing"):
        (root / name).mkdir(parents=True)
    store.put("packs/a", b"1", replace=True)
    assert ("sync", "store") in journal[: journal.index(("rename", "a"))]


def test_a_deletion_is_durable_before_the_next_one_begins(
    store: LocalStore, journal: list[tuple[str, str]]
) -> None:
    store.put("checkpoints/a", b"1", replace=True)
    store.put("packs/a", b"1", replace=True)
    journal.clear()
    store.delete("checkpoints/a")
    store.delete("packs/a")
    assert journal == [("unlink", "a"), ("sync", "checkpoints"), ("unlink", "a"), ("sync", "packs")]


def test_a_map_without_its_file_tells_nothing(store: LocalStore, root: Path) -> None:
    """As after a crash that lost the file, or came between its renaming and the end of its map."""
    arriving = store.arrive("packs/a", len(DATA), DIGEST)
    arriving.put(0, memoryview(DATA)[:PART_BYTES])
    (data,) = (path for path in (root / ".arriving").iterdir() if path.suffix != ".map")
    data.unlink()
    assert list(store.arrive("packs/a", len(DATA), DIGEST).missing) == [0, 1]


def test_a_part_is_kept_whole_where_the_disk_takes_little_at_a_time(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, pwrite = os.write, os.pwrite
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:300_001]))
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: pwrite(descriptor, data[:300_001], at))
    arrive(store)
    store.put("packs/b", DATA, replace=True)
    assert store.read("packs/a") == store.read("packs/b") == DATA


def test_a_full_disk_is_told_with_a_remedy_and_leaves_nothing(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="free some space"):
        store.put("packs/a", b"1", replace=True)
    assert store.list() == []
    assert list((root / ".writing").iterdir()) == []


def test_a_disk_that_fails_while_it_is_read_may_recover_and_a_forbidden_file_does_not(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("packs/a", b"1", replace=True)
    for number, kind in ((errno.EIO, StorageError), (errno.ESTALE, StorageError)):
        with monkeypatch.context() as patch:
            patch.setattr(os, "pread", _failing(number))
            with pytest.raises(kind):
                store.read("packs/a")
    monkeypatch.setattr(os, "open", _failing(errno.EACCES))
    with pytest.raises(CheckpointError) as caught:
        store.read("packs/a")
    assert not isinstance(caught.value, StorageError | MissingError)


def _failing(number: int) -> Callable[..., int]:
    def fail(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


# what sweeps may take


def test_a_dead_writers_file_goes_when_it_is_old(store: LocalStore, root: Path) -> None:
    store.put("packs/a", b"1", replace=True)
    left = root / ".writing" / "left"
    left.write_bytes(b"12345")
    assert store.sweep(3600) == 0
    make_old(left)
    assert store.sweep(3600) == 5
    assert not left.exists()


def test_a_living_writers_file_stays_however_old_it_is(store: LocalStore, root: Path) -> None:
    with store.create("packs/a") as writing:
        writing.write(memoryview(b"12345"))
        (path,) = (root / ".writing").iterdir()
        make_old(path)
        assert store.sweep(0) == 0
        writing.finish()
    assert store.read("packs/a") == b"12345"


def test_a_writer_whose_file_was_swept_before_it_was_locked_takes_another(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    swept: list[Path] = []

    def sweep_first(descriptor: int, how: int) -> None:
        if not swept:
            swept.extend((root / ".writing").iterdir())
            swept[0].unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    store.put("packs/a", b"1", replace=True)
    assert len(swept) == 1
    assert store.read("packs/a") == b"1"


def test_an_arrival_that_somebody_came_back_to_is_not_old(store: LocalStore, root: Path) -> None:
    store.arrive("packs/a", len(DATA), DIGEST).put(0, memoryview(DATA)[:PART_BYTES])
    for path in (root / ".arriving").iterdir():
        make_old(path)
    arriving = store.arrive("packs/a", len(DATA), DIGEST)
    assert store.sweep(3600) == 0
    assert list(arriving.missing) == [1]


def test_an_arrival_goes_as_a_whole_or_stays_as_a_whole(store: LocalStore, root: Path) -> None:
    store.arrive("packs/a", len(DATA), DIGEST)
    paths = sorted((root / ".arriving").iterdir())
    make_old(paths[0])
    assert store.sweep(3600) == 0
    assert sorted((root / ".arriving").iterdir()) == paths
    make_old(paths[1])
    assert store.sweep(3600) == len(DATA) + 2
    assert list((root / ".arriving").iterdir()) == []


def test_what_cannot_be_swept_keeps_nobody_from_saving(store: LocalStore, root: Path) -> None:
    store.put("packs/a", b"1", replace=True)
    stranger = root / ".writing" / "folder"
    stranger.mkdir()
    os.mkfifo(root / ".writing" / "pipe")
    for path in (root / ".writing").iterdir():
        make_old(path)
    store.sweep(0)
    assert stranger.exists()


def test_a_file_that_has_its_name_already_frees_nothing(store: LocalStore, root: Path) -> None:
    """As after a crash between the link to its name and the end of the name nobody reads."""
    store.put("packs/a", b"12345", replace=True)
    left = root / ".writing" / "left"
    os.link(root / "packs" / "a", left)
    make_old(left)
    assert store.sweep(3600) == 0
    assert not left.exists()
    assert store.read("packs/a") == b"12345"


# who else is there


def test_a_script_that_changes_its_folder_keeps_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = LocalStore(Path("store"))
    store.put("fence", b"1", replace=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert store.read("fence") == b"1"


def test_a_file_is_no_empty_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be listed"):
        LocalStore(tmp_path / "file").list("packs/")


def test_what_is_no_object_is_neither_listed_nor_read(store: LocalStore, root: Path, tmp_path: Path) -> None:
    store.put("packs/a", b"1", replace=True)
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "packs" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "packs" / "pipe")
    (root / "packs" / "a name with blanks").write_bytes(b"")
    (root / "lost+found").mkdir()
    (root / "lost+found" / "x").write_bytes(b"")
    assert [stored.name for stored in store.list()] == ["packs/a"]
    for name in ("packs/link", "packs/pipe"):
        with pytest.raises(CheckpointError):
            store.read(name)


def test_parts_of_one_who_comes_late_do_not_change_what_was_verified(store: LocalStore) -> None:
    late = store.arrive("packs/a", len(DATA), DIGEST)
    arrive(store)
    assert list(late.missing) == []
    late.put(0, memoryview(bytes(PART_BYTES)))
    late.finish()
    assert store.read("packs/a") == DATA


def test_a_part_that_comes_when_the_whole_is_gone_again_is_told_so(store: LocalStore) -> None:
    late = store.arrive("packs/a", len(DATA), DIGEST)
    arrive(store)
    store.delete("packs/a")
    for step in (lambda: late.put(0, memoryview(bytes(PART_BYTES))), late.finish, lambda: late.missing):
        with pytest.raises(StorageError, match="any more"):
            step()


def test_a_part_that_waited_while_the_whole_was_finished_does_not_fall_into_the_next_arrival(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = store.arrive("packs/a", len(DATA), DIGEST)
    flock = fcntl.flock

    def finish_and_begin_again(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        arrive(store)
        store.delete("packs/a")
        store.arrive("packs/a", len(DATA), DIGEST)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", finish_and_begin_again)
    with pytest.raises(StorageError, match="any more"):
        late.put(0, memoryview(bytes(PART_BYTES)))
    again = store.arrive("packs/a", len(DATA), DIGEST)
    again.put(0, memoryview(DATA)[:PART_BYTES])
    again.put(1, memoryview(DATA)[PART_BYTES:])
    again.finish()
    assert store.read("packs/a") == DATA


def test_parts_of_another_size_are_another_arrival(store: LocalStore) -> None:
    store.arrive("packs/a", len(DATA), DIGEST).put(0, memoryview(DATA)[:PART_BYTES])
    finer = store.arrive("packs/a", len(DATA), DIGEST, part_bytes=PART_BYTES // 2)
    assert list(finer.missing) == [0, 1, 2]
    for number in finer.missing:
        finer.put(number, memoryview(DATA)[number * finer.part_bytes :][: finer.part_bytes])
    finer.finish()
    assert store.read("packs/a") == DATA


def test_a_part_waits_while_the_whole_is_verified(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = store.arrive("packs/a", len(DATA), DIGEST)
    for number in (0, 1):
        arriving.put(number, memoryview(DATA)[number * PART_BYTES : (number + 1) * PART_BYTES])
    (path,) = (root / ".arriving").glob("*.map")
    pread = os.pread
    refused: list[BlockingIOError] = []

    def look_meanwhile(descriptor: int, size: int, at: int) -> bytes:
        with path.open("rb") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as error:
                refused.append(error)
        return pread(descriptor, size, at)

    monkeypatch.setattr(os, "pread", look_meanwhile)
    arriving.finish()
    assert len(refused) >= 3  # the map, its bytes, its end


def test_the_lock_keeps_others_out_and_ends_with_its_holder(store: LocalStore, root: Path) -> None:
    holder = _start(root, "import time; print('held', flush=True); time.sleep(60)")
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert _is_locked(root)
    finally:
        holder.kill()
        holder.communicate()
    with store.exclusive():
        assert _is_locked(root)
    assert not _is_locked(root)


def test_the_lock_ends_though_a_child_was_forked_meanwhile(root: Path) -> None:
    """As a data loader forks its workers while a checkpoint is published."""
    holder = _start(root, "pid = os.fork(); pid or time.sleep(60); inside = pid", "print(inside, flush=True)")
    try:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            assert not _is_locked(root)
        finally:
            os.kill(child, 9)
    finally:
        holder.communicate(timeout=30)


def _start(root: Path, inside: str, after: str = "pass") -> subprocess.Popen[bytes]:
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom wattline.checkpoint.stores import LocalStore\n"
        f"with LocalStore(Path(sys.argv[1])).exclusive():\n    {inside}\n{after}\n"
    )
    return subprocess.Popen([sys.executable, "-c", script, str(root)], stdout=subprocess.PIPE)


def _is_locked(root: Path) -> bool:
    with (root / ".lock").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
