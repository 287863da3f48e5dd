"""What is Slurm's alone, on a real one: jobs outlive us, answers are lost, others are there too."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from slurm_cluster import ON_SLURM, SlurmCluster
from wattline import engines
from wattline.engines import Ended, EngineEvent, Launch, Noted, Result, Started
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions, SlurmRest, submission
from wattline.engines.slurm.cluster import Cluster
from wattline.errors import UnavailableError

pytestmark = ON_SLURM
PATIENCE_SECONDS = 60.0
ATTEMPT = "run-1/train/1"
_ANYBODYS_PYTHON = "/usr/bin/python3"  # the one that runs the tests may be root's alone
GO = "echo up; while [ ! -e go ]; do sleep 0.05; done"


class Bench:
    """An engine on the cluster, and others that take over from it."""

    def __init__(self, cluster: SlurmCluster, place: Path, way: str = "commands", **options: object) -> None:
        self.cluster, self.place, self.options = cluster, place, options
        self.asked: Cluster = SlurmClient(cluster.environment, 5.0)
        if way != "commands":
            self.asked = SlurmRest(cluster.rest(way))
        self.events: list[EngineEvent] = []
        self.engine = self.make()

    def make(self) -> SlurmEngine:
        hosts = {f"hall/r1-{node}": node for node in self.cluster.nodes}
        return SlurmEngine(SlurmOptions(hosts=hosts, **self.options), self.asked)  # type: ignore[arg-type]

    def crash(self) -> None:
        """Another control process takes over: it knows nothing but what lies in the folders."""
        self.engine.close()
        self.events.clear()
        self.engine = self.make()

    @property
    def directory(self) -> Path:
        return self.place / ATTEMPT

    def launch(self, command: str = GO, **more: object) -> Launch:
        given: dict[str, object] = {
            "attempt": ATTEMPT,
            "epoch": 1,
            "directory": self.directory,
            "working_directory": self.place,
            "command": command,
            "environment": {"PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
            "nodes": {"hall/r1-n2": 2},
            "grace_seconds": 0.5,
        }
        return Launch(**(given | more))  # type: ignore[arg-type]

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, self.events
            self.engine.wait(0.05)
            self.events += self.engine.poll()

    def until_output(self, text: str) -> None:
        path = self.directory / "output.log"
        self.until(lambda: path.exists() and text in path.read_text())

    def result(self) -> Result:
        def found() -> list[Result]:
            return [event.result for event in self.events if isinstance(event, Ended)]

        self.until(lambda: bool(found()))
        (result,) = found()
        return result

    def notes(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noted)]

    def jobs(self) -> list[str]:
        """All that Slurm has of this attempt, over or not."""
        found = self.cluster.run("squeue", "-h", "-t", "all", f"--name={ATTEMPT}", "-O", "JobID:|,WorkDir:|")
        return [
            line.split("|")[0] for line in found.splitlines() if line.split("|")[1] == str(self.directory)
        ]


@pytest.fixture(params=["commands", "url"])
def way(request: pytest.FixtureRequest) -> str:
    """By Slurm's commands, or by slurmrestd."""
    found: str = request.param
    return found


@pytest.fixture
def bench(slurm: SlurmCluster, tmp_path: Path, way: str) -> Iterator[Bench]:
    bench = Bench(slurm, tmp_path, way)
    yield bench
    bench.engine.close()


def test_a_job_that_outlives_its_control_process_is_taken_over(bench: Bench) -> None:
    bench.engine.start(bench.launch())
    bench.until_output("up")
    bench.crash()
    assert bench.engine.recover([bench.directory]) == {}
    (bench.place / "go").touch()
    assert bench.result().reason == "exited"
    assert isinstance(bench.events[0], Started)
    assert len(bench.jobs()) == 1


def test_what_ended_meanwhile_is_told_by_recovery(bench: Bench) -> None:
    bench.engine.start(bench.launch("exit 3"))
    bench.until(lambda: (bench.directory / "result.json").exists())
    bench.crash()
    recovered = bench.engine.recover([bench.directory])
    assert recovered[bench.directory].code == 3


