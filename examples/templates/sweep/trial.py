"""Trial: how good is one point of the grid, after a few steps and after many?

`python trial.py first 3` begins trial 3; `python trial.py second 1` goes on with the best trial that was not
pruned, `second 2` with the next. Writes out/first-3.json and out/first-3.npz, or the same with `second`.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from grid import OUT, settings_of, write_result
from jobs import read_jobs
from model import Parameters, accuracy, first_parameters, gradient, loss_of, split

from wattline import train


def main(stage: str, number: int) -> None:
    trial = number if stage == "first" else json.loads((OUT / "kept.json").read_text())[number - 1]
    settings = settings_of(trial, train.params())
    parts = split(read_jobs("data/jobs.csv"), settings["seed"])
    training, validation = parts["training"], parts["validation"]
    rng = np.random.default_rng([settings["seed"], trial, stage == "second"])
    parameters = first_parameters(rng, training, settings["hidden"])
    momentum = {name: np.zeros_like(value) for name, value in parameters.items()}
    if stage == "second":
        go_on_from(f"first-{trial}.npz", parameters, momentum)

    taken = {"steps": 0}
    run = train.start(model=parameters, momentum=momentum, rng=rng, taken=taken)
    for step in run.steps(settings[f"{stage}_steps"]):
        rows = rng.integers(len(training.late), size=settings["batch_size"])
        slopes = gradient(parameters, training.features[rows], training.late[rows])
        for name, slope in slopes.items():
            momentum[name] *= 0.9
            momentum[name] -= settings["learning_rate"] * slope
            parameters[name] += momentum[name]
        loss = loss_of(parameters, validation)
        taken["steps"] += 1
        run.log(loss=loss)
        if step >= settings["patience"] and not loss < settings["hopeless_loss"]:
            print(f"hopeless by step {taken['steps']}: its GPU goes back at once")
            break

    np.savez(run.out / f"{stage}-{trial}.npz", allow_pickle=False, **stored(parameters, momentum))
    found = {
        "settings": {name: settings[name] for name in settings["grid"]},
        "steps": taken["steps"],
        "validation_loss": loss_of(parameters, validation),
        "validation_accuracy": accuracy(parameters, validation),
    }
    write_result(stage, trial, found)
    print(f"trial {trial}: {found}")


def stored(parameters: Parameters, momentum: Parameters) -> Parameters:
    return parameters | {f"momentum.{name}": value for name, value in momentum.items()}


def go_on_from(name: str, parameters: Parameters, momentum: Parameters) -> None:
    with np.load(OUT / name, allow_pickle=False) as file:
        for part in parameters:
            parameters[part][...] = file[part]
            momentum[part][...] = file[f"momentum.{part}"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
