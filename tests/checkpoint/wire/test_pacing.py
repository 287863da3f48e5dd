"""A rate is held in every second, by all threads together, and changes when told."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blake3 import blake3

from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.stores import LocalStore, PacedStore
from wattline.errors import UsageError


def take_for(rate: Rate, seconds: float, threads: int) -> tuple[list[int], list[float]]:
    """What each thread got, and when each piece was had."""
    until, times, lock = time.monotonic() + seconds, list[float](), threading.Lock()

    def take() -> int:
        got = 0
        while time.monotonic() < until:
            rate.take(rate.piece_bytes)
            got += rate.piece_bytes
            with lock:
                times.append(time.monotonic())
        return got

    with ThreadPoolExecutor(threads) as pool:
        shares = [future.result() for future in [pool.submit(take) for _ in range(threads)]]
    return shares, sorted(times)


def test_no_second_has_more_than_the_rate_and_a_little() -> None:
    rate = Rate(200_000)
    _, times = take_for(rate, 2.0, threads=6)
    for first in times:
        inside = sum(first <= at < first + 1.0 for at in times) * rate.piece_bytes
        # The times are noted after the fact, so a thread that was held up in between shows as too much.
        assert inside <= 200_000 * 1.15


def test_nearly_all_of_the_rate_is_used_and_threads_have_equal_shares() -> None:
    for _ in range(4):  # what a machine that stalls does not use is lost: then once more
        shares, _ = take_for(Rate(200_000), 2.0, threads=4)
        assert sum(shares) <= 1.15 * 400_000
        if sum(shares) >= 0.6 * 400_000 and min(shares) >= 0.5 * max(shares):
            break
    assert sum(shares) >= 0.6 * 400_000
    assert min(shares) >= 0.5 * max(shares)


def test_a_rate_that_is_raised_frees_those_who_wait() -> None:
    rate = Rate(10)
    done = threading.Event()

    def wait() -> None:
        rate.take(1_000_000)
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not done.wait(0.2)
    rate.change(1e9)
    assert done.wait(20)
    assert rate.bytes_per_second == 1e9


def test_a_rate_that_is_lowered_holds_at_once() -> None:
    rate = Rate(1e9)
    rate.take(1_000_000)
    rate.change(50_000)
    began = time.monotonic()
    rate.take(25_000)
    assert time.monotonic() - began >= 0.3


def test_what_did_not_go_may_be_given_back() -> None:
    rate = Rate(10)
    rate.give_back(500)
    began = time.monotonic()
    rate.take(500)
    assert time.monotonic() - began < 25  # else it were 50


def test_later_bytes_wait_for_those_that_are_owed() -> None:
    rate = Rate(100_000)
    rate.owe(40_000)
    began = time.monotonic()
    rate.take(1000)
    assert time.monotonic() - began >= 0.3


def test_pieces_are_small_and_all_there() -> None:
    data = bytes(range(256)) * 40
    pieces = [bytes(piece) for piece in Rate(100_000).pieces(memoryview(data))]
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 2000


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), float("nan")])
def test_a_rate_is_a_finite_number_above_nothing(wrong: float) -> None:
    with pytest.raises(UsageError, match="no rate"):
        Rate(wrong)


def test_a_paced_store_is_the_store_but_slower(tmp_path: Path) -> None:
    plain = LocalStore(tmp_path)
    store = PacedStore(plain, Rate(100_000))
    began = time.monotonic()
    with store.create("packs/a") as writing:
        writing.write(memoryview(b"a" * 20_000))
        writing.finish()
    assert store.put("fence", b"f" * 10_000, replace=False)
    assert not store.put("fence", b"g", replace=False)
    assert time.monotonic() - began >= 0.2
    assert store.read("packs/a", 5, 2) == plain.read("packs/a", 5, 2) == b"aa"
    assert [stored.name for stored in store.list()] == ["fence", "packs/a"]
    store.delete("fence")
    assert [stored.name for stored in plain.list()] == ["packs/a"]
    assert store.address == plain.address


def test_parts_take_their_share_of_the_rate_too(tmp_path: Path) -> None:
    data = b"p" * 30_000
    arriving = PacedStore(LocalStore(tmp_path), Rate(100_000)).arrive(
        "packs/a", len(data), blake3(data).hexdigest()
    )
    began = time.monotonic()
    for number in arriving.missing:
        start = number * arriving.part_bytes
        arriving.put(number, memoryview(data)[start : start + arriving.part_bytes])
    arriving.finish()
    assert time.monotonic() - began >= 0.2
    assert LocalStore(tmp_path).read("packs/a") == data
