"""Model: how likely does a job come late? One hidden layer, whose width the sweep chooses.

Put a model of your own here and keep what the other scripts ask for: first_parameters, gradient, loss_of,
accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jobs import Jobs

Array = np.ndarray[Any, np.dtype[Any]]
Parameters = dict[str, Array]


def split(jobs: Jobs, seed: int) -> dict[str, Jobs]:
    """Most rows to learn from; a fifth each to choose by, and to test the choice with."""
    order = np.random.default_rng(seed).permutation(len(jobs.late))
    first, second = round(len(order) * 0.6), round(len(order) * 0.8)
    parts = {"training": order[:first], "validation": order[first:second], "test": order[second:]}
    return {
        name: Jobs(features=jobs.features[rows], groups=jobs.groups[rows], late=jobs.late[rows])
        for name, rows in parts.items()
    }


def first_parameters(rng: np.random.Generator, training: Jobs, hidden: int) -> Parameters:
    columns = training.features.shape[1]
    return {
        "mean": training.features.mean(axis=0),  # not learned, but part of the model's file
        "scale": training.features.std(axis=0),
        "hidden": rng.standard_normal((columns, hidden)) * columns**-0.5,
        "hidden_bias": np.zeros(hidden),
        "output": rng.standard_normal(hidden) * hidden**-0.5,
        "output_bias": np.zeros(1),
    }


def forward(parameters: Parameters, features: Array) -> tuple[Array, Array, Array]:
    """What each layer says; the last is the chance of each job to come late."""
    inputs = (features - parameters["mean"]) / parameters["scale"]
    hidden = np.tanh(inputs @ parameters["hidden"] + parameters["hidden_bias"])
    scores = hidden @ parameters["output"] + parameters["output_bias"]
    return inputs, hidden, 1 / (1 + np.exp(-np.clip(scores, -30, 30)))


def loss_of(parameters: Parameters, jobs: Jobs) -> float:
    """Mean loss in nats."""
    chance = forward(parameters, jobs.features)[-1]
    return float(-np.log(np.where(jobs.late, chance, 1 - chance) + 1e-12).mean())


def accuracy(parameters: Parameters, jobs: Jobs) -> float:
    return float(((forward(parameters, jobs.features)[-1] > 0.5) == jobs.late).mean())


def gradient(parameters: Parameters, features: Array, late: Array) -> Parameters:
    """The slope of the loss for every parameter that is learned."""
    inputs, hidden, chance = forward(parameters, features)
    slope = (chance - late) / len(late)
    hidden_slope = slope[:, None] * parameters["output"] * (1 - hidden * hidden)
    return {
        "hidden": inputs.T @ hidden_slope,
        "hidden_bias": hidden_slope.sum(axis=0),
        "output": hidden.T @ slope,
        "output_bias": slope.sum(keepdims=True),
    }
