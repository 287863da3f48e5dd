"""Train: a loop that may be paused, shrunk, killed and moved, and still ends in the same bytes.

Reads what prepare.py wrote to out/; writes out/model.npz.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from model import FORGOTTEN, Adam, Sampler, first_parameters, gradient

from wattline import train


def main() -> None:
    settings = train.params()
    tokens = np.load("out/training.npy", allow_pickle=False)
    vocabulary = np.load("out/vocabulary.npy", allow_pickle=False)
    rng = np.random.default_rng(settings["seed"])
    parameters = first_parameters(rng, settings, len(vocabulary) + 1)
    optimizer = Adam(parameters, settings["learning_rate"], settings["steps"])
    sampler = Sampler(tokens, settings["context"], settings["micro_batch_size"], settings["seed"])

    progress = {"loss": 0.0}
    run = train.start(model=parameters, optimizer=optimizer.state, rng=rng, data=sampler, progress=progress)
    for step in run.steps(settings["steps"]):
        batches = []
        for _ in range(settings["micro_batches"]):
            contexts, targets = sampler.next()
            contexts[rng.random(contexts.shape) < settings["forget"]] = FORGOTTEN
            batches.append((contexts, targets))
        results = run.map(lambda batch: gradient(parameters, *batch), batches)
        scale = np.float32(1 / len(results))
        slopes = {name: sum(slope[name] for _, slope in results) * scale for name in parameters}
        optimizer.update(slopes)
        progress["loss"] = sum(bits for bits, _ in results) / len(results)
        run.log(loss=progress["loss"])
        if step % 40 == 0:
            print(f"step {step:4d}  {progress['loss']:.3f} bits per byte", flush=True)

    save_model(run.out / "model.npz", parameters)
    run.report(training_bits_per_byte=progress["loss"])
    print(f"{run.out / 'model.npz'}: {sum(value.size for value in parameters.values())} parameters")


def save_model(path: Path, parameters: dict[str, np.ndarray]) -> None:
    """Whole or not at all; the same parameters always give the same bytes."""
    temporary = path.with_name(".model.npz")
    np.savez(temporary, allow_pickle=False, **parameters)
    temporary.replace(path)


if __name__ == "__main__":
    main()
