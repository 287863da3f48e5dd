"""Prune: which trials are worth going on with?

Reads out/first-*.json; writes out/kept.json, the best first, and removes the weights of the others.
"""

from __future__ import annotations

import json

from grid import OUT, points_of, read_results

from wattline import train


def main() -> None:
    settings = train.params()
    results = read_results("first")
    points = len(points_of(settings))
    if len(results) != points:
        raise SystemExit(
            f"the grid in params.json has {points} points and {len(results)} trials ran: "
            "give wattline.yaml one phase first-N for each point, and name them all in prune's after"
        )
    kept = [result["trial"] for result in results[: settings["kept"]]]
    for result in results:
        trial = result["trial"]
        print(f"{'kept' if trial in kept else 'pruned':8s}trial {trial}: {result['validation_loss']:.4f}")
        if trial not in kept:
            (OUT / f"first-{trial}.npz").unlink()
    (OUT / "kept.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
