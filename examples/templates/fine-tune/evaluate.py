"""Evaluate: is the tuned model better than its base at the own task, and what has it forgotten?

Reads the data and what the phases before wrote to out/; adds to out/metrics.json, where gates read.
"""

from __future__ import annotations

from model import accuracy, load, read_notes, split

from wattline import train


def main() -> None:
    settings = train.params()
    base, tuned = load("out/base.npz"), load("out/model.npz")
    held_out = {
        name: split(
            read_notes(f"data/{name}.csv", settings["features"]), settings["held_out"], settings["seed"]
        )[1]
        for name in ("own", "general")
    }
    metrics = {
        "accuracy": accuracy(tuned, *held_out["own"]),
        "base_accuracy": accuracy(base, *held_out["own"]),
        "general_accuracy": accuracy(tuned, *held_out["general"]),
    }
    metrics["accuracy_gain"] = metrics["accuracy"] - metrics["base_accuracy"]
    metrics["forgotten"] = accuracy(base, *held_out["general"]) - metrics["general_accuracy"]
    train.report(**metrics)
    for name, value in metrics.items():
        print(f"{name:20s} {value:.3f}")


if __name__ == "__main__":
    main()
