"""Compiled code and NumPy store the same bytes, and it can be told which of them does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checkpoint.codecs import PLANES, decode, encode, kernel
from wattline.checkpoint.codecs.kernel import kernel_in_use, split_and_pair
from wattline.checkpoint.codecs.pairs import pair
from wattline.checkpoint.codecs.planes import Numbers, split
from wattline.checkpoint.codecs.ways import Packing

CHANCE = np.random.default_rng(13)
COMPILER = shlex.split(os.environ.get("CC") or "cc")
SOURCE = Path(kernel.__file__).with_name("kernel.c")
INSTALLED = kernel._LIBRARY
NOWHERE = Path("/nowhere/libkernel.so")
SPECIAL = (0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 0x0001, 0x807F, 0x7F7F)  # ±0, ±inf, NaNs, extremes


def compiled(source: str, folder: Path) -> Path:
    if shutil.which(COMPILER[0]) is None:
        pytest.skip(f"there is no {COMPILER[0]}, so nothing to compile with")
    (folder / "kernel.c").write_text(source)
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O3"]
    command = [*COMPILER, *strict, "-shared", "-fPIC", "-o", "libkernel.so", "kernel.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libkernel.so"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the source as it is now, whatever was installed; used by all tests that ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_LIBRARY", compiled(SOURCE.read_text(), tmp_path_factory.mktemp("kernel")))
        assert kernel_in_use() == "compiled"
        yield kernel._LIBRARY


def by_numpy(raw: memoryview) -> tuple[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_LIBRARY", NOWHERE)
        assert kernel_in_use().startswith("NumPy")
        return encode(raw, 2, None)


def brain_floats(count: int, scale: float = 0.02) -> npt.NDArray[np.uint16]:
    floats = (CHANCE.standard_normal(count) * scale).astype("<f4")
    return (floats.view("<u4") >> 16).astype("<u2")


def with_some(numbers: npt.NDArray[np.uint16], others: object, share: float) -> npt.NDArray[np.uint16]:
    chosen = CHANCE.random(len(numbers)) < share
    return np.where(chosen, CHANCE.choice(np.array(others, "<u2"), len(numbers)), numbers)


def misleading() -> npt.NDArray[np.uint16]:
    """Weights where the sample is taken, noise everywhere else."""
    count, each = 30_000, 256
    numbers = CHANCE.integers(0, 1 << 16, count, np.uint16)
    for at in range(4):
        start = at * ((count - each) // 3)
        numbers[start : start + each] = brain_floats(each)
    return numbers


def view(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


WEIGHTS = {
    "weights": brain_floats(300_001),
    "just above tiny": brain_floats(4097),
    "a whole number of blocks": brain_floats(64 * 100),
    "one more": brain_floats(64 * 100 + 1),
    "one less": brain_floats(64 * 100 - 1),
    "large": brain_floats(20_000, 1e30),
    "with infinities and NaNs": with_some(brain_floats(50_001), SPECIAL, 0.01),
    "with anything": with_some(brain_floats(50_001), range(1 << 16), 0.01),
}
OTHERS = {
    "half floats": (CHANCE.standard_normal(20_001) * 0.02).astype("<f2"),
    "zeros": np.zeros(9001, "<u2"),
    "noise": CHANCE.integers(0, 1 << 16, 20_001, np.uint16),
    "special alone": np.resize(np.array(SPECIAL, "<u2"), 9001),
    "counting": np.arange(20_001, dtype="<u2"),
    "misleading": misleading(),
    "tiny": brain_floats(4096),
    "empty": brain_floats(0),
}


@pytest.mark.parametrize("name", [*WEIGHTS, *OTHERS])
def test_a_chunk_is_stored_the_same_and_comes_back(library: Path, name: str) -> None:
    raw = view((WEIGHTS | OTHERS)[name])
    codec, stored = encode(raw, 2, None)
    assert (codec, stored) == by_numpy(raw)
    into = bytearray(len(raw))
    decode(codec, stored, memoryview(into), 2, None)
    assert into == raw


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_what_the_kernel_is_for(
    library: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a kernel there is nothing left for NumPy to pair."""
    monkeypatch.delattr("wattline.checkpoint.codecs.packing.pair")
    codec, stored = encode(view(WEIGHTS[name]), 2, None)
    assert codec == PLANES
    assert (stored[1], stored[6]) == (Packing.PLAIN, Packing.PAIRS)
    with pytest.raises(NameError):
        by_numpy(view(WEIGHTS[name]))


