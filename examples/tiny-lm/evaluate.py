"""Evaluate: what has the model learned, how quick is it, and does it treat both voices alike?

Reads what prepare.py and train.py wrote to out/; writes out/metrics.json and prints a sample.
"""

from __future__ import annotations

import time

import numpy as np
from model import Array, Parameters, hidden_and_probabilities, tokens_of

from wattline import train

VOICES = ("log", "handbook")
SAMPLE_BYTES = 400
TIMED_PREDICTIONS = 400


def main() -> None:
    settings = train.params()
    with np.load("out/model.npz", allow_pickle=False) as file:
        parameters = {name: file[name] for name in file.files}
    vocabulary = np.load("out/vocabulary.npy", allow_pickle=False)
    training = np.load("out/training.npy", allow_pickle=False)
    held_out = {voice: np.load(f"out/held-out-{voice}.npy", allow_pickle=False) for voice in VOICES}

    results = {voice: judge(parameters, tokens, settings["context"]) for voice, tokens in held_out.items()}
    bits = np.concatenate([bits for bits, _ in results.values()])
    right = np.concatenate([right for _, right in results.values()])
    unigram_bits = unigram_bits_per_byte(training, np.concatenate(list(held_out.values())))
    metrics = {
        "bits_per_byte": float(bits.mean()),
        "bits_per_byte_gain": unigram_bits - float(bits.mean()),
        "accuracy": float(right.mean()),
        "fairness_gap": abs(float(results["log"][1].mean()) - float(results["handbook"][1].mean())),
        "latency_p95_ms": latency_p95_ms(parameters, training[: settings["context"]]),
    }
    train.report(**metrics)
    for name, value in metrics.items():
        print(f"{name:20s} {value:.4f}")
    print("\n" + sample(parameters, vocabulary, settings["context"], settings["seed"]))


def judge(parameters: Parameters, tokens: Array, context: int) -> tuple[Array, Array]:
    """For every byte after the first few: its cost in bits, and whether it was the best guess."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens, context + 1).astype(np.intp)
    probabilities = hidden_and_probabilities(parameters, windows[:, :-1])[-1]
    targets = windows[:, -1]
    bits = -np.log2(probabilities[np.arange(len(targets)), targets] + 1e-12)
    return bits, probabilities.argmax(axis=1) == targets


def unigram_bits_per_byte(training: Array, held_out: Array) -> float:
    """What a model would pay that knows only how often each byte occurs."""
    counts = np.bincount(training, minlength=256) + 1.0
    return float(-np.log2(counts / counts.sum())[held_out].mean())


def latency_p95_ms(parameters: Parameters, context: Array) -> float:
    """The time of one prediction that 95 in 100 stay below."""
    contexts = context[None, :].astype(np.intp)
    seconds = []
    for _ in range(TIMED_PREDICTIONS):
        started = time.perf_counter()
        hidden_and_probabilities(parameters, contexts)
        seconds.append(time.perf_counter() - started)
    return float(np.quantile(seconds, 0.95)) * 1000


def sample(parameters: Parameters, vocabulary: Array, context: int, seed: int) -> str:
    """Text the model writes by itself, a little bolder than it believes."""
    rng = np.random.default_rng(seed)
    written = bytearray(b"\n\nWhen the supply water is warm, "[-max(context, 2) :].rjust(context, b"\n"))
    start = len(written)
    while len(written) < start + SAMPLE_BYTES:
        tokens = tokens_of(bytes(written[-context:]), vocabulary)[None, :].astype(np.intp)
        chances = hidden_and_probabilities(parameters, tokens)[-1][0, 1:].astype(np.float64) ** 2
        written.append(int(rng.choice(vocabulary, p=chances / chances.sum())))
    return written.decode("ascii", errors="replace").strip()


if __name__ == "__main__":
    main()
