"""What a job at a site with an agent prints is read at the server, with the same command as elsewhere."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.serving import Running
from cli.looking import Wattline
from cli.running import WATTLINE, wait_until


@pytest.fixture
def client(own: Running, wattline: Wattline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wattline:
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "client"))
    monkeypatch.setenv("WATTLINE_URL", own.url)
    return wattline


@pytest.fixture
def agents(own: Running, tmp_path: Path) -> Iterator[None]:
    """An agent at each site: wherever it is placed, what runs does so elsewhere."""
    sites = ("zurich", "frankfurt")
    processes, logs = [], [tmp_path / f"{site}.log" for site in sites]
    for site, log in zip(sites, logs, strict=True):
        environment = {**os.environ, "WATTLINE_HOME": str(tmp_path / site)}
        command = [str(WATTLINE), "agent", "--site", site, "--server", own.url]
        with log.open("w") as file:
            processes.append(subprocess.Popen(command, env=environment, stderr=file, text=True))
    for process, log in zip(processes, logs, strict=True):
        wait_until(lambda log=log: "holds its lease" in log.read_text(), process)  # type: ignore[misc]
    yield
    for process in processes:
        process.terminate()
        process.wait(timeout=60)
    assert not any("Traceback" in log.read_text() for log in logs)


@pytest.mark.usefixtures("agents")
def test_what_is_printed_at_a_site_is_read_at_the_server(
    own: Running, client: Wattline, tmp_path: Path
) -> None:
    hurry = tmp_path / "hurry"
    run = own.submit(f"echo hello; until [ -e {hurry} ]; do sleep 0.1; done; echo bye")
    own.wait(run, "running")
    wait_until(lambda: client("logs", run).out == "hello\n")
    hurry.touch()
    own.wait(run, "succeeded")
    assert client("logs", "train").out == "hello\nbye\n"
    kept = own.call("GET", f"/api/v1/runs/{run}/jobs/train/log").body
    assert kept == b"hello\nbye\n"


@pytest.mark.usefixtures("agents")
def test_only_the_site_that_ran_an_attempt_tells_what_it_printed(own: Running) -> None:
    run = own.submit("echo hello")
    told = own.wait(run, "succeeded")
    (attempt,) = told["phases"][0]["attempts"]
    other = "frankfurt" if attempt["site"] == "zurich" else "zurich"
    here = f"runs/{run}/jobs/train/attempts"
    for site, number, status in [
        (other, "1", 409),
        (attempt["site"], "2", 404),
        (attempt["site"], "one", 404),
        ("nowhere", "1", 409),
    ]:
        answer = own.call("PUT", f"/api/v1/sites/{site}/{here}/{number}/log", b"forged")
        assert answer.status == status, (site, number, answer)
    large = own.call("PUT", f"/api/v1/sites/{attempt['site']}/{here}/1/log", b"x" * (1 << 20))
    assert large.status == 413
    time.sleep(0.1)
    assert own.call("GET", f"/api/v1/runs/{run}/jobs/train/log").body == b"hello\n"
