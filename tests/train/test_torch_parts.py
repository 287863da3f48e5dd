"""Does everything that a torch script trains with come back to the bit?"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wattline.checkpoint import CheckpointError, LocalStore, restore, save
from wattline.train import ScriptError
from wattline.train.parts import capture, put_back, require_parts

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

# Asked of torch, so that a dtype it gains is tested the day it is installed.
DTYPES = sorted(
    {
        value
        for value in vars(torch).values()
        if isinstance(value, torch.dtype) and not str(value).startswith(("torch.q",))
    },
    key=str,
)


def through_disk(tmp_path: Path, parts: dict[str, Any]) -> Any:
    store = LocalStore(tmp_path)
    save(store, capture(parts), step=1, epoch=0)
    restored = restore(store)
    assert restored is not None
    return restored.tree


def random_bits(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Every pattern of bits, nans with a payload included; a bool has but two."""
    tensor = torch.empty(shape, dtype=dtype)
    raw = np.random.default_rng(seed).integers(0, 256, size=tensor.nbytes, dtype=np.uint8)
    if dtype is torch.bool:
        raw %= 2
    return torch.from_numpy(raw).view(dtype).reshape(shape) if tensor.nbytes else tensor


def bits_of(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor of any dtype, in the order of its elements."""
    sizes = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
    plain = tensor.detach()
    if plain.element_size() in sizes:
        plain = plain.view(sizes[plain.element_size()])
    raw: bytes = plain.numpy().tobytes()
    return raw


class Holder:
    """Anything that has a state."""

    def __init__(self, state: Any = None) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state["value"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 2)], ids=str)
def test_a_tensor_of_every_dtype_comes_back_to_the_bit(
    tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    tensor, target = random_bits(dtype, shape, seed=1), random_bits(dtype, shape, seed=2)
    saved = through_disk(tmp_path, {"state": Holder([tensor]), "dict": {"w": tensor}})
    holder, kept = Holder(), {"w": target}
    put_back({"state": holder, "dict": kept}, saved)
    for found in (holder.state[0], target):
        assert (found.dtype, tuple(found.shape)) == (dtype, shape)
        assert bits_of(found) == bits_of(tensor)
    assert kept["w"] is target


def test_a_torch_that_lacks_the_dtype_of_a_checkpoint_says_so(tmp_path: Path) -> None:
    saved = through_disk(tmp_path, {"state": Holder(torch.zeros(2, dtype=torch.bfloat16))})
    for name in ("float7_from_the_future", "load", "qint8", "float8_e5m2"):
        saved["state"]["value"]["dtype"] = name
        with pytest.raises(
            CheckpointError, match=f"state/value: this torch has no dtype '{name}' of 2 bytes"
        ):
            put_back({"state": Holder()}, saved)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(12.0).reshape(3, 4)[:, ::2],
        torch.arange(12, dtype=torch.bfloat16).reshape(3, 4).t(),
        torch.arange(3.0).expand(4, 3),
        torch.tensor([1 + 2j, 3 - 4j]).conj(),
        torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
        torch.arange(4.0, requires_grad=True),
        torch.nn.Parameter(torch.arange(4.0)),
    ],
    ids=["transposed", "strided", "transposed bfloat16", "expanded", "conj", "neg", "grad", "parameter"],
)
def test_a_tensor_comes_back_however_it_lies_in_memory(tmp_path: Path, tensor: torch.Tensor) -> None:
    saved = through_disk(tmp_path, {"state": Holder(tensor), "dict": {"w": tensor}})
    holder, other = Holder(), {"w": torch.zeros_like(tensor)}
    put_back({"state": holder, "dict": other}, saved)
    assert torch.equal(holder.state, tensor)
    assert torch.equal(other["w"], tensor)


def test_an_expanded_tensor_in_a_dict_is_replaced(tmp_path: Path) -> None:
    saved = through_disk(tmp_path, {"dict": {"mask": torch.arange(3.0).expand(2, 3)}})
    other = {"mask": torch.zeros(3).expand(2, 3)}
    put_back({"dict": other}, saved)
    assert other["mask"].tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn], ids=str)
def test_capturing_shares_the_memory_of_a_tensor(dtype: torch.dtype) -> None:
    tensor = torch.zeros(4, 4, dtype=dtype).t()
    array = capture({"state": Holder(tensor)})["state"]["value"]["torch.Tensor"]
    assert array.__array_interface__["data"][0] == tensor.data_ptr()


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(64, 32)
        self.norm = torch.nn.BatchNorm1d(32)
        self.head = torch.nn.Linear(32, 64, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.norm(self.embedding(tokens)))
        return result


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    saved = through_disk(tmp_path, {"model": model})
    put_back({"model": other}, saved)
    assert other.head.weight is other.embedding.weight
    assert torch.equal(other.head.weight, model.head.weight)
    [pack] = (tmp_path / "packs").iterdir()
    assert pack.stat().st_size < 2 * 64 * 32 * 4


def test_a_module_gets_back_the_versions_of_its_layers(tmp_path: Path) -> None:
    model = Tied()
    versions = model.state_dict()._metadata  # type: ignore[attr-defined]
    assert versions["norm"]["version"] == 2
    seen: list[Any] = []
    other = Tied()
    other.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
        lambda module, state, *rest: seen.append(state._metadata)
    )
    put_back({"model": other}, through_disk(tmp_path, {"model": model}))
    assert {name: dict(value) for name, value in seen[0].items()} == versions


def a_run(seed: int, *, lr: Any) -> dict[str, Any]:
    torch.manual_seed(seed)
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.1)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[3])
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "rng": torch}


def train(run: dict[str, Any], steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        tokens = torch.randint(0, 64, (16,))
        loss = torch.nn.functional.cross_entropy(run["model"](tokens), tokens)
        run["optimizer"].zero_grad()
        run["scaler"].scale(loss).backward()
        run["scaler"].step(run["optimizer"])
        run["scaler"].update()
        with warnings.catch_warnings():  # a scheduler of schedulers calls its own in the old way
            warnings.simplefilter("ignore")
            run["scheduler"].step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("lr", [1e-2, torch.tensor(1e-2)], ids=["a number", "a tensor"])
def test_training_continues_to_the_bit_as_if_it_had_never_stopped(tmp_path: Path, lr: Any) -> None:
    run = a_run(1, lr=lr)
    require_parts(run)
    train(run, 5)
    saved = through_disk(tmp_path, run)
    expected = train(run, 5)
    other = a_run(2, lr=lr.clone() if isinstance(lr, torch.Tensor) else lr)
    train(other, 1)
    put_back(other, saved)
    assert train(other, 5) == expected
    assert other["scaler"].state_dict() == run["scaler"].state_dict()
    for mine, theirs in zip(run["model"].parameters(), other["model"].parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_scheduler_that_waits_for_a_plateau_continues(tmp_path: Path) -> None:
    def a_scheduler() -> torch.optim.lr_scheduler.ReduceLROnPlateau:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)

    scheduler, other = a_scheduler(), a_scheduler()
    for part in ("fresh", "used"):  # fresh, its best is infinity
        put_back({"s": other}, through_disk(tmp_path / part, {"s": scheduler}))
        assert other.state_dict() == scheduler.state_dict()
        scheduler.step(1.0)


def test_a_torch_generator_continues_alone_or_by_its_state_in_a_dict(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    saved = through_disk(tmp_path, {"rng": generator, "dict": {"rng": generator.get_state()}})
    expected = torch.rand(9, generator=generator)
    other, kept = torch.Generator(), {"rng": torch.Generator().get_state()}
    put_back({"rng": other, "dict": kept}, saved)
    assert torch.equal(torch.rand(9, generator=other), expected)
    other.set_state(kept["rng"])
    assert torch.equal(torch.rand(9, generator=other), expected)


def a_quantised_tensor() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.arange(4.0), 0.1, 0, torch.qint8)


def a_nested_tensor() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


class Special(torch.Tensor):
    """A kind that a library made."""


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (a_quantised_tensor, "a quantised tensor"),
        (a_nested_tensor, "a nested tensor"),
        (lambda: torch.eye(3).to_sparse(), "a tensor of layout sparse_coo"),
        (lambda: torch.zeros(2, device="meta"), "a tensor without data"),
        (lambda: torch.zeros(2).as_subclass(Special), r"a [\w.]*test_torch_parts\.Special"),
        (lambda: torch.nn.LazyLinear(2).weight, "a parameter that is not initialised yet"),
    ],
)
def test_a_tensor_that_is_no_plain_one_is_refused_by_its_place(make: Any, says: str) -> None:
    with pytest.raises(
        ScriptError, match=rf"state/value/0: {says}.* cannot be kept in a checkpoint"
    ) as error:
        capture({"state": Holder([make()])})
    assert error.value.hint


@pytest.mark.parametrize(
    ("present", "says"),
    [
        (torch.zeros(4), r"has torch.float32 \(4,\), the checkpoint torch.bfloat16 \(3,\)"),
        (torch.zeros(3), r"has torch.float32 \(3,\), the checkpoint torch.bfloat16 \(3,\)"),
        (np.zeros(3), r"has float64 \(3,\), the checkpoint torch.bfloat16 \(3,\)"),
    ],
)
def test_a_script_whose_tensors_have_changed_is_told_how(tmp_path: Path, present: Any, says: str) -> None:
    saved = through_disk(tmp_path, {"dict": {"w": torch.zeros(3, dtype=torch.bfloat16)}})
    with pytest.raises(ScriptError, match=f"dict/w: the script {says}"):
        put_back({"dict": {"w": present}}, saved)
