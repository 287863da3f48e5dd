"""Servers, agents, Slurm and PostgreSQL are killed at random: is a job lost, run twice, or a quota leaked?

    python -m bench.siege --minutes 10 --seed 1      needs root, Slurm and PostgreSQL (ci/install-engines)

Two `wattline serve` on one PostgreSQL (fsync on), an agent in each of two sites, a third site on a real Slurm
of four nodes. Small runs are submitted over HTTP all the time; every one to three seconds `kill -9` strikes.
Then the killing stops, what is under way may end, and everything is judged.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.siege_house import AGENTS, House
from bench.siege_judge import Findings, judge
from bench.siege_load import Load
from wattline.live import Home
from wattline.plane.session import Session
from wattline.state import State

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres import PostgresServer
from slurm_cluster import SlurmCluster

START_SECONDS = 90.0
DRAIN_SECONDS = 300.0
SETTLE_SECONDS = 20.0
_CLIENTS = 2
_MOST_TOLD = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Siege:
    """One siege, and what came of it."""

    seconds: float
    seed: int
    house: House
    load: Load
    findings: Findings
    drained_seconds: float  # from the last strike until all had ended

    @property
    def broken(self) -> dict[str, list[str]]:
        return {rule: broken_by for rule, broken_by in self.findings.wrong.items() if broken_by}


def besiege(
    root: Path,
    cluster: SlurmCluster,
    postgres: PostgresServer,
    *,
    seconds: float,
    seed: int,
    every_seconds: float = 1.5,
) -> Siege:
    house = House(root, cluster, postgres, seed)
    try:
        _until_joined(house)
        load = Load(urls=house.urls, diary=root, seed=seed, every_seconds=every_seconds)
        load.start(_CLIENTS)
        _strike(house, seconds, seed)
        stopped_at = time.monotonic()
        load.stop()
        _drain(house, load)
        return Siege(
            seconds=seconds,
            seed=seed,
            house=house,
            load=load,
            findings=judge(house, load),
            drained_seconds=time.monotonic() - stopped_at,
        )
    finally:
        house.mend(all_of_them=True)
        house.close()


def _strike(house: House, seconds: float, seed: int) -> None:
    chance = random.Random(f"times-{seed}")
    ends_at, strike_at = time.monotonic() + seconds, time.monotonic() + 2.0
    with (house.root / "siege.log").open("a", buffering=1) as log:
        while time.monotonic() < ends_at:
            if time.monotonic() >= strike_at:
                struck = house.strike()
                log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {struck}\n")
                strike_at = time.monotonic() + chance.uniform(1.0, 3.0)
            house.mend()
            time.sleep(0.05)
    house.mend(all_of_them=True)


def _until_joined(house: House) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while (state := _state(house)) is None or len(state.sites) < len(AGENTS):
        if time.monotonic() > give_up_at:
            logs = "".join(path.read_text()[-1500:] for path in house.root.glob("*.log"))
            raise SystemExit(f"the agents have not joined\n{logs}")
        time.sleep(0.3)


def _drain(house: House, load: Load) -> None:
    """Until every run has ended and nothing is in flight, or for as long as anybody would wait."""
    give_up_at = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < give_up_at:
        house.mend()
        state = _state(house)
        runs = {} if state is None else state.runs
        wanted = set(load.acknowledged.values())
        if wanted <= set(runs) and all(run.ended_at is not None for run in runs.values()):
            break
        time.sleep(1.0)
    give_up_at = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up_at:  # the last words of agents and of Slurm
        state = _state(house)
        queue = house.cluster.run("squeue", "-h", check=False)
        if state is not None and not (state.flights or state.holding or queue or house.strangers()):
            return
        time.sleep(0.5)


def _state(house: House) -> State | None:
    session = Session(Home(house.home), house.database)
    try:
        return session.state
    finally:
        session.close()


def tell(siege: Siege) -> None:
    """One table: what was done, what came of it, and which rule was broken by whom."""
    kills, load = siege.house.kills, siege.load
    rows = [("seconds of siege", f"{siege.seconds:.0f}"), ("kills", str(kills.total()))]
    rows += [(f"  {kind}", str(times)) for kind, times in sorted(kills.items())]
    rows += [(what, str(count)) for what, count in siege.findings.counts.items()]
    answers = ", ".join(f"{what} {times}" for what, times in sorted(load.tries.items()))
    rows += [("answers to submissions", answers)]
    rows += [("slowest acknowledgement, s", f"{load.slowest_seconds:.1f}")]
    rows += [("until all had ended after it, s", f"{siege.drained_seconds:.0f}")]
    for what, value in rows:
        print(f"{what:<66} {value}")
    print()
    for rule, broken_by in siege.findings.wrong.items():
        print(f"{rule:<66} {len(broken_by)}")
        for one in broken_by[:_MOST_TOLD]:
            print(f"    {one}")
    verdict = f"{len(siege.broken)} rules BROKEN" if siege.broken else "nothing lost, run twice or leaked"
    print(f"\nseed {siege.seed}: {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=1.5, help="seconds between submissions of a client")
    parser.add_argument("--keep", action="store_true", help="leave the folder for who looks into it")
    given = parser.parse_args()
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="siege-"))
        root.chmod(0o755)
        if given.keep:
            print(f"kept: {root}", flush=True)
        else:
            stack.callback(shutil.rmtree, root, ignore_errors=True)
        cluster = stack.enter_context(SlurmCluster(root / "slurm"))
        postgres = stack.enter_context(PostgresServer())
        seconds = given.minutes * 60.0
        siege = besiege(root, cluster, postgres, seconds=seconds, seed=given.seed, every_seconds=given.every)
    tell(siege)
    return 1 if siege.broken else 0


if __name__ == "__main__":
    sys.exit(main())
