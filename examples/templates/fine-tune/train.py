"""Train: an adapter to the base; the base itself stays as it is.

Reads data/own.csv, a few notes of data/general.csv so that what the base knew is not forgotten, and
out/base.npz; writes out/adapter.npz, which is small, and out/model.npz, the base with the adapter worked in.
"""

from __future__ import annotations

import numpy as np
from model import Adam, adapter_slopes, first_adapter, gradient, load, merged, read_notes, split

from wattline import train


def main() -> None:
    settings = train.params()
    own, general = (
        split(read_notes(path, settings["features"]), settings["held_out"], settings["seed"])[0]
        for path in ("data/own.csv", "data/general.csv")
    )
    base = load("out/base.npz")
    rng = np.random.default_rng(settings["seed"])
    adapter = first_adapter(rng, base, settings["rank"])
    optimizer = Adam(adapter, settings["learning_rate"])

    reminders = round(settings["batch_size"] * settings["general_share"])
    # The base is no part: it never changes, so no checkpoint carries it.
    run = train.start(adapter=adapter, optimizer=optimizer.state, rng=rng)
    for step in run.steps(settings["steps"]):
        rows = rng.integers(len(own[1]), size=settings["batch_size"] - reminders)
        others = rng.integers(len(general[1]), size=reminders)
        notes = np.concatenate([own[0][rows], general[0][others]])
        causes = np.concatenate([own[1][rows], general[1][others]])
        loss, slopes = gradient(merged(base, adapter), notes, causes)
        optimizer.update(adapter_slopes(adapter, slopes))
        run.log(loss=loss)
        if step % 100 == 0:
            print(f"step {step:4d}  loss {loss:.3f}", flush=True)

    trained = sum(value.size for value in adapter.values())
    whole = sum(value.size for value in base.values())
    np.savez(run.out / "adapter.npz", allow_pickle=False, **adapter)
    np.savez(run.out / "model.npz", allow_pickle=False, **merged(base, adapter))
    run.report(trained_share=trained / whole)
    print(f"{run.out / 'adapter.npz'}: {trained} parameters, beside {whole} of the base")


if __name__ == "__main__":
    main()
