"""What runs for nobody is found and ended, also where its maker died and the engine was away when asked."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines import Launch, LocalEngine
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions, SlurmRest
from wattline.engines.slurm.cluster import Cluster
from wattline.errors import UnavailableError
from wattline.live import sweeping
from wattline.live.sweeping import Sweeper
from wattline.state import Event, Noticed

PATIENCE_SECONDS = 60.0


class Asked(LocalEngine):
    """Writes down what it is asked, and answers as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[list[Path], float]] = []
        self.answers: list[list[str] | Exception] = []

    def sweep(self, root: Path, known: Collection[Path], before: float = float("inf")) -> list[str]:
        self.asked.append((list(known), before))
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(events: list[Event]) -> list[str]:
    return [event.say for event in events if isinstance(event, Noticed)]


def poll_until(sweeper: Sweeper, happened: Callable[[], bool], known: Collection[Path] = ()) -> list[str]:
    told: list[str] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, told
        told += said(sweeper.poll(lambda: known, time.time()))
        time.sleep(0.01)
    return told + said(sweeper.poll(lambda: known, time.time()))


def test_it_looks_at_the_start_and_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Asked()
    engine.answers = [["one was ended"], ["another was ended"]]
    sweeper = Sweeper(engine, tmp_path)
    assert said(sweeper.look_now([tmp_path / "held"], 5.0)) == ["one was ended"]
    assert sweeper.poll(list, 6.0) == []
    assert engine.asked == [([tmp_path / "held"], float("inf"))]
    monkeypatch.setattr(sweeper, "_next_at", 0.0)
    told = poll_until(sweeper, lambda: len(engine.asked) == 2 and sweeper._looking is None)
    assert told == ["another was ended"]
    assert engine.asked[1][1] < time.time() - 50.0  # what has only just begun is not looked at
    sweeper.close()
    engine.close()


def test_an_engine_that_does_not_answer_is_told_once_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_SOON_SECONDS", 0.01)
    engine = Asked()
    engine.answers = [UnavailableError("nobody there"), OSError("no"), UnavailableError("nobody"), ["ended"]]
    sweeper = Sweeper(engine, tmp_path)
    assert said(sweeper.look_now([], 5.0)) == ["what nobody holds could not be looked for: nobody there"]
    assert poll_until(sweeper, lambda: len(engine.asked) == 4 and sweeper._looking is None) == ["ended"]
    sweeper.close()
    assert sweeper.look_now([], 6.0) == []
    assert sweeper.poll(list, 6.0) == []
    engine.close()


class Bench:
    """Engines on one cluster, each as a control process would have it."""

    def __init__(self, cluster: SlurmCluster, place: Path, asked: Callable[[], Cluster]) -> None:
        self.cluster, self.place, self._asked = cluster, place, asked
        self._made: list[SlurmEngine] = []

    def engine(self) -> SlurmEngine:
        hosts = {f"hall/r1-{node}": node for node in self.cluster.nodes}
        engine = SlurmEngine(SlurmOptions(hosts=hosts, license="kilowatts"), self._asked())
        self._made.append(engine)
        return engine

    def start(self, engine: SlurmEngine, name: str) -> Path:
        """Begin one that never ends by itself, and wait until it runs."""
        folder = self.place / name
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        engine.start(
            Launch(
                attempt=f"run-1/{name}/1",
                epoch=1,
                directory=folder,
                working_directory=self.place,
                command="echo kept > result; sleep 600",
                environment={"PATH": path},
                grace_seconds=0.5,
                nodes={"hall/r1-n2": 2},
                peak_watts=2500.0,
            )
        )
        self.until(engine, lambda: (folder / "started.json").exists())
        return folder

    def until(self, engine: SlurmEngine, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline
            engine.wait(0.05)
            engine.poll()

    def licenses_used(self) -> int:
        (line,) = self.cluster.run("scontrol", "-o", "show", "licenses").splitlines()
        return int(line.partition("Used=")[2].split()[0])

    def others(self, engine: SlurmEngine) -> int:
        return sum(node.others_gpus for node in engine.nodes())

    def age(self, folder: Path, seconds: float) -> None:
        """As if it had been begun so long ago."""
        record = json.loads((folder / "launch.json").read_text())
        (folder / "launch.json").write_text(json.dumps(record | {"at": record["at"] - seconds}))

    def close(self) -> None:
        for engine in self._made:
            engine.close()


@pytest.fixture(params=["commands", "slurmrestd"])
def bench(slurm: SlurmCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    def asked() -> Cluster:
        if request.param == "commands":
            return SlurmClient(slurm.environment, timeout_seconds=5.0)
        return SlurmRest(slurm.rest())

    bench = Bench(slurm, tmp_path, asked)
    yield bench
    bench.close()


class TestOnSlurm:
    pytestmark = ON_SLURM

    def test_an_allocation_whose_maker_died_is_torn_down_once_slurm_is_back_and_its_quota_is_free(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was provisioned and used; who made it died, and when the next one looked, nobody answered."""
        monkeypatch.setattr(sweeping, "_SOON_SECONDS", 0.2)
        died = bench.engine()
        orphan = bench.start(died, "orphan")
        died.close()
        bench.age(orphan, 120.0)
        assert bench.licenses_used() == 3
        bench.cluster.halt("slurmctld")
        engine = bench.engine()
        sweeper = Sweeper(engine, bench.place)
        try:
            (trouble,) = said(sweeper.look_now([], time.time()))
            assert "what nobody holds could not be looked for" in trouble
        finally:
            bench.cluster.start("slurmctld")
        # The job may have ended before whoever cancelled it has heard so.
        (told,) = poll_until(sweeper, lambda: (orphan / "result.json").exists() and sweeper._looking is None)
        assert str(orphan) in told
        assert "for an attempt that nobody holds: cancelled" in told
        bench.until(engine, lambda: bench.licenses_used() == 0 and bench.others(engine) == 0)
        assert (bench.place / "result").read_text() == "kept\n"  # what it had made is there
        sweeper.close()

    def test_what_is_held_or_has_just_begun_is_left_alone_while_others_are_swept(self, bench: Bench) -> None:
        died, engine = bench.engine(), bench.engine()
        orphan, fresh = bench.start(died, "orphan"), bench.start(died, "fresh")
        known, own = bench.start(died, "known"), bench.start(engine, "own")
        for folder in (orphan, known, own):
            bench.age(folder, 120.0)
        (told,) = engine.sweep(bench.place, [known], time.time() - 60.0)
        assert str(orphan) in told
        bench.until(engine, lambda: (orphan / "result.json").exists())
        assert not [one for one in (fresh, known, own) if (one / "result.json").exists()]
