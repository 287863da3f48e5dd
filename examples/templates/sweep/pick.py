"""Pick: which trial won, and how good is it on rows that no choice was made by?

Reads out/second-*; writes out/model.npz and out/sweep.md, and adds to out/metrics.json, where gates read.
"""

from __future__ import annotations

import numpy as np
from grid import OUT, points_of, read_results
from jobs import read_jobs
from model import accuracy, split

from wattline import train


def main() -> None:
    settings = train.params()
    first, second = read_results("first"), read_results("second")
    best = second[0]
    with np.load(OUT / f"second-{best['trial']}.npz", allow_pickle=False) as file:
        parameters = {name: file[name] for name in file.files if not name.startswith("momentum.")}
    np.savez(OUT / "model.npz", allow_pickle=False, **parameters)
    for path in [*OUT.glob("first-*.npz"), *OUT.glob("second-*.npz")]:
        path.unlink()

    test = split(read_jobs("data/jobs.csv"), settings["seed"])["test"]
    steps = sum(result["steps"] for result in [*first, *second])
    whole = len(points_of(settings)) * (settings["first_steps"] + settings["second_steps"])
    metrics = {
        "accuracy": accuracy(parameters, test),
        "loss": best["validation_loss"],
        "trials": len(first),
        "steps_saved": 1 - steps / whole,  # against all trials to the end
    }
    train.report(**metrics)
    grid = list(settings["grid"])
    rows = [
        f"# Trial {best['trial']} of {len(first)}: {best['settings']}\n",
        f"Accuracy {metrics['accuracy']:.3f} on test rows; {metrics['steps_saved']:.0%} of steps saved.\n",
        row("trial", *grid, "steps", "loss"),
        row(*["---"] * (len(grid) + 3)),
        *(
            row(one["trial"], *one["settings"].values(), one["steps"], f"{one['validation_loss']:.4f}")
            for one in [*second, *first]
        ),
    ]
    (OUT / "sweep.md").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