def test_what_was_never_submitted_is_lost(bench: Bench) -> None:
    bench.directory.mkdir(parents=True)
    recovered = bench.engine.recover([bench.directory])
    assert (recovered[bench.directory].reason, recovered[bench.directory].message) == (
        "lost",
        "it was never submitted",
    )


@pytest.mark.parametrize("by", ["recover", "start"])
def test_a_crash_between_sbatch_and_its_answer_makes_no_second_job(bench: Bench, by: str) -> None:
    bench.engine.start(bench.launch())
    bench.until_output("up")
    (bench.directory / "slurm.json").unlink()
    bench.crash()
    if by == "recover":
        assert bench.engine.recover([bench.directory]) == {}
    else:
        bench.engine.start(bench.launch())
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    (bench.place / "go").touch()
    assert bench.result().reason == "exited"
    assert len(bench.jobs()) == 1


def test_a_crash_before_sbatch_is_made_good_by_whoever_recovers(bench: Bench) -> None:
    bench.cluster.halt("slurmctld")
    try:
        bench.engine.start(bench.launch("echo ran"))
        bench.events += bench.engine.poll()
        bench.crash()
    finally:
        bench.cluster.start("slurmctld")
        bench.cluster.wait_until_idle()
    recovered = bench.engine.recover([bench.directory])  # not empty: an sbatch that was under way got through
    result = recovered[bench.directory] if recovered else bench.result()
    assert result.reason == "exited"
    assert (bench.directory / "output.log").read_text() == "ran\n"


def test_of_two_jobs_of_one_attempt_only_one_runs_it(bench: Bench) -> None:
    """As when a submission was taken in, but neither its answer nor the queue told of it."""
    bench.engine.start(bench.launch("echo ran"))
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    launch = json.loads((bench.directory / "launch.json").read_text())
    asked = msgspec.convert(launch["submission"], submission.Submission)
    bench.asked.submit(asked)
    bench.until(lambda: len(bench.jobs()) == 2)
    assert bench.result().code == 0
    assert (bench.directory / "output.log").read_text() == "ran\n"
    # Whichever came second finds nothing to do, and may come to that after the first has ended.
    bench.until(lambda: "no orders here" in (bench.directory / "supervisor.log").read_text())


def test_a_controller_that_is_away_loses_nothing_and_is_told_once(bench: Bench) -> None:
    bench.engine.start(bench.launch(GO, checkpoint_signal=None))
    bench.until_output("up")
    bench.cluster.halt("slurmctld")
    try:
        bench.until(lambda: any("does not answer" in note for note in bench.notes()))
        bench.engine.freeze(ATTEMPT)  # commands reach it all the same
        bench.engine.thaw(ATTEMPT)
        bench.engine.start(bench.launch("echo late", attempt="run-1/late/1", directory=bench.place / "late"))
        (bench.place / "go").touch()
        assert bench.result().reason == "exited"
        bench.events.clear()
    finally:
        bench.cluster.start("slurmctld")
        bench.cluster.wait_until_idle()
    assert bench.result().code == 0
    assert (bench.place / "late" / "output.log").read_text() == "late\n"
    assert sum("does not answer" in note for note in bench.notes()) <= 1