def split_and_paired_by_numpy(numbers: Numbers, lowest: int) -> list[bytes]:
    planes = np.empty((2, len(numbers)), np.uint8)
    split(numbers, True, None, planes, np.empty_like(numbers))
    return [planes[0].tobytes(), *(one.tobytes() for one in pair(planes[1], lowest))]


@settings(deadline=None)
@given(
    some=st.lists(st.one_of(st.integers(0, 0xFFFF), st.sampled_from(SPECIAL)), min_size=1, max_size=200),
    count=st.integers(1, 400),
    lowest=st.integers(0, 255),
)
def test_any_numbers_are_split_and_paired_the_same(
    library: Path, some: list[int], count: int, lowest: int
) -> None:
    numbers = np.resize(np.array(some, "<u2"), count)
    done = split_and_pair(numbers, lowest)
    assert done is not None
    assert [one.tobytes() for one in done] == split_and_paired_by_numpy(numbers, lowest)


def test_of_no_numbers_nothing_is_made(library: Path) -> None:
    done = split_and_pair(np.empty(0, "<u2"), 100)
    assert done is not None
    assert [len(one) for one in done] == [0, 0, 0]


@pytest.mark.parametrize("step", [1, 2])
def test_numbers_may_begin_anywhere_and_lie_apart(library: Path, step: int) -> None:
    raw = CHANCE.integers(0, 256, 1001, np.uint8)
    numbers = np.frombuffer(raw.data[1:], "<u2")[::step]
    done = split_and_pair(numbers, 7)
    assert done is not None
    assert [one.tobytes() for one in done] == split_and_paired_by_numpy(numbers, 7)


def test_a_chunk_stored_before_there_was_a_kernel_is_read(library: Path) -> None:
    stored = bytes.fromhex(
        "00002d000000032300000046351e010042fe464746351e010042fe464746351e010042fe464746351e010042"
        "fe464746351e010042fe46477005000000ffffffffff28b52ffd201785000050987a9f8788a9f77988080100"
        "3cca11"
    )
    expected = np.array([0x3C23, 0xBC9A, 0x3D0F, 0xBB80, 0x7F80, 0x3CA1, 0x3BFF, 0x3C23, 0xBC23] * 5, "<u2")
    into = np.zeros_like(expected)
    decode(PLANES, stored, view(into), 2, None)
    assert into.tolist() == expected.tolist()


def test_without_a_library_numpy_is_used_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_LIBRARY", NOWHERE)
    assert split_and_pair(brain_floats(10), 100) is None
    assert kernel_in_use() == "NumPy, as libkernel.so was not built when the package was installed"


def test_a_library_that_is_none_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libkernel.so").write_bytes(b"\x7fELF and then nothing of the kind")
    monkeypatch.setattr(kernel, "_LIBRARY", tmp_path / "libkernel.so")
    assert split_and_pair(brain_floats(10), 100) is None
    assert "cannot be loaded" in kernel_in_use()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("INTERFACE = 1", "INTERFACE = 2", "has interface 2, not 1"),
        ("wattline_split_and_pair", "another_name", "cannot be loaded"),
        ("wattline_kernel_interface", "another_name", "cannot be loaded"),
    ],
)
def test_a_library_of_another_version_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str, new: str, told: str
) -> None:
    source = SOURCE.read_text()
    assert old in source
    monkeypatch.setattr(kernel, "_LIBRARY", compiled(source.replace(old, new), tmp_path))
    assert split_and_pair(brain_floats(10), 100) is None
    assert told in kernel_in_use()


@pytest.mark.skipif(not INSTALLED.exists(), reason="no kernel was built when the package was installed")
def test_the_installed_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_LIBRARY", INSTALLED)
    assert kernel_in_use() == "compiled"
