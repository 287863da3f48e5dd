"""Model: which byte comes next, given the last few?

Embeddings of the context, side by side, through one hidden layer. Put a model of your own here and keep what
the other scripts ask for: first_parameters, gradient, bits, forward. Token 0 stands for a byte that was never
seen, and for one that training made the model forget.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Parameters = dict[str, Array]

FORGOTTEN = 0


def tokens_of(text: bytes, vocabulary: Array) -> Array:
    """Bytes as small numbers from 1, in the order of the vocabulary."""
    table = np.zeros(256, dtype=np.uint8)
    table[vocabulary] = np.arange(1, len(vocabulary) + 1)
    return table[np.frombuffer(text, dtype=np.uint8)]


def first_parameters(rng: np.random.Generator, settings: dict[str, Any], tokens: int) -> Parameters:
    """Small random weights, float32 throughout."""
    context, embedding, hidden = settings["context"], settings["embedding"], settings["hidden"]

    def weights(rows: int, columns: int, scale: float) -> Array:
        return (rng.standard_normal((rows, columns)) * scale).astype(np.float32)

    return {
        "embedding": weights(tokens, embedding, 0.3),
        "hidden": weights(context * embedding, hidden, (context * embedding) ** -0.5),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "output": weights(hidden, tokens, hidden**-0.5),
        "output_bias": np.zeros(tokens, dtype=np.float32),
    }


def forward(parameters: Parameters, contexts: Array) -> tuple[Array, Array, Array]:
    """What the layers say for a batch of contexts; the last is the probability of each token."""
    inputs = parameters["embedding"][contexts].reshape(len(contexts), -1)
    hidden = np.tanh(inputs @ parameters["hidden"] + parameters["hidden_bias"])
    scores = hidden @ parameters["output"] + parameters["output_bias"]
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return inputs, hidden, scores


def bits(parameters: Parameters, contexts: Array, targets: Array) -> Array:
    """What each target costs."""
    probabilities = forward(parameters, contexts)[-1]
    return -np.log2(probabilities[np.arange(len(targets)), targets] + 1e-12)


def gradient(parameters: Parameters, contexts: Array, targets: Array) -> tuple[float, Parameters]:
    """Mean loss in bits over a micro-batch, and its slope (of the loss in nats) for every parameter."""
    inputs, hidden, probabilities = forward(parameters, contexts)
    rows = np.arange(len(targets))
    loss_bits = float(-np.log2(probabilities[rows, targets] + 1e-12).mean())
    slope = probabilities
    slope[rows, targets] -= 1
    slope /= np.float32(len(targets))
    hidden_slope = (slope @ parameters["output"].T) * (1 - hidden * hidden)
    input_slope = hidden_slope @ parameters["hidden"].T
    embedding_slope = np.zeros_like(parameters["embedding"])
    np.add.at(embedding_slope, contexts.reshape(-1), input_slope.reshape(-1, embedding_slope.shape[1]))
    return loss_bits, {
        "embedding": embedding_slope,
        "hidden": inputs.T @ hidden_slope,
        "hidden_bias": hidden_slope.sum(axis=0),
        "output": hidden.T @ slope,
        "output_bias": slope.sum(axis=0),
    }


class Adam:
    """The optimizer; its moments and its count are part of every checkpoint."""

    def __init__(self, parameters: Parameters, learning_rate: float, steps: int) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.steps = steps
        self.state: dict[str, Any] = {
            "count": 0,
            "mean": {name: np.zeros_like(value) for name, value in parameters.items()},
            "square": {name: np.zeros_like(value) for name, value in parameters.items()},
        }

    def update(self, gradients: Parameters) -> None:
        """One step downhill, in place; the rate falls to a tenth over the run."""
        self.state["count"] += 1
        count = self.state["count"]
        rate = self.learning_rate * (1 - 0.9 * min(1.0, count / self.steps))
        rate *= (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
        for name, slope in gradients.items():
            mean, square = self.state["mean"][name], self.state["square"][name]
            mean += np.float32(0.1) * (slope - mean)
            square += np.float32(0.001) * (slope * slope - square)
            self.parameters[name] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))


class Sampler:
    """Every position of the text once in random order, then again in another order."""

    def __init__(self, tokens: Array, context: int, batch_size: int, seed: int) -> None:
        self.windows = np.lib.stride_tricks.sliding_window_view(tokens, context + 1)
        self.batch_size = batch_size
        self.seed = seed
        self.load_state_dict({"lap": 0, "position": 0})

    def next(self) -> tuple[Array, Array]:
        if self.position + self.batch_size > len(self.order):
            self.load_state_dict({"lap": self.lap + 1, "position": 0})
        rows = self.windows[self.order[self.position : self.position + self.batch_size]]
        self.position += self.batch_size
        return rows[:, :-1].astype(np.intp), rows[:, -1].astype(np.intp)

    def state_dict(self) -> dict[str, int]:
        return {"lap": self.lap, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The order of a lap follows from its number, so the position alone says what comes next."""
        self.lap, self.position = state["lap"], state["position"]
        self.order = np.random.default_rng([self.seed, self.lap]).permutation(len(self.windows))