def test_what_has_not_begun_is_taken_back_at_once_and_never_runs(bench: Bench) -> None:
    bench.cluster.run("sbatch", "--nodelist=n2", "--gres=gpu:8", "--wrap", "sleep 300")
    bench.engine.start(bench.launch("echo ran"))
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    bench.engine.stop(ATTEMPT)
    result = bench.result()
    assert (result.reason, result.message) == ("stopped", "taken back before it started")
    (job,) = bench.jobs()
    bench.until(lambda: "CANCELLED" in bench.cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T"))
    assert not (bench.directory / "output.log").exists()


def test_a_job_that_somebody_cancels_is_told_as_stopped_by_slurm(bench: Bench) -> None:
    bench.engine.start(bench.launch("trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.05; done"))
    bench.until_output("up")
    bench.cluster.run("scancel", *bench.jobs())
    result = bench.result()
    assert (result.reason, result.code) == ("stopped", 5)
    assert result.message.startswith("stopped by Slurm")


def test_a_job_that_slurm_refuses_never_starts_and_says_why(
    slurm: SlurmCluster, tmp_path: Path, way: str
) -> None:
    bench = Bench(slurm, tmp_path, way, partition="nowhere")
    bench.engine.start(bench.launch())
    result = bench.result()
    assert result.reason == "not-started"
    assert "invalid partition" in result.message.lower()
    assert not (bench.directory / "orders.json").exists()
    bench.engine.close()


def test_a_job_that_was_moved_elsewhere_is_stopped(bench: Bench) -> None:
    """Somebody changes where it may run before it has begun."""
    bench.cluster.run("sbatch", "--nodelist=n2", "--gres=gpu:8", "--wrap", "sleep 300")
    bench.engine.start(bench.launch("sleep 600"))
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    (job,) = bench.jobs()
    bench.cluster.run("scontrol", "update", f"jobid={job}", "reqnodelist=n3")
    result = bench.result()
    assert result.reason == "not-started"
    assert result.message == "runs on n3, was placed on n2"


def test_more_gpus_than_were_decided_are_told_once(slurm: SlurmCluster, tmp_path: Path) -> None:
    bench = Bench(slurm, tmp_path, extra=("--exclusive",))
    bench.engine.start(bench.launch())
    bench.until(lambda: any("holds 8 GPUs, and 2 were decided" in note for note in bench.notes()))
    time.sleep(2.5)
    bench.until(lambda: True)
    (bench.place / "go").touch()
    assert bench.result().code == 0
    assert sum("GPUs" in note for note in bench.notes()) == 1
    bench.engine.close()


def test_a_job_that_slurm_forgot_before_it_began_is_submitted_again(bench: Bench) -> None:
    """A slurmctld that is killed gives numbers again: this one is another job's now."""
    blocker = bench.cluster.run(
        "sbatch", "--parsable", "--nodelist=n2", "--gres=gpu:8", "--wrap", "sleep 300"
    )
    bench.engine.start(bench.launch("echo ran"))
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    bench.cluster.run("scancel", *bench.jobs())
    (bench.directory / "slurm.json").write_text(json.dumps({"job": blocker}))
    bench.crash()
    assert bench.engine.recover([bench.directory]) == {}
    bench.until(lambda: json.loads((bench.directory / "slurm.json").read_text())["job"] != blocker)
    assert "RUNNING" in bench.cluster.run("squeue", "-h", "-j", blocker, "-o", "%T")


def test_a_number_that_is_anothers_now_is_not_cancelled(bench: Bench) -> None:
    other = bench.cluster.run("sbatch", "--parsable", "--nodelist=n3", "--wrap", "sleep 300")
    bench.engine.start(bench.launch())
    bench.until_output("up")
    attempt = bench.engine._running[ATTEMPT]
    attempt.job = other
    bench.engine._cancel(attempt)
    bench.engine.stop(ATTEMPT)
    bench.result()
    assert "RUNNING" in bench.cluster.run("squeue", "-h", "-j", other, "-o", "%T")


def test_what_others_run_is_seen_with_its_user_and_gpus(bench: Bench) -> None:
    bench.cluster.run("sbatch", "--nodelist=n1,n3", "--nodes=2", "--gres=gpu:3", "--wrap", "sleep 300")
    bench.engine.start(bench.launch())
    bench.until_output("up")
    bench.until(lambda: bool(bench.engine.foreign_jobs()))
    (foreign,) = bench.engine.foreign_jobs()
    assert (foreign.user, foreign.hosts, foreign.gpus) == ("root", ("n1", "n3"), 6)
    seen = {node.node: node.others_gpus for node in bench.engine.nodes()}
    assert seen == {"hall/r1-n1": 3, "hall/r1-n2": 0, "hall/r1-n3": 3, "hall/r1-n4": 0}


def test_jobs_that_nobody_holds_are_swept_and_no_others(bench: Bench) -> None:
    """A control process was killed, and what it knew of the attempt is gone with its journal."""
    bench.engine.start(bench.launch("sleep 600"))
    bench.engine.start(bench.launch("sleep 600", attempt="run-1/held/1", directory=bench.place / "held"))
    folders = (bench.directory, bench.place / "held")
    bench.until(lambda: all((folder / "started.json").exists() for folder in folders))
    foreign = bench.cluster.run("sbatch", "--parsable", "--wrap", "sleep 300", f"--chdir={bench.place}")
    bench.crash()
    (said,) = bench.engine.sweep(bench.place, [bench.place / "held"])
    assert str(bench.directory) in said
    bench.until(lambda: (bench.directory / "result.json").exists())
    alive = bench.cluster.run("squeue", "-h", "-t", "R,PD", "-o", "%A").split()
    held = json.loads((bench.place / "held" / "slurm.json").read_text())["job"]
    assert sorted(alive) == sorted([held, foreign])
    assert bench.engine.sweep(bench.place, [bench.place / "held"]) == []


def test_what_has_not_begun_is_swept_without_ever_beginning(bench: Bench) -> None:
    bench.cluster.run("sbatch", "--nodelist=n2", "--gres=gpu:8", "--wrap", "sleep 300")
    bench.engine.start(bench.launch("echo ran"))
    bench.until(lambda: (bench.directory / "slurm.json").exists())
    bench.crash()
    assert len(bench.engine.sweep(bench.place, [])) == 1
    assert not (bench.directory / "orders.json").exists()


def test_one_question_is_asked_however_many_jobs_there_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("submit", "queue", "find", "cancel"):
        monkeypatch.setattr(bench.asked, name, _counted(asked, name, getattr(bench.asked, name)))
    for number in range(8):
        name = f"run-1/train-{number}/1"
        directory = bench.place / str(number)
        launch = bench.launch("sleep 3", attempt=name, directory=directory, nodes={"hall/r1-n2": 1})
        bench.engine.start(launch)
    began = time.monotonic()
    bench.until(lambda: sum(isinstance(event, Ended) for event in bench.events) == 8)
    assert asked.count("submit") == 8
    assert asked.count("queue") <= time.monotonic() - began + 1
    assert set(asked) == {"submit", "queue"}


def _counted(asked: list[str], name: str, call: Callable[..., object]) -> Callable[..., object]:
    def counted(*given: object) -> object:
        asked.append(name)
        return call(*given)

    return counted


def test_a_job_runs_as_the_user_who_submitted_it(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with tempfile.TemporaryDirectory() as name:  # everybody may pass, as on a shared file system
        place = Path(name)
        place.chmod(0o755)
        installed = place / "wattline" / "engines"  # may be read as well, which a checkout need not be
        shutil.copytree(Path(engines.__file__).parent, installed)
        monkeypatch.setattr(submission, "_SUPERVISOR", installed / "supervisor")
        bench = Bench(slurm, place, way, user="submitter", python=_ANYBODYS_PYTHON)
        bench.engine.start(bench.launch("id -un; touch $WATTLINE_ATTEMPT/work", user="nobody"))
        assert bench.result().code == 0
        assert (bench.directory / "output.log").read_text() == "nobody\n"
        assert (bench.directory / "work").stat().st_uid == pwd.getpwnam("nobody").pw_uid
        bench.engine.close()


def test_a_folder_that_the_user_may_not_pass_through_is_named(slurm: SlurmCluster, tmp_path: Path) -> None:
    bench = Bench(slurm, tmp_path, user="nobody")
    with pytest.raises(UnavailableError, match=f"folder {tmp_path}.*: nobody, whom the job runs as, may not"):
        bench.engine.start(bench.launch())
    bench.engine.close()
