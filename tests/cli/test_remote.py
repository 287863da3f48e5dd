"""Commands against a server, as people mistake them: words and exit codes, and never a secret."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.conftest import wait_until_conducting
from api.serving import Running, serving
from cli.looking import Wattline
from cli.running import WATTLINE, Desk, wait_until
from wattline.store.tokens import Role

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("guarded") / "home") as running:
        wait_until_conducting(running)
        running.token = running.make_token("root", Role.OPERATOR)
        time.sleep(1.1)  # until it is known that there is a token
        yield running


@pytest.fixture
def client(guarded: Running, wattline: Wattline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wattline:
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "client"))
    monkeypatch.setenv("WATTLINE_URL", guarded.url)
    monkeypatch.setenv("WATTLINE_TOKEN", str(guarded.token))
    return wattline


@pytest.mark.parametrize("token", ["wl_hunt\ner2", "wl_hunt er2"])
def test_a_token_that_is_none_is_a_wrong_use_and_not_shown(
    client: Wattline, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_TOKEN", token)
    ran = client("status")
    assert (ran.code, ran.out) == (2, "")
    assert "WATTLINE_TOKEN" in ran.err
    assert "er2" not in ran.err


@pytest.mark.parametrize("url", ["http://joe:hunter2@127.0.0.1:9", "http://127.0.0.1:99999", "http://[::1"])
def test_an_address_that_is_none_is_a_wrong_use(
    client: Wattline, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_URL", url)
    ran = client("status")
    assert ran.code == 2
    assert "is no address of a server" in ran.err
    assert "hunter2" not in ran.err


def test_where_one_of_two_servers_is_away_the_other_is_asked(
    client: Wattline, guarded: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_URL", f"{NOWHERE},{guarded.url}")
    ran = client("status")
    assert ran.code == 0, ran.err
    assert "conducted by" in ran.out


def test_who_may_not_submit_is_told_so_by_submit(
    client: Wattline, guarded: Running, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.training(steps=1, seconds=0.0)
    monkeypatch.setenv("WATTLINE_TOKEN", guarded.make_token("looks", Role.READER, "nlp"))
    monkeypatch.chdir(desk.folder)
    ran = client("submit")
    assert ran.code == 1
    assert "token looks has the role reader; this needs one of: agent, operator, submitter" in ran.err


def test_tokens_are_made_here_and_who_names_a_server_is_told(client: Wattline, tmp_path: Path) -> None:
    ran = client("token", "create", "ci", "--project", "nlp")
    assert ran.code == 0
    assert f"works on the state folder {tmp_path / 'client'}" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("status", "r1/train"),
        ("status", "../../etc"),
        ("status", "--site", "a/b"),
        ("site", "give-up", "a/b"),
    ],
)
def test_a_name_with_a_slash_is_a_name_that_nobody_has_and_no_path(
    guarded: Running, client: Wattline, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WATTLINE_URL", guarded.url)
    ran = client(*words)
    assert ran.code == 2
    assert f"{words[-1]!r} is not known here" in ran.err
    assert "/api/" not in ran.err


def test_who_makes_the_first_token_is_told_that_operators_need_one_too(client: Wattline) -> None:
    """Until then whoever reached the server was its operator."""
    alone = "no operator has one: `wattline token create NAME --role operator` makes it"
    assert alone in client("token", "create", "fra", "--role", "agent", "--site", "frankfurt").err
    assert alone not in client("token", "create", "ada", "--role", "operator").err
    assert alone not in client("token", "create", "ci", "--project", "nlp").err
    client("token", "revoke", "ada")
    assert alone in client("token", "create", "eve", "--role", "reader").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fra", "--role", "agent"), "an agent speaks for one site"),
        (("ada", "--role", "operator", "--site", "oslo"), "only an agent speaks for a site"),
        (("ci",), "a submitter belongs to one project"),
        (("ci", "--project", "nlp", "--expires", "0s"), "at most 366 days, got 0 s"),
    ],
)
def test_a_token_that_cannot_be_is_a_wrong_use(client: Wattline, words: tuple[str, ...], said: str) -> None:
    ran = client("token", "create", *words)
    assert ran.code == 2
    assert said in ran.err
    assert "None" not in ran.err


def test_an_agent_that_is_refused_goes_also_if_it_was_let_in_before(guarded: Running, tmp_path: Path) -> None:
    """Its home is not empty then: it could run its site without a word, and must not seem to."""
    token = guarded.make_token("frankfurt-agent", Role.AGENT, site="frankfurt")

    def start(token: str, log: Path) -> subprocess.Popen[str]:
        environment = {**os.environ, "WATTLINE_HOME": str(tmp_path / "frankfurt"), "WATTLINE_TOKEN": token}
        command = [str(WATTLINE), "agent", "--site", "frankfurt", "--server", guarded.url]
        with log.open("w") as file:
            return subprocess.Popen(command, env=environment, stderr=file, text=True)

    first = tmp_path / "first.log"
    agent = start(token, first)
    wait_until(lambda: "holds its lease" in first.read_text(), agent)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(timeout=60) == 0
    second = tmp_path / "second.log"
    agent = start("wl_" + "F" * 43, second)
    assert agent.wait(timeout=60) == 1
    assert "401: token: it is not known, has expired or was revoked" in second.read_text()
    assert "hint: set WATTLINE_TOKEN" in second.read_text()
    assert "FFF" not in second.read_text()
