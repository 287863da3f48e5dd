"""How is each thing a script trains with captured, and put back exactly as it was?"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from wattline.checkpoint import CheckpointError, LocalStore, restore, save
from wattline.train import ScriptError
from wattline.train.parts import capture, put_back, require_parts


def through_disk(tmp_path: Path, parts: dict[str, Any]) -> Any:
    store = LocalStore(tmp_path)
    save(store, capture(parts), step=1, epoch=0)
    restored = restore(store)
    assert restored is not None
    return restored.tree


def test_arrays_are_restored_in_place_for_whoever_holds_them(tmp_path: Path) -> None:
    weights = np.arange(4.0)
    layers = [np.ones(2), np.ones(3)]
    model: dict[str, Any] = {"block": {"w": weights}, "layers": layers, "count": 7, "name": "a"}
    saved = through_disk(tmp_path, {"model": model})
    weights[:] = 0
    layers[1][:] = 0
    model["count"] = 0
    put_back({"model": model}, saved)
    assert weights.tolist() == [0, 1, 2, 3]
    assert layers[1].tolist() == [1, 1, 1]
    assert model["count"] == 7
    assert model["block"]["w"] is weights
    assert model["layers"] is layers


def every_kind_of_array() -> list[np.ndarray[Any, Any]]:
    numbers = np.arange(-6, 6)
    kinds = [f"{order}{kind}" for order in "<>" for kind in ("i2", "i4", "i8", "u2", "u4", "u8")]
    kinds += ["i1", "u1", "bool", "longdouble", "clongdouble"]
    kinds += [f"{order}{kind}" for order in "<>" for kind in ("f2", "f4", "f8", "c8", "c16")]
    return [
        *(numbers.astype(kind).reshape(3, 4) for kind in kinds),
        np.array(["2026-01-01", "NaT"], dtype="M8[ns]"),
        np.array([3, -4], dtype="m8[25s]"),
        np.array([b"a", b"bcd"]),
        np.array(["é", "wattline"]),
        np.array([b"\x00\x01\x02"], dtype="V3"),
        np.array(2.5),
        np.empty((0, 3), dtype="f4"),
        np.asfortranarray(numbers.reshape(3, 4)),
        numbers[::-1],
        numbers.reshape(3, 4)[::-1, ::2],
        np.array([np.nan, -0.0, np.inf, -np.inf]),
    ]


@pytest.mark.parametrize("array", every_kind_of_array(), ids=lambda array: f"{array.dtype.str}-{array.shape}")
def test_every_kind_of_array_comes_back_to_the_bit(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    saved = through_disk(tmp_path, {"model": {"w": array}})
    target = np.zeros_like(array)
    put_back({"model": {"w": target}}, saved)
    assert (target.dtype, target.shape) == (array.dtype, array.shape)
    if array.dtype.char in "gG":  # ten bytes of sixteen count
        assert np.array_equal(target, array)
    else:
        assert target.tobytes() == array.tobytes()


def test_an_array_that_a_script_may_not_write_to_is_replaced(tmp_path: Path) -> None:
    model = {"mask": np.broadcast_to(np.arange(3.0), (2, 3))}
    saved = through_disk(tmp_path, {"model": model})
    other = {"mask": np.broadcast_to(np.zeros(3), (2, 3))}
    put_back({"model": other}, saved)
    assert other["mask"].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_two_names_of_one_array_stay_one_array_and_are_stored_once(tmp_path: Path) -> None:
    shared = np.arange(1000.0)
    model = {"embedding": shared, "head": shared}
    saved = through_disk(tmp_path, {"model": model})
    shared[:] = 0
    put_back({"model": model}, saved)
    assert model["embedding"] is model["head"] is shared
    assert shared.tolist() == list(range(1000))
    [pack] = (tmp_path / "packs").iterdir()
    assert pack.stat().st_size <= shared.nbytes


def test_capturing_copies_no_array() -> None:
    weights = np.arange(4.0)
    assert capture({"model": {"layers": [weights[::2]]}})["model"]["layers"][0].base is weights


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**200, 1.5, float("inf"), "é", [1, [2.0, None]], (1, ("a",)), {1: "a", "b": ()}],
    ids=repr,
)
def test_plain_values_come_back_as_they_were(tmp_path: Path, value: Any) -> None:
    saved = through_disk(tmp_path, {"progress": {"value": value}, "data": Counter(value)})
    progress, other = {"value": object()}, Counter(None)
    put_back({"progress": progress, "data": other}, saved)
    assert (progress["value"], other.state["value"]) == (value, value)
    assert type(progress["value"]) is type(other.state["value"]) is type(value)


@pytest.mark.parametrize(
    "scalar",
    [
        np.float32(1.1),
        np.float64(-0.0),
        np.int8(-3),
        np.bool_(True),
        np.str_("a"),
        np.datetime64("2026", "Y"),
    ],
    ids=repr,
)
def test_a_numpy_scalar_keeps_its_kind(tmp_path: Path, scalar: Any) -> None:
    saved = through_disk(tmp_path, {"data": Counter([scalar])})
    other = Counter(None)
    put_back({"data": other}, saved)
    [found] = other.state["value"]
    assert type(found) is type(scalar)
    assert found.tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM]
)
def test_a_generator_continues_with_the_numbers_it_would_have_drawn(tmp_path: Path, bits: Any) -> None:
    rng = np.random.Generator(bits(3))
    rng.integers(10, size=3, dtype=np.uint32)
    saved = through_disk(tmp_path, {"rng": rng, "more": {"rngs": [rng]}})
    expected = rng.standard_normal(100).tobytes()
    other, another = np.random.Generator(bits(99)), np.random.Generator(bits(98))
    put_back({"rng": other, "more": {"rngs": [another]}}, saved)
    assert other.standard_normal(100).tobytes() == expected
    assert another.standard_normal(100).tobytes() == expected


def test_the_older_random_sources_continue_too(tmp_path: Path) -> None:
    legacy, python = np.random.RandomState(3), random.Random(3)
    legacy.standard_normal(), python.gauss(0, 1)  # each keeps half a pair for the next call
    saved = through_disk(tmp_path, {"a": legacy, "b": python, "c": {"state": python.getstate()}})
    expected = [legacy.standard_normal() for _ in range(9)], [python.gauss(0, 1) for _ in range(9)]
    others = np.random.RandomState(4), random.Random(4)
    kept = {"state": random.Random(5).getstate()}
    put_back({"a": others[0], "b": others[1], "c": kept}, saved)
    assert [others[0].standard_normal() for _ in range(9)] == expected[0]
    assert [others[1].gauss(0, 1) for _ in range(9)] == expected[1]
    others[1].setstate(kept["state"])
    assert [others[1].gauss(0, 1) for _ in range(9)] == expected[1]


def test_the_sources_that_everybody_shares_can_be_parts(tmp_path: Path) -> None:
    before = random.getstate(), np.random.get_state()
    try:
        saved = through_disk(tmp_path, {"python": random, "numpy": np.random})
        expected = random.random(), np.random.random()
        put_back({"python": random, "numpy": np.random}, saved)
        assert (random.random(), np.random.random()) == expected
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


class Counter:
    def __init__(self, value: Any) -> None:
        self.state: dict[Any, Any] = {"value": value}

    def state_dict(self) -> dict[Any, Any]:
        return self.state

    def load_state_dict(self, state: dict[Any, Any]) -> None:
        self.state = state


def test_anything_with_a_state_dict_comes_back_with_its_keys_and_tuples(tmp_path: Path) -> None:
    state = {0: {"lap": 1}, "betas": (0.9, 0.999)}
    saved = through_disk(tmp_path, {"data": Counter(state), "more": {"nested": Counter(state)}})
    other, nested = Counter(None), Counter(None)
    put_back({"data": other, "more": {"nested": nested}}, saved)
    assert other.state["value"] == nested.state["value"] == state


class Moments(NamedTuple):
    step: int
    mean: np.ndarray[Any, Any]


def test_a_named_tuple_that_the_script_holds_stays_one(tmp_path: Path) -> None:
    part: dict[str, Any] = {"adam": Moments(3, np.arange(2.0))}
    saved = through_disk(tmp_path, {"optimizer": part})
    mean = np.zeros(2)
    other: dict[str, Any] = {"adam": Moments(0, mean)}
    put_back({"optimizer": other}, saved)
    assert isinstance(other["adam"], Moments)
    assert (other["adam"].step, other["adam"].mean.tolist()) == (3, [0, 1])
    assert other["adam"].mean is mean


def test_a_named_tuple_inside_a_state_is_refused_rather_than_flattened() -> None:
    with pytest.raises(ScriptError, match="optimizer/value: a Moments would come back as a plain tuple"):
        capture({"optimizer": Counter(Moments(0, np.zeros(2)))})


@pytest.mark.parametrize("key", ["torch.Tensor", "numpy.generic", "torch.state_dict"])
def test_a_key_that_means_something_in_a_checkpoint_is_refused(key: str) -> None:
    with pytest.raises(ScriptError, match=f"model/a: the key '{key}' has a meaning of its own"):
        capture({"model": {"a": {key: 1}}})
    with pytest.raises(ScriptError, match="has a meaning of its own"):
        capture({"model": Counter({key: 1})})


@pytest.mark.parametrize("value", [{1, 2}, b"raw", 1j, object()], ids=lambda value: type(value).__name__)
def test_what_no_checkpoint_can_hold_is_refused_by_its_place(tmp_path: Path, value: Any) -> None:
    with pytest.raises(CheckpointError, match="/data/value: a builtins"):
        through_disk(tmp_path, {"data": Counter(value)})


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"model": {"w": np.zeros(3)}, "extra": {}}, "only here"),
        ({"model": {}}, "only in the checkpoint"),
        ({"model": {"v": np.zeros(3)}}, "model: only here"),
        (
            {"model": {"w": np.zeros(4)}},
            r"model/w: the script has float64 \(4,\), the checkpoint float64 \(3,\)",
        ),
        ({"model": {"w": np.zeros(3, dtype=np.float32)}}, "the script has float32"),
        ({"model": {"w": np.zeros(3, dtype=">f8")}}, "the script has >f8"),
        ({"model": {"w": {}}}, "no dict here"),
    ],
)
def test_a_script_that_has_changed_since_is_told_how(
    tmp_path: Path, parts: dict[str, Any], says: str
) -> None:
    saved = through_disk(tmp_path, {"model": {"w": np.arange(3.0)}})
    with pytest.raises(ScriptError, match=says):
        put_back(parts, saved)


def test_a_part_of_no_known_kind_is_refused_at_the_start() -> None:
    with pytest.raises(ScriptError, match="part 'model' is a list"):
        require_parts({"rng": np.random.default_rng(0), "random": random, "model": [1, 2]})


def test_torch_is_not_imported_for_a_script_that_does_not_use_it() -> None:
    script = """
import sys
import numpy as np
from wattline.train.parts import capture, put_back
parts = {"model": {"w": np.zeros(3), "lr": np.float32(1)}, "rng": np.random.default_rng(0)}
put_back(parts, capture(parts))
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
