"""slurmrestd, a real one: it says of a cluster what its commands say, and what is odd about it is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from metering import reply, serving
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines.slurm import SlurmClient, SlurmDownError, SlurmRefusedError, SlurmRest
from wattline.engines.slurm.cluster import Cluster
from wattline.engines.slurm.submission import Submission
from wattline.errors import UnavailableError
from wattline.facility import Slurmrestd

PATIENCE_SECONDS = 60.0


def a_submission(place: Path, **changes: object) -> Submission:
    fields: dict[str, object] = {
        "name": "run-1/train/1",
        "comment": "wattline run-1/train/1: because there is room",
        "directory": str(place),
        "output": str(place / "supervisor.log"),
        "script": "#!/bin/sh\nexec sleep 300\n",
        "cpus": 3,
        "hosts": ("n2", "n4"),
        "gpus_each": 2,
        "minutes": 7,
        "licenses": "kilowatts:3",
        "partition": "main",
    }
    return Submission(**(fields | changes))  # type: ignore[arg-type]


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class TestOnSlurm:
    pytestmark = ON_SLURM

    @pytest.mark.parametrize("way", ["url", "socket"])
    def test_it_lists_jobs_nodes_and_licenses_as_the_commands_do(
        self, slurm: SlurmCluster, tmp_path: Path, way: str
    ) -> None:
        commands, rest = SlurmClient(slurm.environment), SlurmRest(slurm.rest(way))
        slurm.run("sbatch", "--nodelist=n1", "--gres=gpu:8", "--job-name=first|one", "--wrap", "sleep 300")
        slurm.run("sbatch", "--nodelist=n1", "--gres=gpu:1", "--job-name=waits", "--wrap", "sleep 300")
        over = commands.submit(a_submission(tmp_path, script="#!/bin/sh\nexit 3\n"))
        until(lambda: commands.queue()[over].state == "FAILED")
        slurm.run("scontrol", "update", "nodename=n3", "state=drain", "reason=looked at")
        slurm.run("scontrol", "update", "nodename=n4", "state=down", "reason=lost")
        try:
            assert _settled(rest) == _settled(commands)
            assert {job.state for job in rest.queue().values()} >= {"RUNNING", "PENDING", "FAILED"}
            up = {host: node.is_up for host, node in rest.nodes().items()}
            assert up == {"n1": True, "n2": True, "n3": False, "n4": False}
            assert up == {host: node.is_up for host, node in commands.nodes().items()}
            for host, node in commands.nodes("main").items():
                assert (rest.nodes("main")[host].gpus, rest.nodes("main")[host].cpus) == (8, node.cpus)
            assert rest.nodes("nowhere") == {}
            assert rest.licenses() == commands.licenses() == {"kilowatts"}
        finally:
            slurm.cancel_all()
            slurm.resume_all()

    def test_a_node_that_does_not_answer_takes_nobody(self, slurm: SlurmCluster) -> None:
        rest = SlurmRest(slurm.rest())
        slurm.kill("n3")
        try:
            until(lambda: not rest.nodes()["n3"].is_up)
            assert rest.nodes()["n2"].is_up
        finally:
            slurm.bring_back("n3")

    def test_a_job_is_the_same_whoever_it_was_asked_of(self, slurm: SlurmCluster, tmp_path: Path) -> None:
        """Pinned, licensed, commented, bounded, and never requeued."""
        commands, rest = SlurmClient(slurm.environment), SlurmRest(slurm.rest())
        facts = []
        for asked in (commands, rest):
            job = asked.submit(a_submission(tmp_path))
            until(lambda asked=asked, job=job: asked.queue()[job].state == "RUNNING")  # type: ignore[misc]
            facts.append(_facts(slurm.run("scontrol", "-o", "show", "job", job)))
            assert asked.find("run-1/train/1", tmp_path) == job
            assert (job, str(tmp_path)) in asked.living()
            asked.cancel(job, "somebody/else/1")
            assert asked.queue()[job].state == "RUNNING"
            assert not asked.cancel_in(job, tmp_path / "elsewhere")
            asked.cancel(job, "run-1/train/1")
            until(lambda asked=asked, job=job: asked.queue()[job].state == "CANCELLED")  # type: ignore[misc]
        assert facts[0] == facts[1]
        assert facts[0] == {
            "Requeue": "0",
            "TimeLimit": "00:07:00",
            "Partition": "main",
            "ReqNodeList": "n[2,4]",
            "NodeList": "n[2,4]",
            "NumNodes": "2",
            "CPUs/Task": "3",
            "Licenses": "kilowatts:3",
            "WorkDir": str(tmp_path),
            "KillOInInvalidDependent": "Yes",
            "TresPerNode": "gres:gpu:2",
        }

    @pytest.mark.parametrize(
        "change", [{"partition": "nowhere"}, {"hosts": ("n9",)}, {"properties": {"qoss": 1}}]
    )
    def test_what_slurm_does_not_know_is_refused(
        self, slurm: SlurmCluster, tmp_path: Path, change: dict[str, object]
    ) -> None:
        with pytest.raises(SlurmRefusedError):
            SlurmRest(slurm.rest()).submit(a_submission(tmp_path, **change))

    def test_more_properties_reach_the_job(self, slurm: SlurmCluster, tmp_path: Path) -> None:
        rest = SlurmRest(slurm.rest())
        job = rest.submit(a_submission(tmp_path, properties={"nice": 17}))
        assert " Nice=17 " in slurm.run("scontrol", "-o", "show", "job", job)

    def test_a_token_that_is_none_is_said_without_repeating_it(
        self, slurm: SlurmCluster, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("SLURM_JWT=forged-token\n")
        rest = SlurmRest(replace(slurm.rest(), token_file=str(tmp_path / "token")))
        for ask in (rest.queue, rest.nodes, rest.licenses):
            with pytest.raises(SlurmDownError, match="or does not believe the token") as caught:
                ask()
            assert "forged-token" not in str(caught.value)
        with pytest.raises(SlurmDownError):
            rest.submit(a_submission(tmp_path))

    def test_a_controller_that_is_away_is_told_apart_from_a_refusal(
        self, slurm: SlurmCluster, tmp_path: Path
    ) -> None:
        rest = SlurmRest(replace(slurm.rest(), timeout_seconds=3.0))
        slurm.halt("slurmctld")
        try:
            began = time.monotonic()
            with pytest.raises(SlurmDownError):
                rest.submit(a_submission(tmp_path))
            assert time.monotonic() - began < 30.0
        finally:
            slurm.start("slurmctld")
            slurm.wait_until_idle()


def _settled(asked: Cluster) -> dict[str, object]:
    """Who does not run has nothing yet, or no longer; squeue shows what it asked for instead."""
    return {
        job.job: (job.user, job.name, (job.gpus, job.hosts) if job.state == "RUNNING" else ())
        for job in asked.queue().values()
    }


def _facts(line: str) -> dict[str, str]:
    names = [
        *("Requeue", "TimeLimit", "Partition", "ReqNodeList", "NodeList", "NumNodes", "CPUs/Task"),
        *("Licenses", "WorkDir", "KillOInInvalidDependent", "TresPerNode"),
    ]
    said = dict(part.partition("=")[::2] for part in line.split())
    assert "Comment=wattline run-1/train/1: because there is room" in line
    return {name: said[name] for name in names}


ODD: dict[str, tuple[Callable[[BaseHTTPRequestHandler], None], type[Exception], str]] = {
    "no answer": (lambda _: time.sleep(3), SlurmDownError, "timed out"),
    "not JSON": (lambda one: reply(one, b"{]"), UnavailableError, "no answer of slurmrestd"),
    "other JSON": (lambda one: reply(one, b'{"jobs": [1]}'), UnavailableError, "no answer of slurmrestd"),
    "a deep answer": (lambda one: reply(one, b"[" * 100_000), UnavailableError, "no answer of slurmrestd"),
    "another version": (lambda one: reply(one, b"none", status=404), UnavailableError, "no v0.0.38 there"),
    "a closed door": (lambda one: reply(one, b"no", status=401), UnavailableError, "lets nobody in"),
    "an unwell server": (
        lambda one: reply(one, b"\x1b[31m", status=502),
        SlurmDownError,
        "answered with 502",
    ),
    "a redirect": (lambda one: reply(one, b"", status=302, Location="http://evil/"), SlurmDownError, "302"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_server_is_refused_in_words(name: str, tmp_path: Path) -> None:
    answer, kind, words = ODD[name]
    (tmp_path / "token").write_text("a-token")
    with serving(answer) as url:
        patience_seconds = 1.0 if name == "no answer" else 30.0
        rest = SlurmRest(
            Slurmrestd(url=url, token_file=str(tmp_path / "token"), timeout_seconds=patience_seconds)
        )
        with pytest.raises(kind, match=words) as caught:
            rest.queue()
    assert "a-token" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "two\nlines", "x" * 9000, "ümläut"])
def test_a_token_file_that_holds_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    rest = SlurmRest(Slurmrestd(url="http://127.0.0.1:9", token_file=str(tmp_path / "token")))
    with pytest.raises(UnavailableError, match=f"{tmp_path}/token"):
        rest.queue()


def test_nobody_there_is_slurm_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(SlurmDownError, match="slurmctld does not answer"):
        SlurmRest(Slurmrestd(socket=str(tmp_path / "none"))).queue()
