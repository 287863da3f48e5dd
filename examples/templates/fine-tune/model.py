"""Model: what caused an incident, by the words of a note? A base that stays as it is, and a small adapter.

Words are hashed to rows of an embedding, their mean goes through one hidden layer. The adapter adds a product
of two thin matrices to the hidden layer and to the output, as LoRA does. Put a model of your own here and
keep what the other scripts ask for: first_base, first_adapter, merged, gradient, adapter_slopes, accuracy.
"""

from __future__ import annotations

import csv
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Parameters = dict[str, Array]

CAUSES = ("power", "cooling", "network", "storage")
ADAPTED = ("hidden", "output")  # the layers that the adapter changes


def read_notes(path: str, features: int) -> tuple[Array, Array]:
    """For each note how much each feature has in it, and its cause as a number."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if unknown := {str(row.get("cause")) for row in rows} - set(CAUSES):
        raise SystemExit(f"{path}: {', '.join(sorted(unknown))} is none of CAUSES in model.py")
    counts = np.zeros((len(rows), features), dtype=np.float32)
    for at, row in enumerate(rows):
        words = re.findall(r"[\w-]+", row["text"].lower())
        for word in words:
            counts[at, zlib.crc32(word.encode()) % features] += 1 / len(words)
    return counts, np.array([CAUSES.index(row["cause"]) for row in rows])


def split(notes: tuple[Array, Array], held_out: float, seed: int) -> tuple[tuple[Array, Array], ...]:
    """The notes to learn from and the ones held out: the same ones every time."""
    order = np.random.default_rng(seed).permutation(len(notes[1]))
    cut = round(len(order) * (1 - held_out))
    return tuple((notes[0][rows], notes[1][rows]) for rows in (order[:cut], order[cut:]))


def first_base(rng: np.random.Generator, settings: dict[str, Any]) -> Parameters:
    features, embedding, hidden = settings["features"], settings["embedding"], settings["hidden"]
    return {
        "embedding": rng.standard_normal((features, embedding)).astype(np.float32),
        "hidden": (rng.standard_normal((embedding, hidden)) * embedding**-0.5).astype(np.float32),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "output": np.zeros((hidden, len(CAUSES)), dtype=np.float32),
        "output_bias": np.zeros(len(CAUSES), dtype=np.float32),
    }


def first_adapter(rng: np.random.Generator, base: Parameters, rank: int) -> Parameters:
    """It begins by changing nothing: one of each two factors is zero."""
    adapter = {}
    for layer in ADAPTED:
        rows, columns = base[layer].shape
        adapter[f"{layer}.in"] = (rng.standard_normal((rows, rank)) * rows**-0.5).astype(np.float32)
        adapter[f"{layer}.out"] = np.zeros((rank, columns), dtype=np.float32)
    return adapter


def merged(base: Parameters, adapter: Parameters) -> Parameters:
    """The base with the adapter worked in: as large and as quick as the base alone."""
    return base | {layer: base[layer] + adapter[f"{layer}.in"] @ adapter[f"{layer}.out"] for layer in ADAPTED}


def forward(parameters: Parameters, notes: Array) -> tuple[Array, Array, Array]:
    """What the layers say; the last is the probability of each cause."""
    means = notes @ parameters["embedding"]
    hidden = np.tanh(means @ parameters["hidden"] + parameters["hidden_bias"])
    scores = hidden @ parameters["output"] + parameters["output_bias"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return means, hidden, scores / scores.sum(axis=1, keepdims=True)


def gradient(parameters: Parameters, notes: Array, causes: Array) -> tuple[float, Parameters]:
    """Mean loss in nats, and its slope for every parameter of the whole model."""
    means, hidden, probabilities = forward(parameters, notes)
    rows = np.arange(len(causes))
    loss = float(-np.log(probabilities[rows, causes] + 1e-12).mean())
    slope = probabilities
    slope[rows, causes] -= 1
    slope /= np.float32(len(causes))
    hidden_slope = (slope @ parameters["output"].T) * (1 - hidden * hidden)
    return loss, {
        "embedding": notes.T @ (hidden_slope @ parameters["hidden"].T),
        "hidden": means.T @ hidden_slope,
        "hidden_bias": hidden_slope.sum(axis=0),
        "output": hidden.T @ slope,
        "output_bias": slope.sum(axis=0),
    }


def adapter_slopes(adapter: Parameters, slopes: Parameters) -> Parameters:
    """From the slopes of the layers to those of the adapter's factors; the base gets none."""
    found = {}
    for layer in ADAPTED:
        found[f"{layer}.in"] = slopes[layer] @ adapter[f"{layer}.out"].T
        found[f"{layer}.out"] = adapter[f"{layer}.in"].T @ slopes[layer]
    return found


def accuracy(parameters: Parameters, notes: Array, causes: Array) -> float:
    return float((forward(parameters, notes)[-1].argmax(axis=1) == causes).mean())


class Adam:
    """The optimizer; its moments and its count are part of every checkpoint."""

    def __init__(self, parameters: Parameters, learning_rate: float) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.state: dict[str, Any] = {
            "count": 0,
            "mean": {name: np.zeros_like(value) for name, value in parameters.items()},
            "square": {name: np.zeros_like(value) for name, value in parameters.items()},
        }

    def update(self, slopes: Parameters) -> None:
        self.state["count"] += 1
        count = self.state["count"]
        rate = self.learning_rate * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
        for name, slope in slopes.items():
            mean, square = self.state["mean"][name], self.state["square"][name]
            mean += np.float32(0.1) * (slope - mean)
            square += np.float32(0.001) * (slope * slope - square)
            self.parameters[name] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))


def load(path: str) -> Parameters:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
