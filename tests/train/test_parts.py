"""How is each thing a script trains with captured, and put back exactly as it was?"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from wattline.checkpoint import restore, save
from wattline.train import ScriptError
from wattline.train.parts import capture, put_back, require_parts


def through_disk(tmp_path: Path, parts: dict[str, Any]) -> Any:
    save(tmp_path, capture(parts), step=1, epoch=0)
    restored = restore(tmp_path)
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


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM]
)
def test_a_generator_continues_with_the_numbers_it_would_have_drawn(tmp_path: Path, bits: Any) -> None:
    rng = np.random.Generator(bits(3))
    rng.integers(10, size=3, dtype=np.uint32)
    saved = through_disk(tmp_path, {"rng": rng})
    expected = rng.standard_normal(100).tobytes()
    other = np.random.Generator(bits(99))
    put_back({"rng": other}, saved)
    assert other.standard_normal(100).tobytes() == expected


class Counter:
    def __init__(self) -> None:
        self.state: dict[Any, Any] = {0: {"lap": 1}, "betas": (0.9, 0.999)}

    def state_dict(self) -> dict[Any, Any]:
        return self.state

    def load_state_dict(self, state: dict[Any, Any]) -> None:
        self.state = state


def test_anything_with_a_state_dict_comes_back_with_its_keys_and_tuples(tmp_path: Path) -> None:
    saved = through_disk(tmp_path, {"data": Counter()})
    other = Counter()
    other.state = {}
    put_back({"data": other}, saved)
    assert other.state == {0: {"lap": 1}, "betas": (0.9, 0.999)}


class Tensor:
    """The three things of a torch tensor that are used; torch itself is too large to install for a test."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return self.array


def test_torch_tensors_in_a_state_dict_come_back_as_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = ModuleType("torch")
    torch.Tensor = Tensor  # type: ignore[attr-defined]
    torch.from_numpy = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    part = Counter()
    part.state = {"w": Tensor(np.arange(3.0)), "state": {0: [Tensor(np.ones(2))]}, "plain": np.zeros(1)}
    saved = through_disk(tmp_path, {"model": part})
    other = Counter()
    put_back({"model": other}, saved)
    assert isinstance(other.state["w"], Tensor)
    assert other.state["w"].array.tolist() == [0, 1, 2]
    assert other.state["state"][0][0].array.tolist() == [1, 1]
    assert other.state["plain"].tolist() == [0]


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
        require_parts({"rng": np.random.default_rng(0), "model": [1, 2]})
