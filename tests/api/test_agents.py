"""Agents at the door: who may speak for a site, and what is told to one that cannot be believed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.conftest import wait_until_conducting
from api.serving import Answer, Running, serving
from wattline.control.sites import PROTOCOL
from wattline.control.sites.messages import MOST_EVENTS
from wattline.store.tokens import Role

SITE, OTHER = "zurich", "frankfurt"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("guarded") / "home") as running:
        wait_until_conducting(running)
        running.token = running.make_token("root", Role.OPERATOR)
        time.sleep(1.1)  # until it is known that there is a token
        yield running


@pytest.fixture(scope="module")
def agent(guarded: Running) -> str:
    """A token that speaks for one site, whose agent has attached."""
    token = guarded.make_token("agent-1", Role.AGENT, site=SITE)
    number = 0
    while "lease" not in ask(guarded, token, number=number).json:
        number += 1
        assert number < 100
        time.sleep(0.1)
    return token


def ask(server: Running, token: str, *, to: str = SITE, **changes: Any) -> Answer:
    request = {"site": SITE, "agent": "agent-1", "number": int(time.time() * 1000), "clock": time.time()}
    return server.call("POST", f"/api/v1/sites/{to}/sync", request | changes, token=token)


def test_the_agent_of_a_site_holds_its_lease_and_that_is_seen(guarded: Running, agent: str) -> None:
    assert ask(guarded, agent).json["lease"]["epoch"] == 1
    (site,) = [one for one in guarded.get("/api/v1/sites")["sites"] if one["site"] == SITE]
    assert site["standing"] == "primary"
    told = guarded.get(f"/api/v1/sites/{SITE}/conditions")["agent"]
    assert (told["standing"], told["epoch"], told["agent"]) == ("primary", 1, "agent-1")
    assert guarded.get(f"/api/v1/sites/{OTHER}/conditions")["agent"] is None
    text = guarded.call("GET", f"/api/v1/sites/{SITE}/conditions", headers={"Accept": "text/plain"}).body
    assert b"stands as primary since" in text
    metrics = guarded.call("GET", "/metrics").body.decode()
    assert f'wattline_site_standing{{site="{SITE}",standing="primary"}} 1\n' in metrics
    assert f'wattline_site_standing{{site="{SITE}",standing="held_for_review"}} 0\n' in metrics


def test_a_token_of_one_site_does_not_speak_for_another(guarded: Running, agent: str) -> None:
    other = guarded.make_token("agent-2", Role.AGENT, site=OTHER)
    for site in (SITE, OTHER):
        answer = ask(guarded, other, site=site)
        assert answer.status == 403
        assert f"speaks for {OTHER}, not for {SITE}" in answer.json["detail"]
    posing = ask(guarded, other, to=OTHER)  # its own address, and somebody else's name inside
    assert posing.status == 422
    assert f"the request is of site '{SITE}'" in posing.json["detail"]
    assert ask(guarded, agent).json["lease"]["epoch"] == 1


@pytest.mark.parametrize(
    ("role", "project"), [(Role.READER, "nlp"), (Role.SUBMITTER, "nlp"), (Role.READER, None)]
)
def test_who_is_no_agent_does_not_speak_for_a_site(
    guarded: Running, agent: str, role: Role, project: str | None
) -> None:
    token = guarded.make_token(f"posing-{role}-{project}", role, project)
    assert ask(guarded, token).status == 403
    assert ask(guarded, "wl_" + "A" * 43).status == 401


def test_an_agent_neither_submits_nor_steers_nor_reads_the_audit(guarded: Running, agent: str) -> None:
    assert guarded.call("POST", "/api/v1/runs", {"pipeline": "a" * 64}, token=agent).status == 403
    assert guarded.call("POST", f"/api/v1/sites/{SITE}/reviewed", {}, token=agent).status == 403
    assert guarded.call("GET", "/api/v1/audit", token=agent).status == 403


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clock": 0.0}, "its clock is -"),
        ({"clock": 4e9}, "its clock is +"),
        ({"protocol": PROTOCOL - 1}, f"speaks protocol {PROTOCOL - 1}, this server {PROTOCOL}"),
        ({"agent": "agent-9"}, "belongs to agent agent-1, not to agent-9"),
    ],
)
def test_an_agent_that_cannot_be_believed_is_told_why_and_gets_no_lease(
    guarded: Running, agent: str, changes: dict[str, Any], words: str
) -> None:
    answer = ask(guarded, agent, **changes)
    assert answer.status == 200
    assert words in answer.json["refusal"]["say"]
    assert "lease" not in answer.json
    assert ask(guarded, agent).json["lease"]["epoch"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"clock": "noon"},
        {"holds": 1},
        {"events": [{"type": "Adopted"}]},
        {"events": [{}] * (MOST_EVENTS + 1)},
        {"after": 5, "through": 1},
    ],
)
def test_what_is_no_request_of_an_agent_changes_nothing(
    guarded: Running, agent: str, changes: dict[str, Any]
) -> None:
    answer = ask(guarded, agent, **changes)
    assert answer.status in (400, 422) or "refusal" in answer.json
    assert ask(guarded, agent).json["lease"]["epoch"] == 1


def test_a_sync_of_100_mb_is_refused(guarded: Running, agent: str, tmp_path: Path) -> None:
    body = b'{"site": "' + b"x" * 100_000_000 + b'"}'
    headers = {"Content-Type": "application/json"}
    try:
        answer = guarded.call("POST", f"/api/v1/sites/{SITE}/sync", body, token=agent, headers=headers)
    except OSError:
        return  # it does not listen to the end
    assert answer.status == 413
