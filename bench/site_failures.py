"""Cut, kill, delay and skew: do a hub and its sites keep their promises whatever fails, and when?

python -m bench.site_failures --seeds 10000
python -m bench.site_failures --seed 1234        replay one, with its story
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.site_machine import SAVE_EVERY_STEPS
from bench.site_promises import LOST_BOUND_STEPS, BrokenError, run
from bench.site_simulation import Simulation


def play(seed: int) -> tuple[int, str, Counter[str], int]:
    """One in ten has a site whose clock is beyond the bound."""
    simulation = Simulation(seed, wild=seed % 10 == 9)
    try:
        promises = run(simulation)
    except BrokenError as error:
        return seed, str(error), simulation.seen, 0
    return seed, "", simulation.seen, promises.most_lost_steps


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.seed is not None:
        run(Simulation(given.seed, wild=given.seed % 10 == 9, story=True))
        return 0
    began, seen, broken, most_lost = time.monotonic(), Counter[str](), [], 0
    with ProcessPoolExecutor(given.processes) as pool:
        for seed, trouble, what, lost in pool.map(
            play, range(given.first, given.first + given.seeds), chunksize=20
        ):
            seen += what
            most_lost = max(most_lost, lost)
            if trouble:
                broken.append(seed)
                print(f"seed {seed}: {trouble}")
    wall_seconds = time.monotonic() - began
    print(f"{given.seeds} seeds in {wall_seconds:.0f} s, {len(broken)} broke an invariant: {broken[:20]}")
    print(f"most work lost: {most_lost} steps; saved every {SAVE_EVERY_STEPS}, bound {LOST_BOUND_STEPS:.0f}")
    for name, count in sorted(seen.items()):
        print(f"  {name}: {count}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
