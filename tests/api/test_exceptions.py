"""Exceptions over HTTP: the token says who asks and who answers, and the policy's roles name tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.conftest import wait_until_conducting
from api.serving import Running, serving
from cli.looking import Wattline
from wattline.store.tokens import Role

POLICY = """\
policy: weekly
teams:
  nlp: {quota: {gpu_hours: 4}}
  vision: {quota: {gpu_hours: 9}}
roles: {capacity-approver: [grace, ada]}
"""
WANTED = {"rule": "quota", "project": "nlp", "amount": "2", "until": "3d", "because": "a deadline"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("excepting")
    (folder / "policy.yaml").write_text(POLICY)
    with serving(folder / "home", policy=str(folder / "policy.yaml")) as running:
        wait_until_conducting(running)
        yield running


@pytest.fixture(scope="module")
def tokens(house: Running) -> dict[str, str]:
    return {
        "ada": house.make_token("ada", Role.SUBMITTER, "nlp"),
        "grace": house.make_token("grace", Role.OPERATOR),
        "joan": house.make_token("joan", Role.OPERATOR),
        "vera": house.make_token("vera", Role.SUBMITTER, "vision"),
        "rita": house.make_token("rita", Role.READER, "nlp"),
    }


def ask(house: Running, token: str, **changes: Any) -> Any:
    return house.call("POST", "/api/v1/exceptions", WANTED | changes, token=token)


def test_who_asks_and_who_answers_is_said_by_their_tokens(house: Running, tokens: dict[str, str]) -> None:
    asked = ask(house, tokens["ada"])
    assert asked.status == 202, asked
    told = asked.json
    assert (told["asked_by"], told["state"], told["journaled"]) == ("ada", "asked", True)
    answer = f"/api/v1/exceptions/{told['id']}/approve"
    own = house.call("POST", answer, {}, token=tokens["ada"])
    assert (own.status, own.json["exit_code"]) == (409, 1)
    assert "ada asked for it" in own.json["detail"]
    stranger = house.call("POST", answer, {}, token=tokens["joan"])
    assert stranger.status == 409
    assert "joan is no capacity-approver" in stranger.json["detail"]
    approved = house.call("POST", answer, {"note": "this once"}, token=tokens["grace"])
    assert approved.status == 202, approved
    assert (approved.json["answered_by"], approved.json["state"]) == ("grace", "approved")
    again = house.call("POST", answer, {"note": "this once"}, token=tokens["grace"])
    assert again.status == 202  # its answer may have been lost
    changed = house.call("POST", answer.replace("approve", "deny"), {}, token=tokens["grace"])
    assert changed.status == 409
    audited = house.call("GET", "/api/v1/audit", token=tokens["grace"]).json["entries"]
    tried = {(entry["actor"], entry["action"], entry["outcome"]) for entry in audited}
    assert ("joan", "approve_exception", "denied 409") in tried
    assert ("grace", "approve_exception", "accepted") in tried


def test_the_same_key_asks_once(house: Running, tokens: dict[str, str]) -> None:
    headers = {"Idempotency-Key": "once"}
    first, second = (
        house.call("POST", "/api/v1/exceptions", WANTED, token=tokens["ada"], headers=headers)
        for _ in range(2)
    )
    assert first.json["id"] == second.json["id"]


def test_a_project_is_no_business_of_another(house: Running, tokens: dict[str, str]) -> None:
    mine = ask(house, tokens["vera"], project="vision").json["id"]
    assert ask(house, tokens["ada"]).status == 202
    assert ask(house, tokens["vera"]).status == 403
    assert house.call("POST", f"/api/v1/exceptions/{mine}/deny", {}, token=tokens["ada"]).status == 403
    seen = house.call("GET", "/api/v1/exceptions", token=tokens["rita"]).json["exceptions"]
    assert {each["project"] for each in seen} == {"nlp"}
    assert ask(house, tokens["rita"]).status == 403


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rule": "quotas"}, "did you mean quota"),
        ({"amount": None}, "how much more"),
        ({"amount": "-1"}, "above 0"),
        ({"until": "soon"}, "neither a time nor a duration"),
        ({"until": "9999d"}, "within a year"),
        ({"because": ""}, "because"),
        ({"more": 1}, "more"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_could(
    house: Running, tokens: dict[str, str], changes: dict[str, object], said: str
) -> None:
    refused = ask(house, tokens["ada"], **changes)
    assert refused.status == 422
    assert said in refused.json["detail"] + str(refused.json.get("hint"))


def test_what_nobody_asked_for_is_not_there(house: Running, tokens: dict[str, str]) -> None:
    assert house.call("POST", "/api/v1/exceptions/ex-999/deny", {}, token=tokens["grace"]).status == 404


def test_the_command_asks_a_server_in_the_same_words(
    house: Running,
    tokens: dict[str, str],
    wattline: Wattline,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("WATTLINE_URL", house.url)
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "nothing"))

    def say(who: str, *words: str) -> Any:
        monkeypatch.setenv("WATTLINE_TOKEN", tokens[who])
        return wattline("exception", *words)

    request = ("request", "--rule", "quota", "--project", "nlp", "--until", "3d", "--because", "why not")
    asked = say("ada", *request, "--amount", "1")
    assert asked.code == 0, asked.err
    assert "nlp 1 GPU-hours more a week until" in asked.out
    assert "capacity-approver answers (grace, ada)" in asked.out
    name = asked.out.partition(":")[0]
    assert say("ada", "approve", name).code == 1
    approved = say("grace", "approve", name, "-o", "json")
    assert (approved.code, approved.json["answered_by"]) == (0, "grace")
    assert f"{name}  approved" in say("ada", "list", "--project", "nlp").out
    named = say("grace", "deny", name, "--as", "joan")
    assert named.code == 2
    assert "knows you by your token" in named.err


def test_what_a_server_cannot_be_asked_says_that_it_is_not(
    wattline: Wattline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WATTLINE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "here"))
    ended = wattline("lineage", "tiny-lm")
    assert ended.code == 3
    assert f"works on the state folder {tmp_path / 'here'}" in ended.err
