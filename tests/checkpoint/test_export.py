"""How does a restored checkpoint leave for tools that have never heard of Wattline?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from wattline.checkpoint import CheckpointError, LocalStore, StorageError, restore, save
from wattline.checkpoint.export import export_safetensors, export_torch

BITS = {1: np.uint8, 2: np.uint16}
SAFE_ALONE = [
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


def restored(tmp_path: Path, tree: Any) -> Any:
    store = LocalStore(tmp_path / "store")
    save(store, tree, step=1, epoch=0)
    found = restore(store)
    assert found is not None
    return found.tree


def a_tree() -> dict[str, Any]:
    return {
        "model": {
            "torch.state_dict": {
                "0.weight": {"torch.Tensor": np.arange(6, dtype="f4").reshape(2, 3)},
                "0.bias": {"torch.Tensor": np.array([0x3F80, 0xC000], dtype="u2"), "dtype": "bfloat16"},
            },
            "metadata": {"": {"version": 1}},
        },
        "optimizer": {
            "state": {0: {"step": {"torch.Tensor": np.array(3.0, dtype="f4")}, "seen": np.array([True])}},
            "param_groups": [
                {"betas": (0.9, 0.999), "lr": {"numpy.generic": np.array(0.5)}, "params": [0, 1]}
            ],
        },
        "progress": {"epoch": 3, "name": "é", "best": None, "history": [], "nothing": {}},
        "random": (3, (1, 2**40), None),
        "empty": np.empty((0, 4), dtype="i8"),
    }


def test_safetensors_reads_every_tensor_under_its_dotted_name(tmp_path: Path) -> None:
    path = tmp_path / "out.safetensors"
    export_safetensors(restored(tmp_path, a_tree()), path)
    tensors = load_file(path)
    assert tensors["model.0.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["model.0.bias"].dtype is torch.bfloat16
    assert tensors["model.0.bias"].tolist() == [1, -2]
    assert tensors["optimizer.state.0.step"].shape == ()
    assert tensors["optimizer.state.0.seen"].tolist() == [True]
    assert tensors["optimizer.param_groups.0.lr"].item() == 0.5
    assert tensors["empty"].shape == (0, 4)
    assert len(tensors) == 6


def test_all_that_is_no_tensor_is_json_in_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "out.safetensors"
    export_safetensors(restored(tmp_path, a_tree()), path)
    with safe_open(path, framework="np") as file:
        found = {name: json.loads(text) for name, text in file.metadata().items()}
    assert found == {
        "model._metadata": {"": {"version": 1}},
        "optimizer.param_groups.0.betas": [0.9, 0.999],
        "optimizer.param_groups.0.params": [0, 1],
        "progress.epoch": 3,
        "progress.name": "é",
        "progress.best": None,
        "progress.history": [],
        "progress.nothing": {},
        "random": [3, [1, 2**40], None],
    }


@pytest.mark.parametrize(
    "kind", ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]
)
def test_every_dtype_that_numpy_and_the_format_share_comes_through(tmp_path: Path, kind: str) -> None:
    array = np.arange(-3, 3).astype(kind).reshape(2, 3)
    path = tmp_path / "out.safetensors"
    order = np.asfortranarray(array.astype(array.dtype.newbyteorder(">")))
    export_safetensors({"w": array, "big_endian": order, "byte": np.zeros(1, dtype="u1")}, path)
    with safe_open(path, framework="np") as file:
        for name in ("w", "big_endian"):
            found = file.get_tensor(name)
            assert found.dtype == array.dtype
            assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", SAFE_ALONE)
def test_every_dtype_that_torch_and_the_format_share_comes_through(tmp_path: Path, name: str) -> None:
    dtype: torch.dtype = getattr(torch, name)
    bits = np.arange(6, dtype=BITS[dtype.itemsize]).reshape(2, 3)
    path = tmp_path / "out.safetensors"
    export_safetensors({"w": {"torch.Tensor": bits, "dtype": name}}, path)
    with safe_open(path, framework="pt") as file:
        assert file.get_slice("w").get_dtype() == json_header(path)["w"]["dtype"]
        if name != "float8_e8m0fnu":  # this reader knows its name, and not yet torch's
            found = file.get_tensor("w")
            assert (found.dtype, tuple(found.shape)) == (dtype, (2, 3))
            assert found.view(torch.uint16 if dtype.itemsize == 2 else torch.uint8).tolist() == bits.tolist()


def json_header(path: Path) -> Any:
    raw = path.read_bytes()
    return json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])


def test_every_tensor_begins_where_its_numbers_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "out.safetensors"
    export_safetensors({"a": np.zeros(3, "u1"), "b": np.zeros(3, "f8"), "c": np.zeros(3, "f2")}, path)
    header_bytes = int.from_bytes(path.read_bytes()[:8], "little")
    assert header_bytes % 8 == 0
    starts = {name: each["data_offsets"][0] for name, each in json_header(path).items()}
    assert starts == {"b": 0, "c": 24, "a": 30}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.zeros(2, dtype="c16"), "complex128"),
        (np.zeros(2, dtype="longdouble"), "float128"),
        (np.zeros(2, dtype="M8[s]"), r"datetime64\[s\]"),
        (np.array(["text"]), "<U4"),
        ({"torch.Tensor": np.zeros(2, dtype="u4"), "dtype": "complex32"}, "complex32"),
        ({"torch.Tensor": np.zeros(2, dtype="u1"), "dtype": "float4_e2m1fn_x2"}, "float4_e2m1fn_x2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_format_cannot_hold_is_refused_by_name(tmp_path: Path, value: Any, kind: str) -> None:
    path = tmp_path / "out.safetensors"
    with pytest.raises(CheckpointError, match=f"model.w: a safetensors file cannot hold {kind}"):
        export_safetensors({"model": {"ok": np.zeros(1), "w": value}}, path)
    assert list(tmp_path.iterdir()) == []


def test_two_values_of_one_dotted_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"a\.b: two values would have this name"):
        export_safetensors({"a.b": np.zeros(1), "a": {"b": 3}}, tmp_path / "out")


def test_only_named_values_can_be_exported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="only a dict of named values"):
        export_safetensors(np.zeros(3), tmp_path / "out")


def test_torch_loads_the_same_tree_without_trusting_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.pt"
    export_torch(restored(tmp_path, a_tree()), path)
    found = torch.load(path, weights_only=True)
    assert found["model"]["0.bias"].dtype is torch.bfloat16
    assert found["model"]["0.bias"].tolist() == [1, -2]
    assert found["model"]._metadata == {"": {"version": 1}}
    assert found["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)
    assert found["optimizer"]["state"][0]["step"].item() == 3
    assert found["progress"] == a_tree()["progress"]
    assert found["random"] == a_tree()["random"]
    assert found["empty"].shape == (0, 4)


def test_a_module_loads_what_was_exported_for_torch(tmp_path: Path) -> None:
    path = tmp_path / "out.pt"
    export_torch(restored(tmp_path, a_tree())["model"], path)
    layer = torch.nn.Sequential(torch.nn.Linear(3, 2))
    layer.load_state_dict(torch.load(path, weights_only=True))
    assert layer.state_dict()["0.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_array_that_torch_has_no_tensors_for_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="/a/when: torch has no tensors of dtype datetime64"):
        export_torch({"a": {"when": np.zeros(2, dtype="M8[s]")}}, tmp_path / "out.pt")
    assert list(tmp_path.iterdir()) == []


def test_without_torch_safetensors_are_written_and_torch_files_are_refused(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
import numpy as np
sys.modules["torch"] = None  # as if it were not installed
from wattline.checkpoint import CheckpointError
from wattline.checkpoint.export import export_safetensors, export_torch
bits = {"w": {"torch.Tensor": np.zeros(3, dtype="u2"), "dtype": "bfloat16"}}
export_safetensors(bits, Path(sys.argv[1], "out.safetensors"))
try:
    export_torch(bits, Path(sys.argv[1], "out.pt"))
except CheckpointError as error:
    sys.exit("this needs torch" not in error.message)
"""
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out.safetensors"]
    assert load_file(tmp_path / "out.safetensors")["w"].dtype is torch.bfloat16


def test_an_export_that_cannot_be_written_leaves_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / "out.safetensors"
    export_safetensors({"w": np.arange(3.0)}, path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError):
        export_safetensors({"w": np.zeros(3, dtype="c16")}, path)
    assert path.read_bytes() == before
    with pytest.raises(StorageError, match="could not be written"):
        export_safetensors({"w": np.zeros(3)}, tmp_path / "missing" / "out.safetensors")
    assert [each.name for each in tmp_path.iterdir()] == ["out.safetensors"]
