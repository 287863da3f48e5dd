"""Is what is saved while torch trains the state of the moment it was asked for?"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.checkpoint import DisturbedError, LocalStore, Still, restore
from wattline.checkpoint.staging import Staging
from wattline.train.keeper import Failed, Keeper, Kept
from wattline.train.parts import capture
from wattline.train.surroundings import Cadence

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, nesterov=True),
    "lbfgs": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1, max_iter=2, history_size=2),
}


class Net(torch.nn.Module):
    """Weights that are large enough to be copied behind, others that are not, and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(40, 600)
        self.norm = torch.nn.BatchNorm1d(600)
        self.last = torch.nn.Linear(600, 40)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.relu(self.norm(self.first(values))))
        return result


def make(seed: int, optimizer: str) -> dict[str, Any]:
    torch.manual_seed(seed)
    model = Net()
    return {"model": model, "optimizer": OPTIMIZERS[optimizer](model.parameters()), "rng": torch}


def train(parts: dict[str, Any]) -> None:
    model, optimizer = parts["model"], parts["optimizer"]
    values = torch.randn(16, 40)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(values), values)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)


def make_keeper(root: Path) -> Keeper:
    return Keeper(LocalStore(root), epoch=1, cadence=Cadence(steps=1), keep=3, lineage={})


def state_of(parts: dict[str, Any]) -> Any:
    return copy.deepcopy(capture(parts))


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


def newest(root: Path) -> Any:
    restored = restore(LocalStore(root))
    assert restored is not None
    return restored.tree


def stills_in(tree: Any) -> int:
    if isinstance(tree, dict | list | tuple):
        return sum(map(stills_in, tree.values() if isinstance(tree, dict) else tree))
    return int(isinstance(tree, Still))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    saves=st.lists(st.booleans(), min_size=1, max_size=6),
)
def test_every_save_is_the_state_to_the_bit_when_it_was_asked_for(
    tmp_path_factory: pytest.TempPathFactory, seed: int, optimizer: str, saves: list[bool]
) -> None:
    root = tmp_path_factory.mktemp("saves")
    parts, keeper = make(seed, optimizer), make_keeper(root)
    train(parts)
    for step, waits in enumerate(saves, start=1):
        expected = state_of(parts)
        if waits:
            keeper.finish(parts, step, {})
        else:
            keeper.begin(parts, step, {})
        train(parts)
        train(parts)
        keeper._series.end()
        ended = keeper.take()
        assert ended is None if waits else isinstance(ended, Kept)
        assert_same(newest(root), expected)


@pytest.fixture
def leave(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What holds still is copied only when this is set."""
    event, copy_watched = threading.Event(), Staging.copy_watched

    def copy_with_leave(self: Staging) -> None:
        assert event.wait(30)
        copy_watched(self)

    monkeypatch.setattr(Staging, "copy_watched", copy_with_leave)
    return event


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_a_step_waits_for_the_copy_and_passes_of_a_model_do_not(
    tmp_path: Path, leave: threading.Event, optimizer: str
) -> None:
    parts, keeper = make(0, optimizer), make_keeper(tmp_path)
    train(parts)
    expected = state_of(parts)
    keeper.begin(parts, 1, {})
    parts["model"](torch.randn(16, 40)).sum().backward()
    threading.Timer(0.05, leave.set).start()
    assert not leave.is_set()
    train(parts)
    assert leave.is_set()
    keeper._series.end()
    kept = keeper.take()
    assert isinstance(kept, Kept)
    assert 0.01 < kept.stopped_seconds < kept.seconds
    assert_same(newest(tmp_path), expected)


def test_an_optimizer_that_nobody_named_waits_as_well(tmp_path: Path, leave: threading.Event) -> None:
    parts, keeper = make(0, "adamw"), make_keeper(tmp_path)
    train(parts)
    expected = state_of(parts)
    keeper.begin(parts, 1, {})
    threading.Timer(0.05, leave.set).start()
    train({**parts, "optimizer": torch.optim.SGD(parts["model"].parameters(), lr=0.1)})
    keeper._series.end()
    assert isinstance(keeper.take(), Kept)
    assert_same(newest(tmp_path), expected)


def add_in_place(weight: torch.nn.Parameter) -> None:
    with torch.no_grad():
        weight[0, 0] += 1.0


def write_past_torch(weight: torch.nn.Parameter) -> None:
    weight.data.mul_(0.5)


def load(weight: torch.nn.Parameter) -> None:
    with torch.no_grad():
        weight.copy_(torch.zeros_like(weight))


@pytest.mark.parametrize("disturb", [add_in_place, write_past_torch, load])
def test_a_parameter_that_is_written_behind_the_hook_s_back_fails_the_save_and_only_that(
    tmp_path: Path, leave: threading.Event, disturb: Callable[[torch.nn.Parameter], None]
) -> None:
    parts, keeper = make(0, "adamw"), make_keeper(tmp_path)
    train(parts)
    keeper.begin(parts, 1, {})
    disturb(parts["model"].first.weight)
    leave.set()
    train(parts)
    keeper._series.end()
    failed = keeper.take()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, DisturbedError)
    assert "first.weight" in failed.error.message
    assert restore(LocalStore(tmp_path)) is None
    leave.clear()
    expected = state_of(parts)
    keeper.begin(parts, 2, {})
    disturb(parts["model"].first.weight)
    leave.set()
    keeper._series.end()
    assert isinstance(keeper.take(), Kept)
    assert_same(newest(tmp_path), expected)


def test_an_optimizer_may_be_given_another_state_meanwhile(tmp_path: Path, leave: threading.Event) -> None:
    parts, keeper = make(0, "adamw"), make_keeper(tmp_path)
    train(parts)
    other = copy.deepcopy(parts["optimizer"].state_dict())
    train(parts)
    expected = state_of(parts)
    keeper.begin(parts, 1, {})
    parts["optimizer"].load_state_dict(other)
    leave.set()
    keeper._series.end()
    assert isinstance(keeper.take(), Kept)
    assert_same(newest(tmp_path), expected)


def test_only_what_an_optimizer_among_the_parts_changes_is_taken_to_hold_still() -> None:
    parts = make(0, "adamw")
    train(parts)
    model = parts["model"]
    parameters = len(list(model.parameters()))
    assert stills_in(capture(parts)) == 0
    assert stills_in(capture(parts, until_step=True)) == 4 * parameters  # each, two moments and a count
    assert stills_in(capture({"model": model}, until_step=True)) == 0
    assert stills_in(capture({"all": [parts]}, until_step=True)) == 4 * parameters
    half = torch.optim.SGD(model.first.parameters(), lr=0.1)
    assert stills_in(capture({"model": model, "optimizer": half}, until_step=True)) == 2


def test_what_the_script_has_can_still_be_copied_and_stored(tmp_path: Path) -> None:
    parts, keeper = make(0, "adamw"), make_keeper(tmp_path / "checkpoints")
    keeper.begin(parts, 1, {})
    torch.save({"model": parts["model"], "optimizer": parts["optimizer"]}, tmp_path / "file")
    twin = copy.deepcopy(parts["optimizer"])
    train({"model": parts["model"], "optimizer": twin})
    keeper._series.end()
    assert isinstance(keeper.take(), Kept)
