"""What every store promises: each sentence of stores/contract.py, and what follows from it."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.stores import Arriving, MissingError, Store

OpenStore = Callable[[], Store]
ABSENT = "0" * 64
BAD_NAMES = [
    "",
    "/etc/passwd",
    "../outside",
    "packs/../../outside",
    "packs//x",
    "packs/",
    ".hidden",
    "packs/.hidden",
    "packs/x\n",
    "packs/x\0",
    "packs\\x",
    "päcks",
    "a" * 300,
    "/".join("abcdefghi"),
]
RANGES = [(0, None), (0, 10), (3, 4), (3, None), (9, 5), (10, 1), (10, None), (99, 3), (4, 0), (99, 0)]
NAMES = st.from_regex(r"[a-c][a-c.]{0,2}(/[a-c][a-c.]{0,2}){0,2}", fullmatch=True)


def some_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def names(store: Store, prefix: str = "") -> list[str]:
    return [stored.name for stored in store.list(prefix)]


def an_arrival(store: Store, data: bytes, name: str = "packs/a") -> Arriving:
    return store.arrive(name, len(data), blake3(data).hexdigest())


def send(arriving: Arriving, data: bytes, number: int) -> None:
    start = number * arriving.part_bytes
    arriving.put(number, memoryview(data)[start : start + arriving.part_bytes])


def write(store: Store, name: str, *pieces: bytes) -> None:
    with store.create(name) as writing:
        for piece in pieces:
            writing.write(memoryview(piece))
        writing.finish()


def parts_bytes(store: Store, parts: float) -> int:
    """A size that makes so many parts."""
    return int(store.arrive("packs/any", 1, ABSENT).part_bytes * parts)


# names and listing


def test_a_name_that_could_leave_the_store_is_refused_by_every_verb(store: Store) -> None:
    verbs: list[Callable[[str], object]] = [
        store.read,
        lambda name: store.put(name, b"", replace=True),
        lambda name: store.put(name, b"", replace=False),
        lambda name: store.create(name).__enter__(),
        lambda name: store.arrive(name, 0, ABSENT),
        store.delete,
    ]
    for name in BAD_NAMES:
        for verb in verbs:
            with pytest.raises(CheckpointError, match="name of an object"):
                verb(name)


def test_a_listing_does_not_leave_the_store(store: Store) -> None:
    for prefix in ("../", "/", "/etc/", "..", "packs/../", ".arriving/", "x\0"):
        with pytest.raises(CheckpointError, match="begins with"):
            store.list(prefix)


def test_a_store_that_nobody_has_written_to_is_empty(store: Store) -> None:
    assert store.list() == []
    assert store.list("packs/") == []
    assert store.sweep(0) == 0
    with pytest.raises(MissingError):
        store.read("fence")


def test_a_listing_tells_names_that_begin_so_in_order_with_sizes(store: Store) -> None:
    before = time.time() - 60
    for name in ("packs/b", "packs/a-2", "packs/a", "packs.old", "checkpoints/deep/er/x", "fence"):
        store.put(name, name.encode(), replace=False)
    assert names(store) == ["checkpoints/deep/er/x", "fence", "packs.old", "packs/a", "packs/a-2", "packs/b"]
    assert names(store, "packs/") == ["packs/a", "packs/a-2", "packs/b"]
    assert names(store, "packs/a") == ["packs/a", "packs/a-2"]
    assert names(store, "packs") == ["packs.old", "packs/a", "packs/a-2", "packs/b"]
    assert names(store, "checkpoints/deep/") == ["checkpoints/deep/er/x"]
    assert names(store, "nothing/") == []
    assert [stored.size_bytes for stored in store.list("packs/")] == [7, 9, 7]
    assert all(before < stored.modified_at < time.time() + 60 for stored in store.list())


def test_a_folder_of_objects_is_no_object(store: Store) -> None:
    store.put("packs/a", b"1", replace=False)
    with pytest.raises(MissingError):
        store.read("packs")
    with pytest.raises(MissingError):
        store.read("packs/a/below")
    store.delete("packs")
    store.delete("packs/a/below")
    assert names(store) == ["packs/a"]


# reading


@pytest.mark.parametrize("data", [b"0123456789", b""])
def test_a_read_gives_what_is_asked_for_and_fewer_only_where_the_object_ends(
    store: Store, data: bytes
) -> None:
    store.put("packs/put", data, replace=False)
    write(store, "packs/written", data)
    arriving = an_arrival(store, data, "packs/arrived")
    for number in arriving.missing:
        send(arriving, data, number)
    arriving.finish()
    for name in ("packs/put", "packs/written", "packs/arrived"):
        for start, length in RANGES:
            assert store.read(name, start, length) == data[start : None if length is None else start + length]
    assert [stored.size_bytes for stored in store.list()] == [len(data)] * 3


def test_what_is_not_there_is_missing_however_it_is_read(store: Store) -> None:
    for start, length in RANGES:
        with pytest.raises(MissingError):
            store.read("packs/a", start, length)


def test_a_range_that_begins_or_ends_before_the_object_is_refused(store: Store) -> None:
    store.put("packs/a", b"0123456789", replace=False)
    for start, length in ((-1, None), (-1, 5), (0, -1)):
        with pytest.raises(CheckpointError, match="bytes from"):
            store.read("packs/a", start, length)


def test_an_object_deleted_under_its_readers_is_whole_or_missing(store: Store) -> None:
    data = some_bytes(300_000)

    def read_until_missing() -> bool:
        try:
            while True:
                assert store.read("packs/a") == data
        except MissingError:
            return True

    store.put("packs/a", data, replace=False)
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read_until_missing) for _ in range(2)]
        store.delete("packs/a")
        assert all(reader.result(30) for reader in readers)


# putting and deleting


def test_an_object_is_replaced_only_where_that_is_asked_for(store: Store) -> None:
    assert store.put("fence", b"1", replace=False)
    assert not store.put("fence", b"2", replace=False)
    assert store.read("fence") == b"1"
    assert store.put("fence", b"3", replace=True)
    assert store.read("fence") == b"3"


def test_a_replaced_object_is_the_old_or_the_new_one_to_its_readers(store: Store) -> None:
    versions = [bytes([number]) * 50_000 for number in range(1, 6)]
    store.put("fence", versions[0], replace=True)

    def replace() -> None:
        for version in versions:
            store.put("fence", version, replace=True)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(replace)
        while not writer.done():
            assert store.read("fence") in versions
        writer.result()


def test_a_deleted_object_is_gone_and_may_be_put_again(store: Store) -> None:
    store.put("fence", b"1", replace=False)
    store.delete("fence")
    store.delete("fence")
    assert names(store) == []
    assert store.put("fence", b"2", replace=False)


def test_of_many_that_put_at_once_without_replacing_one_is_told_true(open_store: OpenStore) -> None:
    stores = [open_store() for _ in range(4)]
    for round_ in range(5):
        barrier = Barrier(len(stores))

        def put(number: int, round_: int = round_, barrier: Barrier = barrier) -> bool:
            barrier.wait(30)
            return stores[number].put(f"fence-{round_}", b"%d" % number, replace=False)

        with ThreadPoolExecutor(len(stores)) as pool:
            told = list(pool.map(put, range(len(stores))))
        assert sum(told) == 1
        assert stores[0].read(f"fence-{round_}") == b"%d" % told.index(True)


# writing


def test_a_reader_sees_nothing_of_an_object_before_it_is_finished(open_store: OpenStore) -> None:
    store, other = open_store(), open_store()
    data = some_bytes(11 * 2**20)
    with store.create("packs/a") as writing:
        for start in range(0, len(data), 2**20):
            writing.write(memoryview(data)[start : start + 2**20])
        assert names(other) == []
        with pytest.raises(MissingError):
            other.read("packs/a")
        writing.finish()
        assert other.read("packs/a") == data
    assert names(other) == ["packs/a"]


@pytest.mark.parametrize("size", [0, 10, 6 * 2**20])
def test_an_object_that_is_not_finished_leaves_nothing_behind(store: Store, size: int) -> None:
    with store.create("packs/a") as writing:
        writing.write(memoryview(some_bytes(size)))
    with suppress(KeyError), store.create("packs/a") as writing:
        writing.write(memoryview(some_bytes(size)))
        raise KeyError
    assert names(store) == []
    assert store.sweep(-60) == 0


def test_what_the_writer_itself_raises_is_not_taken_for_a_fault_of_the_store(store: Store) -> None:
    with pytest.raises(FileNotFoundError), store.create("packs/a"):
        raise FileNotFoundError("the source of what is written")


def test_finishing_replaces_and_until_then_the_old_one_stays(store: Store) -> None:
    store.put("packs/a", b"old", replace=False)
    with store.create("packs/a") as writing:
        writing.write(memoryview(b"new"))
        assert store.read("packs/a") == b"old"
        writing.finish()
    assert store.read("packs/a") == b"new"


def test_nothing_is_added_to_an_object_that_is_finished(store: Store) -> None:
    with store.create("packs/a") as writing:
        writing.write(memoryview(b"whole"))
        writing.finish()
        with pytest.raises(CheckpointError, match="any more"):
            writing.write(memoryview(b" and more"))
    with pytest.raises(CheckpointError, match="any more"):
        writing.write(memoryview(b" and more"))
    with pytest.raises(CheckpointError, match="any more"):
        writing.finish()
    assert store.read("packs/a") == b"whole"


def test_a_view_of_numbers_is_written_as_its_bytes(store: Store) -> None:
    numbers: memoryview[Any] = memoryview(some_bytes(8 * 1000)).cast("d")
    with store.create("packs/a") as writing:
        writing.write(numbers)
        writing.finish()
    assert store.read("packs/a") == numbers.tobytes()


# arriving


def test_parts_arrive_in_any_order_from_threads(store: Store) -> None:
    data = some_bytes(parts_bytes(store, 2.3))
    arriving = an_arrival(store, data)
    assert list(arriving.missing) == [0, 1, 2]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: send(arriving, data, number), [2, 0, 1]))
    assert list(arriving.missing) == []
    assert names(store) == []
    arriving.finish()
    assert names(store) == ["packs/a"]
    assert store.read("packs/a") == data


def test_what_arrived_is_found_again_by_a_new_store(open_store: OpenStore) -> None:
    first, second, third = open_store(), open_store(), open_store()
    data = some_bytes(parts_bytes(first, 2.3))
    send(an_arrival(first, data), data, 1)
    arriving = an_arrival(second, data)
    assert list(arriving.missing) == [0, 2]
    send(arriving, data, 2)
    send(arriving, data, 0)
    last = an_arrival(third, data)
    assert list(last.missing) == []
    last.finish()
    assert third.read("packs/a") == data


def test_arrivals_of_another_name_size_or_hash_are_others(store: Store) -> None:
    data = some_bytes(1000)
    send(an_arrival(store, data), data, 0)
    for other in (
        store.arrive("packs/b", 1000, blake3(data).hexdigest()),
        store.arrive("packs/deep/a", 1000, blake3(data).hexdigest()),
        store.arrive("packs/a", 1001, blake3(data).hexdigest()),
        store.arrive("packs/a", 1000, ABSENT),
    ):
        assert list(other.missing) == [0]


def test_a_part_that_is_sent_twice_counts_once_and_the_last_one_counts(store: Store) -> None:
    data = some_bytes(1000)
    arriving = an_arrival(store, data)
    arriving.put(0, memoryview(bytes(1000)))
    send(arriving, data, 0)
    arriving.finish()
    assert store.read("packs/a") == data


def test_what_arrived_with_another_hash_is_not_kept(open_store: OpenStore) -> None:
    store = open_store()
    data = some_bytes(parts_bytes(store, 1.5))
    arriving = an_arrival(store, data)
    send(arriving, data, 0)
    arriving.put(1, memoryview(bytes(len(data) - arriving.part_bytes)))
    with pytest.raises(CheckpointError, match="not what was sent"):
        arriving.finish()
    assert names(store) == []
    again = an_arrival(open_store(), data)
    assert list(again.missing) == [0, 1]
    for number in (0, 1):
        send(again, data, number)
    again.finish()
    assert store.read("packs/a") == data


def test_an_empty_arrival_is_compared_too(store: Store) -> None:
    with pytest.raises(CheckpointError, match="not what was sent"):
        store.arrive("packs/a", 0, ABSENT).finish()
    assert names(store) == []


def test_what_has_not_all_arrived_cannot_be_finished_and_stays(store: Store) -> None:
    data = some_bytes(parts_bytes(store, 1.5))
    arriving = an_arrival(store, data)
    send(arriving, data, 1)
    with pytest.raises(CheckpointError, match="1 parts have not arrived"):
        arriving.finish()
    assert names(store) == []
    send(arriving, data, 0)
    arriving.finish()
    assert store.read("packs/a") == data


def test_a_part_of_the_wrong_number_or_length_is_refused(store: Store) -> None:
    arriving = an_arrival(store, some_bytes(1000))
    for number, size in ((0, 999), (0, 1001), (0, 0), (1, 1000), (1, 0), (-1, 1000)):
        with pytest.raises(CheckpointError, match=f"part {number} "):
            arriving.put(number, memoryview(bytes(size)))
    assert list(arriving.missing) == [0]


def test_an_arrival_without_a_size_and_a_hash_is_refused(store: Store) -> None:
    for size, digest in ((-1, ABSENT), (2**60, ABSENT), (1, "beef"), (1, "G" * 64)):
        with pytest.raises(CheckpointError, match="cannot arrive"):
            store.arrive("packs/a", size, digest)


def test_an_arrival_replaces_what_has_its_name(store: Store) -> None:
    data = some_bytes(1000)
    store.put("packs/a", b"old", replace=False)
    arriving = an_arrival(store, data)
    send(arriving, data, 0)
    assert store.read("packs/a") == b"old"
    arriving.finish()
    assert store.read("packs/a") == data


def test_two_that_send_the_same_at_once_do_not_spoil_it(open_store: OpenStore) -> None:
    data = some_bytes(300_000)
    whole = Barrier(2)

    def replicate() -> None:
        arriving = an_arrival(open_store(), data)
        for number in list(arriving.missing):
            send(arriving, data, number)
        whole.wait(30)
        with suppress(StorageError):  # the other was quicker
            arriving.finish()

    with ThreadPoolExecutor(2) as pool:
        for sender in [pool.submit(replicate) for _ in range(2)]:
            sender.result(60)
    assert open_store().read("packs/a") == data


# exclusion and sweeping


def test_a_short_change_may_be_made_alone_where_the_store_can(store: Store) -> None:
    with store.exclusive():
        store.put("fence", b"1", replace=True)
    with store.exclusive():
        assert store.read("fence") == b"1"


def test_a_sweep_removes_arrivals_that_nobody_touched_for_so_long(
    open_store: OpenStore, eventually: Callable[[Callable[[], bool]], bool]
) -> None:
    store = open_store()
    data = some_bytes(1000)
    send(an_arrival(store, data), data, 0)
    store.put("packs/b", b"stays", replace=False)
    assert store.sweep(3600) == 0
    assert list(an_arrival(store, data).missing) == []
    freed_bytes = 0

    def swept() -> bool:
        nonlocal freed_bytes
        freed_bytes += store.sweep(0)
        return freed_bytes > 0

    assert eventually(swept)
    assert freed_bytes >= 1000
    assert names(store) == ["packs/b"]
    assert list(an_arrival(open_store(), data).missing) == [0]


def test_a_sweep_leaves_what_is_being_written_now(store: Store) -> None:
    data = some_bytes(22 * 2**20)  # the emulated service dates an upload by its parts alone: one has landed
    with store.create("packs/a") as writing:
        writing.write(memoryview(data))
        store.sweep(3600)
        writing.finish()
    assert store.read("packs/a") == data


def test_an_arrival_that_was_swept_says_so_and_can_begin_again(
    store: Store, eventually: Callable[[Callable[[], bool]], bool]
) -> None:
    data = some_bytes(1000)
    arriving = an_arrival(store, data)
    send(arriving, data, 0)
    assert eventually(lambda: store.sweep(0) > 0)
    with pytest.raises(CheckpointError):
        arriving.finish()
    with pytest.raises(CheckpointError):
        send(arriving, data, 0)
    again = an_arrival(store, data)
    send(again, data, 0)
    again.finish()
    assert store.read("packs/a") == data


# at large


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=6), NAMES)
def test_a_store_is_a_dictionary_with_sorted_names(
    store: Store, objects: dict[str, bytes], prefix: str
) -> None:
    # A folder cannot hold a file and a folder of one name, and no layout here asks for it.
    apart = secrets.token_hex(8) + "/"
    folders = {name.rpartition("/")[0] for name in objects} | {
        name.partition("/")[0] for name in objects if "/" in name
    }
    objects = {apart + name: data for name, data in objects.items() if name not in folders}
    prefix = apart + prefix
    for name, data in objects.items():
        assert store.put(name, data, replace=False)
    assert names(store, apart) == sorted(objects)
    assert names(store, prefix) == sorted(name for name in objects if name.startswith(prefix))
    assert {name: store.read(name) for name in objects} == objects


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.integers(0, 3 * 2**20), max_size=5))
def test_pieces_of_any_size_are_joined_as_they_come(store: Store, sizes: list[int]) -> None:
    pieces = [some_bytes(size, seed) for seed, size in enumerate(sizes)]
    write(store, "packs/a", *pieces)
    assert store.read("packs/a") == b"".join(pieces)
