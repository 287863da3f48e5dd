"""Who may do what: tokens that are forged, expired, revoked, of another project or of too small a role."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.conftest import wait_until_conducting
from api.serving import PIPELINE, Running, serving
from wattline.api.listening import open_socket
from wattline.errors import UsageError
from wattline.live import Home
from wattline.plane.session import Session
from wattline.store.tokens import Role


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("guarded") / "home") as running:
        wait_until_conducting(running)
        running.token = running.make_token("root", Role.OPERATOR)
        time.sleep(1.1)  # until it is known that there is a token
        yield running


def problem(answer: object) -> tuple[int, str]:
    return (answer.status, answer.headers["content-type"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("token", ["wl_forged", "", "x" * 5000, "wl_" + "A" * 43, "müll"])
def test_a_token_that_is_nobodys_opens_nothing(guarded: Running, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    plain = Running(guarded.url, guarded.home, guarded.shift)
    answer = plain.call("GET", "/api/v1/runs", headers=headers)
    assert problem(answer) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert not token or token not in answer.body.decode()


def test_expired_and_revoked_tokens_are_of_no_use(guarded: Running) -> None:
    short = guarded.make_token("short", Role.OPERATOR, ttl_seconds=0.2)
    time.sleep(0.3)
    assert guarded.call("GET", "/api/v1/runs", token=short).status == 401
    gone = guarded.make_token("gone", Role.OPERATOR)
    assert guarded.call("GET", "/api/v1/runs", token=gone).status == 200
    session = Session(Home(guarded.home))
    session.store.tokens.revoke("gone", time.time())
    session.close()
    time.sleep(1.1)
    assert guarded.call("GET", "/api/v1/runs", token=gone).status == 401


def test_a_reader_looks_and_changes_nothing(guarded: Running) -> None:
    reader = guarded.make_token("looks", Role.READER, "nlp")
    run = guarded.submit("true", project="nlp")
    guarded.wait(run, "succeeded")
    assert guarded.call("GET", f"/api/v1/runs/{run}", token=reader).status == 200
    for method, path in [
        ("POST", "/api/v1/runs"),
        ("POST", f"/api/v1/runs/{run}/cancel"),
        ("PUT", f"/api/v1/objects/{'0' * 64}"),
    ]:
        answer = guarded.call(method, path, b"", token=reader)
        assert problem(answer) == (403, "application/problem+json"), path


def test_a_token_of_one_project_neither_sees_nor_steers_anothers(guarded: Running) -> None:
    run = guarded.submit("true", name="theirs", project="vision")
    guarded.wait(run, "succeeded")
    other = guarded.make_token("other", Role.SUBMITTER, "nlp")
    listed = guarded.get("/api/v1/runs", token=other)["runs"]
    assert all(one["project"] == "nlp" for one in listed)
    forbidden = [
        ("GET", f"/api/v1/runs/{run}"),
        ("POST", f"/api/v1/runs/{run}/cancel"),
        ("GET", "/api/v1/snapshot"),
    ]
    for method, path in forbidden:
        assert guarded.call(method, path, token=other).status == 403
    body = guarded.submission("true", project="vision")
    assert guarded.call("POST", "/api/v1/runs", body, token=other).status == 403
    approved = guarded.submission("true", project="nlp") | {"approved": True}
    assert guarded.call("POST", "/api/v1/runs", approved, token=other).status == 403
    text = guarded.call("GET", "/api/v1/status", token=other, headers={"Accept": "text/plain"}).body.decode()
    assert run not in text
    assert 'wattline_jobs{project="vision"' not in guarded.call("GET", "/metrics", token=other).body.decode()
    assert 'wattline_jobs{project="vision"' in guarded.call("GET", "/metrics").body.decode()


def test_a_token_of_one_project_sees_no_release_of_another(own: Running) -> None:
    body = own.submission("mkdir -p out && echo hi > out/model.txt", name="theirs", project="vision")
    document = PIPELINE.format(name="theirs", project="vision", run="mkdir -p out && echo hi > out/model.txt")
    body["pipeline"] = own.put(f"{document}release: {{name: theirs, to: staging}}\n".encode())
    run = own.call("POST", "/api/v1/runs", body).json["run_id"]
    own.wait(run, "succeeded")
    names = {project: own.make_token(project, Role.READER, project) for project in ("vision", "nlp")}
    time.sleep(1.1)
    for project, seen in (("vision", ["theirs"]), ("nlp", [])):
        told = own.get("/api/v1/status", token=names[project])
        assert [one["name"] for one in told["releases"]] == seen
        text = own.call("GET", "/api/v1/status", token=names[project], headers={"Accept": "text/plain"}).body
        assert (b"theirs" in text) is bool(seen)
        assert (b"no run of this token's project was ever submitted" in text) is not bool(seen)


def test_a_reader_of_no_project_sees_all_and_changes_nothing(guarded: Running) -> None:
    reader = guarded.make_token("builds", Role.READER, None)
    assert guarded.get("/api/v1/snapshot", token=reader)["wattline_snapshot"] == 1
    body = guarded.submission("true", project="vision")
    assert guarded.call("POST", "/api/v1/runs", body, token=reader).status == 403


def test_events_of_one_project_do_not_tell_of_another(guarded: Running) -> None:
    run = guarded.submit("true", name="secretive", project="vision")
    guarded.wait(run, "succeeded")
    last = guarded.get("/readyz")["record"]
    other = guarded.make_token("listens", Role.READER, "nlp")
    path = f"/api/v1/events?after=0&until={last}"
    assert run in guarded.call("GET", path).body.decode()
    assert run not in guarded.call("GET", path, token=other).body.decode()


def test_every_call_that_could_change_something_is_audited_denied_ones_too(guarded: Running) -> None:
    reader = guarded.make_token("curious", Role.READER, "nlp")
    guarded.call("POST", "/api/v1/runs/nothing/cancel", token=reader)
    guarded.call("POST", "/api/v1/runs", {"pipeline": "wl_" + "S" * 43}, token="wl_" + "F" * 43)
    entries = guarded.get("/api/v1/audit")["entries"]
    assert any(one["actor"] == "curious" and one["outcome"] == "denied 403" for one in entries)
    assert any(one["actor"] == "nobody" and one["outcome"] == "denied 401" for one in entries)
    assert "SSSS" not in str(entries)
    assert "FFFF" not in str(entries)
    assert guarded.call("GET", "/api/v1/audit", token=reader).status == 403


def test_without_a_token_a_server_listens_on_loopback_only() -> None:
    with pytest.raises(UsageError, match="loopback only"):
        open_socket("0.0.0.0:0", has_tokens=False)
    open_socket("127.0.0.1:0", has_tokens=False).close()
    open_socket("0.0.0.0:0", has_tokens=True).close()


def test_who_calls_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path / "home", conducts=False, rate=1.0) as running:
        answers = [running.call("GET", "/api/v1/runs") for _ in range(40)]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused
        assert problem(refused[0]) == (429, "application/problem+json")
        assert refused[0].headers["retry-after"] == "1"
