"""Attempts on Slurm that live on a lease: renewed through their folder, and over without it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines import Ended, EngineEvent, Launch, Result, UnknownAttemptError, leases
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions
from wattline.engines.slurm.wanted import Wanted
from wattline.engines.supervisor.control import Folder

PATIENCE_SECONDS = 60.0
ATTEMPT = "run-1/train/1"


class Bench:
    def __init__(self, cluster: SlurmCluster, place: Path) -> None:
        self.cluster, self.place = cluster, place
        self.events: list[EngineEvent] = []
        self.engine = self.make()

    def make(self) -> SlurmEngine:
        options = SlurmOptions(hosts={"hall/r1-n1": "n1"})
        return SlurmEngine(options, SlurmClient(self.cluster.environment, timeout_seconds=5.0))

    def start(self, seconds: float, command: str = "echo up; sleep 600") -> None:
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        self.engine.start(
            Launch(
                attempt=ATTEMPT,
                epoch=1,
                directory=self.place,
                working_directory=self.place.parent,
                command=command,
                environment={"PATH": path},
                nodes={"hall/r1-n1": 1},
                lease_until=leases.now() + seconds,
            )
        )

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, self.events
            self.engine.wait(0.05)
            self.events += self.engine.poll()

    def until_up(self) -> None:
        self.until(lambda: (self.place / "started.json").exists())

    def result(self) -> Result:
        def found() -> list[Result]:
            return [event.result for event in self.events if isinstance(event, Ended)]

        self.until(lambda: bool(found()))
        (result,) = found()
        return result


@pytest.fixture
def bench(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(slurm, tmp_path / "attempt")
    yield bench
    bench.engine.close()


class TestOnSlurm:
    pytestmark = ON_SLURM

    def test_without_anybody_to_renew_it_the_attempt_ends_with_its_lease(self, bench: Bench) -> None:
        """Whoever started it is killed: the node ends it by itself."""
        bench.start(seconds=8.0)
        bench.until_up()
        bench.engine.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (bench.place / "result.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        result = bench.make().recover([bench.place])[bench.place]
        assert (result.reason, result.message) == ("lease-lost", "its lease ended")
        assert result.wall_seconds < 30.0  # and not the ten minutes that its command takes

    def test_a_lease_is_renewed_and_never_shortened_also_by_who_takes_over(self, bench: Bench) -> None:
        bench.start(8.5, "echo up; sleep 9")  # Slurm may need some of the first lease to begin
        bench.until_up()
        bench.engine.renew(ATTEMPT, leases.now() + 60.0)
        bench.engine.renew(ATTEMPT, leases.now() - 60.0)
        bench.engine.leave()
        bench.engine = bench.make()
        assert bench.engine.recover([bench.place]) == {}
        assert list(bench.engine.living()) == [ATTEMPT]
        bench.engine.renew(ATTEMPT, leases.now() + 60.0)
        assert bench.result().reason == "exited"
        assert list(bench.engine.living()) == []

    def test_an_end_asks_nobody(self, bench: Bench) -> None:
        bench.start(60.0, "trap 'echo saved; sleep 600' TERM; echo up; while :; do sleep 0.1; done")
        bench.until_up()
        began = time.monotonic()
        bench.engine.end(ATTEMPT)
        bench.result()
        assert time.monotonic() - began < 30.0
        assert bench.cluster.run("squeue", "-h", "-t", "R") == ""
        with pytest.raises(UnknownAttemptError):
            bench.engine.end("run-1/other/1")

    def test_what_has_not_begun_when_its_site_disowns_it_never_begins(self, bench: Bench) -> None:
        bench.cluster.run("sbatch", "--nodelist=n1", "--gres=gpu:8", "--wrap", "sleep 300")
        bench.start(60.0, "echo ran")
        bench.until(lambda: (bench.place / "slurm.json").exists())
        bench.engine.end(ATTEMPT)
        assert bench.result().message == "taken back before it started"
        assert not (bench.place / "output.log").exists()

    def test_a_renewal_is_written_down_only_now_and_then(self, bench: Bench) -> None:
        bench.start(60.0)
        bench.until_up()
        bench.engine.renew(ATTEMPT, leases.now() + 100.0)
        before = (bench.place / "wanted.json").stat().st_mtime_ns
        bench.engine.renew(ATTEMPT, leases.now() + 102.0)
        assert (bench.place / "wanted.json").stat().st_mtime_ns == before
        bench.engine.renew(ATTEMPT, leases.now() + 104.0)
        assert (bench.place / "wanted.json").stat().st_mtime_ns > before


def test_a_folder_without_a_lease_never_ends_by_itself(tmp_path: Path) -> None:
    Wanted().write(tmp_path)
    folder = Folder(str(tmp_path))
    folder.take()
    assert not folder.is_gone


def test_a_lease_that_cannot_be_read_is_a_short_one(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), is_leased=True)
    folder.take()
    assert 0.0 < folder._ends_at - leases.now() <= 10.0
    Wanted().leased(leases.now() + 60.0).write(tmp_path)
    folder.take()
    assert folder._ends_at - leases.now() == pytest.approx(60.0, abs=1.0)


@pytest.mark.parametrize(
    ("calendar_seconds", "seconds", "lives_seconds"),
    [
        (30.0, 30.0, 30.0),
        (20.0, 30.0, 20.0),  # it was written ten seconds ago
        (3600.0, 30.0, 30.0),  # the node's calendar is an hour behind
        (-3600.0, 30.0, 0.0),  # … or an hour ahead: it ends too soon rather than too late
        (-1.0, -1.0, 0.0),
    ],
)
def test_a_node_believes_the_less_of_calendar_and_time_given(
    tmp_path: Path, calendar_seconds: float, seconds: float, lives_seconds: float
) -> None:
    wanted = {"until": time.time() + calendar_seconds, "seconds": seconds}
    (tmp_path / "wanted.json").write_text(json.dumps(wanted))
    folder = Folder(str(tmp_path))
    assert not folder.is_gone
    folder.take()
    assert folder.is_gone is (lives_seconds == 0.0)
    assert max(0.0, folder._ends_at - leases.now()) == pytest.approx(lives_seconds, abs=1.0)


@pytest.mark.parametrize("until", ["noon", None, []])
def test_a_lease_that_is_none_changes_nothing(tmp_path: Path, until: object) -> None:
    (tmp_path / "wanted.json").write_text(json.dumps({"until": until, "seconds": 1.0}))
    folder = Folder(str(tmp_path))
    folder.take()
    assert not folder.is_gone
