"""A server as people run it: they leave, it goes on; it leaves, another goes on; the same words as here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.looking import Outcome, Wattline
from cli.running import WATTLINE, Desk, assert_nothing_is_left, kill, model_of, wait_until
from postgres import PostgresServer


class Fleet:
    """Servers on one state folder, and a client that knows nothing but an address."""

    def __init__(self, desk: Desk, client_home: Path, wattline: Wattline, patch: pytest.MonkeyPatch) -> None:
        self.desk, self._client_home = desk, client_home
        self._wattline, self._patch = wattline, patch
        self.logs: list[Path] = []
        self._processes: list[subprocess.Popen[str]] = []

    def serve(self, *more: str) -> subprocess.Popen[str]:
        log = self.desk.folder.parent / f"server-{len(self.logs)}.log"
        policy = self.desk.folder / "policy.yaml"
        known = ["--policy", str(policy)] if policy.exists() else []
        with log.open("w") as file:
            process = subprocess.Popen(
                [str(WATTLINE), "serve", "--listen", "127.0.0.1:0", "--facility", "lab", *known, *more],
                env={**os.environ, "WATTLINE_HOME": str(self.desk.home), "NO_COLOR": "1"},
                stdout=subprocess.DEVNULL,
                stderr=file,
                text=True,
            )
        self.logs.append(log)
        self._processes.append(process)
        wait_until(lambda: "listens on" in log.read_text(), process)
        return process

    def url(self, number: int = -1) -> str:
        found = re.search(r"http://\S+", self.logs[number].read_text())
        assert found is not None
        return found[0]

    def says(self, what: str, number: int = -1) -> None:
        wait_until(lambda: what in self.logs[number].read_text(), self._processes[number])

    def ask(self, *words: str, number: int = -1, token: str | None = None) -> Outcome:
        """A command against a server, from a machine without its state."""
        with self._patch.context() as patch:
            patch.setenv("WATTLINE_HOME", str(self._client_home))
            patch.setenv("WATTLINE_URL", self.url(number))
            if token is not None:
                patch.setenv("WATTLINE_TOKEN", token)
            return self._here(patch, words)

    def here(self, *words: str) -> Outcome:
        """The same command where the state folder is."""
        with self._patch.context() as patch:
            patch.setenv("WATTLINE_HOME", str(self.desk.home))
            return self._here(patch, words)

    def _here(self, patch: pytest.MonkeyPatch, words: tuple[str, ...]) -> Outcome:
        patch.setenv("COLUMNS", "110")
        patch.chdir(self.desk.folder)
        return self._wattline(*words)

    def submit(self, number: int = -1) -> str:
        ran = self.ask("submit", "--output", "json", number=number)
        assert ran.code == 0, ran.err
        return str(ran.json["run_id"])

    def has_saved(self) -> bool:
        return self.desk.found("sites/*/checkpoints/*/train/checkpoints/step-*")

    def wait(self, run: str, number: int = -1) -> dict[str, Any]:
        def ended() -> bool:
            ran = self.ask("status", run, "--output", "json", number=number)
            return ran.code == 0 and ran.json["ended_at"] is not None

        wait_until(ended)
        told: dict[str, Any] = self.here("status", run, "--output", "json").json
        return told

    def leave(self, process: subprocess.Popen[str]) -> None:
        """Ask a server to leave; it does, and no log has a traceback."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert not any("Traceback" in log.read_text() for log in self.logs)

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def fleet(desk: Desk, tmp_path: Path, wattline: Wattline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    fleet = Fleet(desk, tmp_path / "client", wattline, monkeypatch)
    yield fleet
    fleet.close()


def without_times(value: Any) -> Any:
    """Of two answers what must be the same: not the moment of asking, nor how long a lease lasts."""
    if isinstance(value, dict):
        moving = {"as_of", "at", "expires_at", "age_seconds", "reaches_at"}
        return {name: without_times(each) for name, each in value.items() if name not in moving}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def test_the_same_words_objects_and_exit_codes_as_here(fleet: Fleet) -> None:
    fleet.desk.training(steps=3, seconds=0.05)
    server = fleet.serve()
    wait_until(lambda: "conducted by" in fleet.ask("status").out)
    assert "no run was ever submitted" in fleet.ask("status").out
    ran = fleet.ask("submit", "--wait", "--output", "json")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    run = ran.json["run_id"]
    ended_at = str(fleet.here("status", run, "--output", "json").json["ended_at"])
    for words in [
        ("status",),
        ("explain", "train", "--at", ended_at, "--if", "policy=default"),
        ("explain", run, "--at", ended_at),
        ("explain", "train", "--at", "2001-01-01"),
        ("status", run),
        ("explain",),
        ("explain", "train"),
        ("logs", f"{run}/prepare"),
        ("report",),
        ("cancel", "train"),
        ("pause", run),
        ("status", "nothing"),
        ("explain", "trian"),
        ("report", "--team", "nobody"),
        ("report", "--week", "whenever"),
        ("logs", "train", "--attempt", "7"),
    ]:
        there, here = fleet.ask(*words), fleet.here(*words)
        assert there.code == here.code, (words, there, here)
        if there.code == 0 and words[0] != "report":  # its first line says how much of the week is gone
            assert there.out.split() == here.out.split(), words
        elif there.code:
            assert there.err.splitlines()[0] == here.err.splitlines()[0], words
        there, here = fleet.ask(*words, "--output", "json"), fleet.here(*words, "--output", "json")
        assert there.code == here.code, words
        if there.out:
            assert without_times(json.loads(there.out)) == without_times(json.loads(here.out)), words
    fleet.leave(server)
    assert_nothing_is_left(fleet.desk)


def test_a_check_is_held_against_a_servers_queue(fleet: Fleet, tmp_path: Path) -> None:
    fleet.desk.training(steps=3, seconds=0.05)
    server = fleet.serve()
    fleet.says("conducts lab")
    run = fleet.submit()
    fleet.wait(run)
    kept = tmp_path / "queue.json"
    wrote = fleet.ask("snapshot", str(kept), "--output", "json")
    assert (wrote.code, wrote.json["jobs"]) == (0, len(fleet.desk.state().jobs)), wrote.err
    said = [
        fleet.ask("check", "--output", "json").json,
        fleet.here("check", "--against", fleet.url(), "--output", "json").json,
        fleet.here("check", "--against", str(kept), "--output", "json").json,
    ]
    assert {one["verdict"] for one in said} == {"pass"}
    assert all(one["against"].startswith("lab, ") for one in said)
    assert fleet.ask("check", "--facility", "lab", "--output", "json").json["against"] == "lab, empty"
    nowhere = fleet.here("check", "--against", "http://127.0.0.1:9", "--output", "json")
    assert (nowhere.code, "cannot be reached" in nowhere.err) == (3, True)
    fleet.leave(server)


def test_a_server_that_is_asked_to_leave_lets_jobs_save_and_the_next_goes_on(fleet: Fleet) -> None:
    fleet.desk.training(steps=600, seconds=0.1)
    expected = fleet.desk.by_hand()
    first = fleet.serve()
    run = fleet.submit()
    wait_until(fleet.has_saved, first)
    fleet.leave(first)
    state = fleet.desk.state()
    assert not state.holding
    assert [job.asked for job in state.jobs.values() if job.asked] == []
    fleet.desk.hurry()
    second = fleet.serve()
    assert fleet.wait(run)["status"] == "succeeded"
    endings = [past.ending for past in fleet.desk.state().jobs[f"{run}/train"].past]
    assert endings == ["paused", "succeeded"]
    result = fleet.ask("submit", "--wait", "--output", "json", "--key", "again")
    assert model_of(result.json) == expected
    fleet.leave(second)
    assert_nothing_is_left(fleet.desk)


def test_one_that_stands_by_takes_submissions_and_takes_over(fleet: Fleet) -> None:
    fleet.desk.training(steps=600, seconds=0.1)
    expected = fleet.desk.by_hand()
    first = fleet.serve()
    fleet.says("conducts lab")
    second = fleet.serve()
    fleet.says("stands by")
    run = fleet.submit(number=1)
    fleet.says(f"{run} was submitted", number=0)
    wait_until(fleet.has_saved, first)
    kill(first)
    fleet.desk.hurry()
    fleet.says("conducts lab", number=1)
    assert fleet.wait(run)["status"] == "succeeded"
    result = fleet.here("status", run, "--output", "json").json
    assert [attempt["ending"] for attempt in result["phases"][1]["attempts"]] == ["lost", "succeeded"]
    released = next(fleet.desk.home.glob("releases/small/staging/current/artifacts/model.npy"))
    assert hashlib.sha256(released.read_bytes()).hexdigest() == expected
    fleet.leave(second)
    assert_nothing_is_left(fleet.desk)


def test_a_token_is_asked_for_once_there_is_one(fleet: Fleet) -> None:
    fleet.desk.training(steps=1, seconds=0.0)
    made = fleet.here("token", "create", "ci", "--role", "submitter", "--project", "lab")
    secret = made.out.strip()
    assert secret.startswith("wl_")
    assert secret not in fleet.here("token", "list", "--output", "json").out
    server = fleet.serve()
    refused = fleet.ask("submit")
    assert refused.code == 3
    assert "token: none was given" in refused.err
    ran = fleet.ask("submit", "--wait", "--output", "json", token=secret)
    assert ran.code == 0, ran.err
    assert fleet.here("status", ran.json["run_id"], "--output", "json").json["submitted_by"] == "ci"
    stray = fleet.here("token", "create", "fra", "--role", "agent", "--site", "atlantis")
    assert (stray.code, "site 'atlantis' is not known here" in stray.err) == (2, True)
    assert fleet.here("token", "revoke", "ci").code == 0
    wait_until(lambda: fleet.ask("status", token=secret).code == 3)
    fleet.leave(server)
    assert secret not in (fleet.desk.folder.parent / "server-0.log").read_text()


@pytest.mark.needs("initdb")
def test_two_servers_on_postgresql_do_as_on_sqlite(
    fleet: Fleet, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_DATABASE", postgres.empty_store())
    fleet.desk.training(steps=600, seconds=0.1)
    first, second = fleet.serve(), fleet.serve()
    fleet.says("conducts lab", number=0)
    fleet.says("stands by", number=1)
    run = fleet.submit(number=1)
    wait_until(fleet.has_saved, first)
    kill(first)
    fleet.desk.hurry()
    fleet.says("conducts lab", number=1)
    assert fleet.wait(run)["status"] == "succeeded"
    fleet.leave(second)
    assert "never-to-be-printed" not in "".join(log.read_text() for log in fleet.logs)


@pytest.mark.needs("initdb")
def test_a_database_that_goes_away_and_comes_back_loses_nothing(
    fleet: Fleet, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_DATABASE", postgres.empty_store())
    fleet.desk.training(steps=600, seconds=0.1)
    server = fleet.serve()
    fleet.says("conducts lab")
    run = fleet.submit()
    wait_until(fleet.has_saved, server)
    postgres.kill()
    postgres.start()
    fleet.desk.hurry()
    assert fleet.wait(run)["status"] == "succeeded"
    fleet.leave(server)


def test_what_cannot_be_listened_on_is_told(fleet: Fleet) -> None:
    beyond = fleet.here("serve", "--listen", "0.0.0.0:0")
    assert beyond.code == 2
    assert "loopback only" in beyond.err
    assert fleet.here("serve", "--listen", "nowhere").code == 2
    assert fleet.here("serve", "--facility", "missing.yaml").code in (2, 3)
