"""All around an attempt is killed at random: none is lost without a word, run twice, or left behind."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines import Ended, Launch, Result
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions

pytestmark = ON_SLURM
CHAOS_SECONDS = float(os.environ.get("WATTLINE_SOAK_SECONDS", "15"))
PATIENCE_SECONDS = 120.0
# What it writes tells how often it began and how often it came to its end.
COMMAND = "echo began >> $WATTLINE_ATTEMPT/diary; sleep 3; echo ended >> $WATTLINE_ATTEMPT/diary"


class Siege:
    """Attempts that are started all the time, and what is done to those who run them."""

    def __init__(self, cluster: SlurmCluster, place: Path, seed: int) -> None:
        self.cluster, self.place, self.random = cluster, place, random.Random(seed)
        self.engine = self._make()
        self.started: dict[str, Launch] = {}
        self.results: dict[str, list[Result]] = {}
        self.kills = dict.fromkeys(("control", "slurmctld", "slurmd"), 0)
        self._away: dict[str, float] = {}

    def _make(self) -> SlurmEngine:
        options = SlurmOptions(
            hosts={f"hall/r1-{node}": node for node in self.cluster.nodes}, license="kilowatts"
        )
        return SlurmEngine(options, SlurmClient(self.cluster.environment, timeout_seconds=5.0))

    def start(self) -> None:
        number = len(self.started)
        attempt = f"run-{number}/train/1"
        launch = Launch(
            attempt=attempt,
            epoch=1,
            directory=self.place / attempt,
            working_directory=self.place,
            command=COMMAND,
            environment={"PATH": os.defpath},
            nodes={f"hall/r1-{self.random.choice(self.cluster.nodes)}": 1},
            peak_watts=1000.0,
        )
        self.started[attempt] = launch
        self.engine.start(launch)

    def harm(self) -> None:
        victim = self.random.choice(("control", "slurmctld", *self.cluster.nodes))
        if victim == "control":
            self.kills["control"] += 1
            self.engine.close()
            self.engine = self._make()
            held = [name for name in self.started if name not in self.results]
            folders = {self.started[name].directory: name for name in held}
            for folder, result in self.engine.recover(folders).items():
                self.results.setdefault(folders[folder], []).append(result)
        elif victim not in self._away:
            self.kills["slurmctld" if victim == "slurmctld" else "slurmd"] += 1
            self.cluster.kill_daemon(victim)
            self._away[victim] = time.monotonic() + self.random.uniform(0.2, 2.0)

    def mend(self, *, all_of_them: bool = False) -> None:
        for victim, until in list(self._away.items()):
            if all_of_them or time.monotonic() >= until:
                self.cluster.start(victim)
                del self._away[victim]

    def poll(self) -> None:
        self.engine.wait(0.05)
        for event in self.engine.poll():
            if isinstance(event, Ended):
                self.results.setdefault(event.attempt, []).append(event.result)

    def diary(self, attempt: str) -> list[str]:
        path = self.started[attempt].directory / "diary"
        return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("seed", [7])
def test_no_attempt_is_lost_or_run_twice_whoever_is_killed(
    slurm: SlurmCluster, tmp_path: Path, seed: int
) -> None:
    siege = Siege(slurm, tmp_path, seed)
    ends_at, start_at, harm_at = time.monotonic() + CHAOS_SECONDS, 0.0, time.monotonic() + 1.0
    try:
        while time.monotonic() < ends_at:
            if time.monotonic() >= start_at:
                siege.start()
                start_at = time.monotonic() + 0.5
            if time.monotonic() >= harm_at:
                siege.harm()
                harm_at = time.monotonic() + siege.random.uniform(0.5, 1.5)
            siege.mend()
            siege.poll()
    finally:
        siege.mend(all_of_them=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(siege.results) < len(siege.started):
        waiting = sorted(siege.started.keys() - siege.results.keys())
        assert time.monotonic() < deadline, f"seed {seed}: {waiting} have not ended; {siege.kills}"
        siege.poll()
    told = {name: [result.reason for result in results] for name, results in siege.results.items()}
    for attempt, reasons in told.items():
        assert len(reasons) == 1, f"seed {seed}: {attempt} ended {reasons}"
        assert siege.diary(attempt).count("began") <= 1, f"seed {seed}: {attempt} ran twice"
        if reasons == ["exited"]:
            assert siege.diary(attempt) == ["began", "ended"], f"seed {seed}: {attempt}"
    endings = [reasons[0] for reasons in told.values()]
    said = [result.message for (result,) in siege.results.values() if result.reason != "exited"]
    counts = {ending: endings.count(ending) for ending in sorted(set(endings))}
    print(
        json.dumps(
            {"seed": seed, "attempts": len(told), "kills": siege.kills, "endings": counts, "said": said}
        )
    )
    slurm.resume_all()  # by themselves: nothing needs to be swept
    assert siege.engine.sweep(tmp_path, []) == []
    assert "Used=0" in slurm.run("scontrol", "-o", "show", "licenses")
    assert endings.count("exited") >= len(endings) / 2, f"seed {seed}: {told}"
    siege.engine.close()
