"""Evaluate: what does text cost that the model has not seen, and what does it write by itself?

Reads what prepare.py and train.py wrote to out/; adds to out/metrics.json, where gates read, and writes
out/sample.txt.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from model import Array, Parameters, bits, forward, tokens_of

from wattline import train

SAMPLE_BYTES = 300


def main() -> None:
    settings = train.params()
    with np.load("out/model.npz", allow_pickle=False) as file:
        parameters = {name: file[name] for name in file.files}
    vocabulary = np.load("out/vocabulary.npy", allow_pickle=False)
    training = np.load("out/training.npy", allow_pickle=False)
    held_out = np.load("out/held-out.npy", allow_pickle=False)

    windows = np.lib.stride_tricks.sliding_window_view(held_out, settings["context"] + 1).astype(np.intp)
    cost = float(bits(parameters, windows[:, :-1], windows[:, -1]).mean())
    counts = np.bincount(training, minlength=256) + 1.0
    counted = float(-np.log2(counts / counts.sum())[held_out].mean())
    learned = json.loads(Path("out/metrics.json").read_text())["training_bits_per_byte"]
    metrics = {
        "bits_per_byte": cost,
        "bits_per_byte_gain": counted - cost,  # against counting bytes
        "overfitting": cost - learned,
    }
    train.report(**metrics)
    for name, value in metrics.items():
        print(f"{name:20s} {value:.3f}")
    text = sample(parameters, vocabulary, settings["context"], settings["seed"])
    Path("out/sample.txt").write_text(text + "\n")
    print("\n" + text)


def sample(parameters: Parameters, vocabulary: Array, context: int, seed: int) -> str:
    """Text the model writes by itself, a little bolder than it believes."""
    rng = np.random.default_rng(seed)
    written = bytearray(b"\n" * context)
    while len(written) < context + SAMPLE_BYTES:
        tokens = tokens_of(bytes(written[-context:]), vocabulary)[None, :].astype(np.intp)
        chances = forward(parameters, tokens)[-1][0, 1:].astype(np.float64) ** 2
        written.append(int(rng.choice(vocabulary, p=chances / chances.sum())))
    return written.decode("utf-8", errors="replace").strip()


if __name__ == "__main__":
    main()
