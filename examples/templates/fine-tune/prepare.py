"""Prepare: make the base model that is fine-tuned afterwards.

Reads data/general.csv; writes out/base.npz. With a base of your own, name its file under data: in the
pipeline and let this script copy it to out/base.npz.
"""

from __future__ import annotations

import numpy as np
from model import Adam, first_base, gradient, read_notes, split

from wattline import train


def main() -> None:
    settings = train.params()
    notes, _ = split(
        read_notes("data/general.csv", settings["features"]), settings["held_out"], settings["seed"]
    )
    rng = np.random.default_rng(settings["seed"])
    base = first_base(rng, settings)
    optimizer = Adam(base, settings["learning_rate"])
    run = train.start(model=base, optimizer=optimizer.state, rng=rng)
    for _ in run.steps(settings["base_steps"]):
        rows = rng.integers(len(notes[1]), size=settings["batch_size"])
        loss, slopes = gradient(base, notes[0][rows], notes[1][rows])
        optimizer.update(slopes)
        run.log(loss=loss)
    np.savez(run.out / "base.npz", allow_pickle=False, **base)
    print(f"{run.out / 'base.npz'}: {sum(value.size for value in base.values())} parameters")


if __name__ == "__main__":
    main()
