"""What do Slurm's commands and slurmrestd cost: a submission, and a look at a queue of so many jobs?

    python -m bench.slurm_ways [--jobs 2000]      needs root and Slurm (ci/install-engines)

A real Slurm of four nodes. Both ways are asked in turns; each figure is the median of its turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from wattline.engines.slurm import SlurmClient, SlurmRest
from wattline.engines.slurm.cluster import Cluster
from wattline.engines.slurm.submission import Submission

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from slurm_cluster import SlurmCluster

_TURNS = 5
_SUBMISSIONS = 50
_LOOKS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000)
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with SlurmCluster(folder) as cluster:
            rest = SlurmRest(cluster.rest())
            ways: dict[str, Cluster] = {"commands": SlurmClient(cluster.environment), "slurmrestd": rest}
            submit = _in_turns(ways, lambda way: way.submit(_waiting(folder)), _SUBMISSIONS)
            while len(rest.queue()) < jobs:
                for _ in range(100):
                    rest.submit(_waiting(folder))
            look = _in_turns(ways, lambda way: way.queue(), _LOOKS)
            for way in ways:
                print(f"{way}: a submission {submit[way]:.1f} ms, a look at {jobs:,} jobs {look[way]:.0f} ms")


def _waiting(folder: Path) -> Submission:
    """Whole nodes are asked for, so that nearly all of them wait."""
    return Submission(
        name="r/t/1",
        comment="",
        directory=str(folder),
        output=str(folder / "output"),
        script="#!/bin/sh\nsleep 1\n",
        cpus=1,
        hosts=("n1",),
        gpus_each=8,
    )


def _in_turns(ways: dict[str, Cluster], do: Callable[[Cluster], object], times: int) -> dict[str, float]:
    """The median of the turns of each, in milliseconds for one time."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_TURNS):
        for name, way in ways.items():
            began = time.perf_counter()
            for _ in range(times):
                do(way)
            took[name].append(1000.0 * (time.perf_counter() - began) / times)
    return {name: statistics.median(each) for name, each in took.items()}


if __name__ == "__main__":
    main()
