"""`wattline run` on a real Slurm: from submission to release, through crashes of either side."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.running import Desk, assert_nothing_is_left, end, kill, model_of, wait_until
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.state import AttemptStarted, Measured, Noticed

pytestmark = ON_SLURM


def a_facility(hosts: list[str], *, gpus: int = 8, **slurm: object) -> dict[str, Any]:
    """One hall whose machines are nodes of the cluster, with room and power for all of them."""
    return {
        "facility": "hall",
        "sites": {
            "hall": {
                "region": "eu",
                "tariff": {"energy": 0.1},
                "carbon": {"zone": "CH", "intensity": 45},
                "feeds": {"main": {"rating": "60kW"}},
                "loops": {"crah": {"kind": "air", "capacity": "50kW", "supply": "20C"}},
                "racks": {
                    "r1": {
                        "cap": "40kW",
                        "power": ["main"],
                        "loop": "crah",
                        "nodes": {
                            "count": len(hosts),
                            "gpu": "A100",
                            "gpus": gpus,
                            "cpus": 16,
                            "other": "1kW",
                            "hosts": hosts,
                        },
                    }
                },
                "storage": {"throughput": "2GB/s"},
                "engine": "slurm",
                "slurm": slurm,
            }
        },
    }


class Hall:
    """A desk whose runs go to the cluster."""

    def __init__(self, desk: Desk, cluster: SlurmCluster) -> None:
        self.desk, self.cluster = desk, cluster
        self.environment = {"SLURM_CONF": cluster.environment["SLURM_CONF"]}

    def facility(self, *hosts: str, gpus: int = 8, **slurm: object) -> tuple[str, str]:
        written = a_facility(list(hosts or self.cluster.nodes), gpus=gpus, **slurm)
        return "--facility", str(self.desk.write("facility.yaml", written))

    def hosts_of(self, phase: str, attempt: int = 1) -> list[str]:
        (launch,) = self.desk.home.glob(f"runs/*/{phase}/{attempt}/launch.json")
        found: list[str] = json.loads(launch.read_text())["hosts"]
        return found


@pytest.fixture
def hall(desk: Desk, slurm: SlurmCluster) -> Hall:
    return Hall(desk, slurm)


_TRAIN = {"resources": {"gpus": 4, "gpu": "A100"}, "constraints": {"peak_power": "1.2kW"}}


def test_a_pipeline_runs_on_slurm_from_submission_to_release(hall: Hall) -> None:
    desk = hall.desk
    desk.training(steps=600, seconds=0.1, train=_TRAIN)
    process = desk.start(*hall.facility(power_license="kilowatts"), environment=hall.environment)
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), process)
    (line,) = hall.cluster.run("squeue", "-h", "-t", "R", "-o", "%j|%u|%N|%b|%W|%k").splitlines()
    desk.hurry()
    name, user, node, gres, licenses, comment = line.split("|")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    ran = json.loads(out)
    assert (user, [node], gres, licenses) == ("root", hall.hosts_of("train"), "gres:gpu:4", "kilowatts:2")
    assert name == f"{ran['run_id']}/train/1"
    began = f"wattline {name}: start on hall/r1-{node}×4, at most 1.2 kW: "
    assert comment.startswith(f"{began}hall/r1 has ")
    assert model_of(ran) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_a_pipeline_runs_where_only_slurmrestd_can_be_asked(hall: Hall) -> None:
    """No command of Slurm finds the cluster from here."""
    desk, rest = hall.desk, hall.cluster.rest()
    desk.training(steps=20, seconds=0.1, train=_TRAIN)
    way = {"url": rest.url, "user": "root", "token_file": rest.token_file}
    facility = hall.facility(power_license="kilowatts", rest=way)
    process = desk.start(*facility, environment={"SLURM_CONF": "/nowhere"})
    wait_until(lambda: desk.found("sites/*/checkpoints/*/train/checkpoints/step-*"), process)
    kill(process)
    ran = desk.run("--resume", *facility, environment={"SLURM_CONF": "/nowhere"})
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (train,) = (phase for phase in ran.json["phases"] if phase["phase"] == "train")
    assert [attempt["ending"] for attempt in train["attempts"]] == ["succeeded"]
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)
    assert "Used=0" in hall.cluster.run("scontrol", "-o", "show", "licenses")


def test_a_control_process_that_is_killed_finds_its_job_still_running(hall: Hall) -> None:
    desk = hall.desk
    desk.training(steps=600, seconds=0.1, train=_TRAIN)
    facility = hall.facility()
    process = desk.start(*facility, environment=hall.environment)
    wait_until(lambda: desk.found("sites/*/checkpoints/*/train/checkpoints/step-*"), process)
    kill(process)
    (job,) = hall.cluster.run("squeue", "-h", "-t", "R", "-o", "%A").split()
    desk.hurry()
    ran = desk.run("--resume", *facility, environment=hall.environment)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (train,) = (phase for phase in ran.json["phases"] if phase["phase"] == "train")
    assert [attempt["ending"] for attempt in train["attempts"]] == ["succeeded"]
    assert json.loads(next(desk.home.glob("runs/*/train/1/slurm.json")).read_text()) == {"job": job}
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_one_interrupt_pauses_at_a_checkpoint_and_resume_finishes(hall: Hall) -> None:
    desk = hall.desk
    desk.training(steps=600, seconds=0.1, train={**_TRAIN, "checkpoint": {"every": "10min"}})
    facility = hall.facility()
    process = desk.start(*facility, environment=hall.environment)
    wait_until(lambda: desk.found("runs/*/train/1/reports.jsonl"), process)
    paused = end(process, signal.SIGINT)
    assert paused.code == 130
    (train,) = (phase for phase in paused.json["phases"] if phase["phase"] == "train")
    assert (train["state"], [one["ending"] for one in train["attempts"]]) == ("paused", ["paused"])
    desk.hurry()
    ran = desk.run("--resume", *facility, environment=hall.environment)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_two_interrupts_end_what_does_not_listen_though_nobody_looks_on(hall: Hall) -> None:
    desk = hall.desk
    stubborn = "trap '' TERM; touch out/listening; while :; do sleep 600; done"
    desk.pipeline({"train": {"run": stubborn, **_TRAIN}})
    process = desk.start(*hall.facility(), environment=hall.environment)
    wait_until(lambda: desk.found("runs/*/train/1/work/out/listening"), process)
    process.send_signal(signal.SIGINT)
    # Signals of one kind that nobody has handled yet are one signal: this one has been, when it is decided.
    wait_until(lambda: len(desk.actions("train")) > 1, process)
    assert end(process, signal.SIGINT).code == 130
    wait_until(lambda: hall.cluster.run("squeue", "-h", "-t", "R,PD,CG") == "")
    assert desk.found("runs/*/train/1/result.json")


def test_a_job_that_the_journal_does_not_hold_is_swept_at_the_next_start(hall: Hall) -> None:
    """The journal is lost with a disk, or put back from a backup; the folders of its attempts are not."""
    desk = hall.desk
    desk.pipeline({"train": {"run": "sleep 600", **_TRAIN}})
    facility = hall.facility()
    process = desk.start(*facility, environment=hall.environment)
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), process)
    kill(process)
    for file in desk.home.glob("wattline.db*"):
        file.unlink()
    desk.pipeline({"train": {"run": "true", **_TRAIN}})
    ran = desk.run(*facility, environment=hall.environment)
    assert ran.code == 0, ran.err
    assert "for an attempt that nobody holds: cancelled" in " ".join(
        event.say for event in desk.events() if isinstance(event, Noticed)
    )
    assert hall.cluster.run("squeue", "-h", "-t", "R,PD") == ""


def test_a_node_that_is_lost_costs_no_restart_and_the_job_goes_on_elsewhere(hall: Hall) -> None:
    desk = hall.desk
    desk.training(steps=600, seconds=0.1, train={**_TRAIN, "restart": {"max": 0}})
    process = desk.start(*hall.facility(), environment=hall.environment)
    wait_until(lambda: desk.found("sites/*/checkpoints/*/train/checkpoints/step-*"), process)
    (lost,) = hall.hosts_of("train")
    hall.cluster.lose(lost)
    desk.hurry()
    try:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        ran = json.loads(out)
        (train,) = (phase for phase in ran["phases"] if phase["phase"] == "train")
        assert [attempt["ending"] for attempt in train["attempts"]] == ["lost", "succeeded"]
        assert hall.hosts_of("train", attempt=2) != [lost]
        assert model_of(ran) == desk.by_hand()
        assert_nothing_is_left(desk)
    finally:
        hall.cluster.bring_back(lost)


def test_gpus_that_others_hold_are_seen_and_left_alone(hall: Hall) -> None:
    desk = hall.desk
    for node in ("n1", "n2"):
        hall.cluster.run("sbatch", f"--nodelist={node}", "--gres=gpu:8", "--wrap", "sleep 300")
    desk.pipeline({"train": {"run": "sleep 1", **_TRAIN}})
    ran = desk.run(*hall.facility("n1", "n2", "n3"), environment=hall.environment)
    assert ran.code == 0, ran.err
    assert hall.hosts_of("train") == ["n3"]
    readings = [
        reading for event in desk.events() if isinstance(event, Measured) for reading in event.readings
    ]
    assert ("hall/r1-n1", "others_gpus", 8.0) in readings
    assert ("hall/r1-n3", "others_gpus", 8.0) not in readings
    assert sum(isinstance(event, AttemptStarted) for event in desk.events()) == 1


@pytest.mark.parametrize(
    ("hosts", "gpus", "options", "said"),
    [
        (("n1", "m2"), 8, {}, "has no node of this name, which hall/r1-n2 is said to be, got m2"),
        (("n1",), 4, {}, "hall/r1-n1 is n1 in Slurm, which has 8 gpus, got 4"),
        (("n1",), 8, {"power_license": "megawatts"}, "Slurm has no license of this name, got megawatts"),
    ],
)
def test_a_facility_that_contradicts_slurm_is_refused_before_anything_starts(
    hall: Hall, hosts: tuple[str, ...], gpus: int, options: dict[str, object], said: str
) -> None:
    hall.desk.pipeline({"train": {"run": "true"}})
    ran = hall.desk.run(*hall.facility(*hosts, gpus=gpus, **options), environment=hall.environment)
    assert ran.code == 2
    assert said in ran.err
    assert not list(hall.desk.home.glob("runs/*/train/1/launch.json"))


def test_a_slurm_that_does_not_answer_at_the_start_is_named(hall: Hall, tmp_path: Path) -> None:
    """Nobody listens at the port of this one."""
    text = Path(hall.cluster.environment["SLURM_CONF"]).read_text()
    lines = ["SlurmctldPort=1" if "SlurmctldPort" in line else line for line in text.splitlines()]
    (tmp_path / "slurm.conf").write_text("\n".join([*lines, "MessageTimeout=2"]) + "\n")
    hall.desk.pipeline({"train": {"run": "true"}})
    environment = {"SLURM_CONF": str(tmp_path / "slurm.conf")}
    ran = hall.desk.run(*hall.facility(), environment=environment)
    assert ran.code == 3
    assert "slurmctld does not answer" in ran.err
