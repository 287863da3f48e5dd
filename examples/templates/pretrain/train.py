"""Train: a loop that may be paused, shrunk, killed and moved, and still ends in the same bytes.

Reads what prepare.py wrote to out/; writes out/model.npz.
"""

from __future__ import annotations

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

    # All that the loop carries from one step to the next is named here, and comes back after a stop.
    progress = {"bits": 0.0}
    run = train.start(model=parameters, optimizer=optimizer.state, rng=rng, data=sampler, progress=progress)
    for step in run.steps(settings["steps"]):
        batches = []
        for _ in range(settings["micro_batches"]):
            contexts, targets = sampler.next()
            contexts[rng.random(contexts.shape) < settings["forget"]] = FORGOTTEN
            batches.append((contexts, targets))
        results = run.map(lambda batch: gradient(parameters, *batch), batches)
        # Added in the order of the batches, however many were in flight: so sums round the same way.
        optimizer.update(
            {name: np.mean([slopes[name] for _, slopes in results], axis=0) for name in parameters}
        )
        loss = sum(bits for bits, _ in results) / len(results)
        progress["bits"] += 0.05 * (loss - progress["bits"]) if step else loss
        run.log(loss=loss)
        if step % 50 == 0:
            print(f"step {step:4d}  {loss:.3f} bits per byte", flush=True)

    np.savez(run.out / "model.npz", allow_pickle=False, **parameters)
    run.report(training_bits_per_byte=progress["bits"])
    print(f"{run.out / 'model.npz'}: {sum(value.size for value in parameters.values())} parameters")


if __name__ == "__main__":
    main()
