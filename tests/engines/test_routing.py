"""Several engines as one: an attempt goes to the engine of its site, and so does all that is asked of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from building import a_facility, a_site
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines import Ended, EngineEvent, Launch, LocalEngine, UnknownAttemptError, engines_of
from wattline.engines.routing import RoutedEngine
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions

PATIENCE_SECONDS = 60.0


def test_a_facility_whose_sites_are_all_here_needs_no_routing() -> None:
    engine = engines_of(a_facility(a_site("zurich"), a_site("oslo")))
    assert isinstance(engine, LocalEngine)
    engine.close()


class Pair:
    """One site here, and one on Slurm."""

    def __init__(self, cluster: SlurmCluster, place: Path) -> None:
        self.place, self._cluster = place, cluster
        self.events: list[EngineEvent] = []
        self.engine = self.make()

    def make(self) -> RoutedEngine:
        options = SlurmOptions(hosts={"hall/r1-n1": "n1"})
        slurm = SlurmEngine(options, SlurmClient(self._cluster.environment))
        return RoutedEngine({"desk": LocalEngine(), "hall": slurm})

    def start(self, site: str, command: str) -> str:
        attempt = f"run-1/{site}/1"
        self.engine.start(
            Launch(
                attempt=attempt,
                epoch=1,
                directory=self.place / attempt,
                working_directory=self.place,
                command=command,
                environment={"PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
                grace_seconds=0.5,
                site=site,
                nodes={f"{site}/r1-n1": 1},
            )
        )
        return attempt

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, self.events
            self.engine.wait(0.05)
            self.events += self.engine.poll()

    def reasons(self) -> dict[str, str]:
        return {event.attempt: event.result.reason for event in self.events if isinstance(event, Ended)}


@pytest.fixture
def pair(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(slurm, tmp_path)
    yield pair
    pair.engine.close()


class TestOnBoth:
    pytestmark = ON_SLURM

    def test_each_attempt_runs_and_is_stopped_where_its_site_is(self, pair: Pair) -> None:
        attempts = [pair.start(site, "echo $SLURM_JOB_ID > at; sleep 600") for site in ("desk", "hall")]
        pair.until(lambda: all((pair.place / name / "started.json").exists() for name in attempts))
        assert not (pair.place / attempts[0] / "slurm.json").exists()
        pair.until(lambda: (pair.place / attempts[1] / "slurm.json").exists())
        for attempt in attempts:
            pair.engine.stop(attempt)
        pair.until(lambda: len(pair.reasons()) == 2)
        assert set(pair.reasons().values()) == {"stopped"}

    def test_after_a_restart_each_engine_recovers_its_own(self, pair: Pair) -> None:
        attempts = [pair.start(site, "sleep 600") for site in ("desk", "hall")]
        pair.until(lambda: all((pair.place / name / "started.json").exists() for name in attempts))
        pair.engine.close()
        pair.events.clear()
        pair.engine = pair.make()
        directories = [pair.place / name for name in attempts]
        recovered = pair.engine.recover(directories)
        assert {path: result.reason for path, result in recovered.items()} == {directories[0]: "lease-lost"}
        pair.engine.stop(attempts[1])
        pair.until(lambda: pair.reasons() == {attempts[1]: "stopped"})

    def test_a_command_to_an_unknown_attempt_is_refused(self, pair: Pair) -> None:
        with pytest.raises(UnknownAttemptError, match="run-9/train/1"):
            pair.engine.stop("run-9/train/1")
