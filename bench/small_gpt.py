"""Small GPT: what does the state of a model look like while it trains?

Of no use for text; its weights and moments behave like those of a large one. Needs torch, which only the
interpreter that trains has.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_FROZEN_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Of the model, and for how long it trains."""

    name: str
    hidden: int
    warm_up_steps: int
    gap_steps: int
    states: int
    layers: int = 4
    heads: int = 8
    context: int = 128
    batch: int = 4


FULL = Size(name="full", hidden=320, warm_up_steps=150, gap_steps=100, states=6)
QUICK = Size(name="quick", hidden=64, warm_up_steps=20, gap_steps=10, states=3)


class Trainer:
    """A GPT over bytes, and its AdamW."""

    def __init__(self, size: Size, folder: Path) -> None:
        self._torch: Any = import_module("torch")
        self._size, self._folder = size, folder
        self._torch.manual_seed(0)
        self._torch.set_num_threads(1)
        sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        text = np.frombuffer(b"".join(path.read_bytes() for path in sources), np.uint8)
        self._text = self._torch.from_numpy(text.astype(np.int64))
        self.weights = self._make_weights()
        self.optimizer = self._torch.optim.AdamW(list(self.weights.values()), lr=3e-4)

    def _make_weights(self) -> dict[str, Any]:
        hidden = self._size.hidden
        shapes: dict[str, tuple[int, ...]] = {"token": (256, hidden), "place": (self._size.context, hidden)}
        for layer in range(self._size.layers):
            for name, into, out in (("qkv", 1, 3), ("mix", 1, 1), ("up", 1, 4), ("down", 4, 1)):
                shapes[f"{layer}.{name}"] = (out * hidden, into * hidden)
                shapes[f"{layer}.{name}.bias"] = (out * hidden,)
            for name in ("norm1", "norm2"):
                shapes[f"{layer}.{name}"] = shapes[f"{layer}.{name}.bias"] = (hidden,)
        shapes |= {"norm": (hidden,), "norm.bias": (hidden,), "head": (256, hidden)}
        weights = {}
        for name, shape in shapes.items():
            value = self._torch.randn(shape) * 0.02 if len(shape) == 2 else self._torch.zeros(shape)
            if "norm" in name and "bias" not in name:
                value += 1
            weights[name] = value.requires_grad_()
        return weights

    def _predict(self, tokens: Any) -> Any:
        functional, weights, hidden = self._torch.nn.functional, self.weights, self._size.hidden

        def linear(x: Any, name: str) -> Any:
            return functional.linear(x, weights[name], weights[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:
            return functional.layer_norm(x, (hidden,), weights[name], weights[f"{name}.bias"])

        x = weights["token"][tokens] + weights["place"]
        batch, length, _ = x.shape
        for layer in range(self._size.layers):
            qkv = linear(norm(x, f"{layer}.norm1"), f"{layer}.qkv").chunk(3, -1)
            heads = [part.view(batch, length, self._size.heads, -1).transpose(1, 2) for part in qkv]
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + linear(seen.transpose(1, 2).reshape(batch, length, hidden), f"{layer}.mix")
            grown = functional.gelu(linear(norm(x, f"{layer}.norm2"), f"{layer}.up"))
            x = x + linear(grown, f"{layer}.down")
        return functional.linear(norm(x, "norm"), weights["head"])

    def train(self, steps: int, learning_rate: float = 3e-4, warm_up: bool = False) -> None:
        context, torch = self._size.context, self._torch
        for step in range(steps):
            self.optimizer.param_groups[0]["lr"] = learning_rate * ((step + 1) / steps if warm_up else 1)
            starts = torch.randint(len(self._text) - context - 1, (self._size.batch,)).tolist()
            tokens = torch.stack([self._text[at : at + context + 1] for at in starts])
            scores = self._predict(tokens[:, :-1]).flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(scores, tokens[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def freeze(self, layers: int) -> None:
        for name, weight in self.weights.items():
            if name.split(".")[0] in map(str, range(layers)):
                weight.requires_grad_(False)
                weight.grad = None  # AdamW would go on with the last one

    def dump(self, series: str, number: int) -> None:
        """One file for a state, as training scripts write them: the model, then the optimizer's moments."""
        model = {name: weight.detach() for name, weight in self.weights.items()}
        if series.endswith("bf16"):
            halves = {name: weight.bfloat16().view(self._torch.int16) for name, weight in model.items()}
            tensors = {name: half.numpy().view(np.uint16) for name, half in halves.items()}
        else:
            tensors = {name: weight.numpy() for name, weight in model.items()}
            for name, weight in self.weights.items():
                for moment in ("exp_avg", "exp_avg_sq"):
                    tensors[f"{name}.{moment}"] = self.optimizer.state[weight][moment].numpy()
        path = self._folder / series / f"{number:03}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **tensors)


def run_training(size: Size, folder: Path) -> None:
    trainer = Trainer(size, folder)
    trainer.train(size.warm_up_steps, warm_up=True)
    for number in range(size.states):
        trainer.train(size.gap_steps)
        trainer.dump("far", number)
        trainer.dump("far-bf16", number)
    for number in range(size.states):
        trainer.train(1)
        trainer.dump("near", number)
    for number in range(size.states):
        trainer.train(5, learning_rate=1e-6)
        trainer.dump("low-bf16", number)
    dump_frozen(trainer, size.gap_steps // 10)


def run_short_training(hidden: int, folder: Path) -> None:
    """Of the series only the one with frozen layers."""
    size = Size(name="short", hidden=hidden, warm_up_steps=8, gap_steps=1, states=4)
    trainer = Trainer(size, folder)
    trainer.train(size.warm_up_steps, warm_up=True)
    dump_frozen(trainer, size.gap_steps)


def dump_frozen(trainer: Trainer, gap_steps: int) -> None:
    trainer.freeze(_FROZEN_LAYERS)
    for number in range(4):
        trainer.train(gap_steps)
        trainer.dump("frozen", number)
