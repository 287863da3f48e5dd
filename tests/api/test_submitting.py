"""Work that comes in over HTTP: durable, once for each key, refused with a reason, and steered."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from api.serving import PIPELINE, Running
from wattline.api.call import Call
from wattline.api.problems import ProblemError
from wattline.api.submitting import check_same
from wattline.live import Home
from wattline.plane.session import Session
from wattline.plane.submitting import Submission, digest_of
from wattline.release.index import TreeFile, encode_index
from wattline.state import Run


def test_a_run_goes_on_without_who_submitted_it(server: Running) -> None:
    run = server.submit("python train.py")
    told = server.wait(run, "succeeded")
    assert told["project"] == "nlp"
    log = server.call("GET", f"/api/v1/runs/{run}/jobs/train/log")
    assert log.body == b"hello\n"
    assert log.headers["wattline-next-offset"] == "6"
    part = server.call("GET", f"/api/v1/runs/{run}/jobs/train/log?offset=2&limit=3")
    assert part.body == b"llo"
    result = server.get(f"/api/v1/runs/{run}/result")
    assert (result["run_id"], result["status"]) == (run, "succeeded")


def test_the_same_key_is_the_same_run_and_never_another(server: Running) -> None:
    submission, key = server.submission("true", name="keyed"), {"Idempotency-Key": "build-7"}
    first = server.call("POST", "/api/v1/runs", submission, headers=key)
    again = server.call("POST", "/api/v1/runs", submission, headers=key)
    assert (first.status, again.status) == (202, 202)
    assert again.json == first.json | {"repeated": True}
    other = server.call("POST", "/api/v1/runs", server.submission("false", name="keyed"), headers=key)
    assert other.status == 409
    assert "another submission" in other.json["detail"]
    server.wait(first.json["run_id"], "succeeded")
    settled = server.call("POST", "/api/v1/runs", submission, headers=key)
    assert settled.json["run_id"] == first.json["run_id"]
    runs = [run["run_id"] for run in server.get("/api/v1/runs")["runs"]]
    assert runs.count(first.json["run_id"]) == 1


def test_concurrent_submissions_are_all_there_once(server: Running) -> None:
    submission = server.submission("true", name="many")

    def one(number: int) -> str:
        key = {"Idempotency-Key": f"many-{number // 2}"}  # each key twice
        return str(server.call("POST", "/api/v1/runs", submission, headers=key).json["run_id"])

    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(one, range(40)))
    assert len(set(runs)) == 20
    for run in set(runs):
        server.wait(run, "succeeded")


def test_a_repeat_finds_what_is_taken_in_between_two_looks() -> None:
    submission = Submission(pipeline="0" * 64, bundle="1" * 64)
    documents = {"request": digest_of(submission)}
    taken = Run(
        run="r1", pipeline="p", project="nlp", actor="ana", submitted_at=0.0, jobs=(), documents=documents
    )
    in_journal = iter([None, taken])

    def look(_question: object) -> Future[Run | None]:
        found = Future[Run | None]()
        found.set_result(next(in_journal))
        return found

    served = SimpleNamespace(
        reader=SimpleNamespace(look=look), intake=SimpleNamespace(find_submitted=lambda _message: None)
    )
    call = cast("Call", SimpleNamespace(served=served))
    asyncio.run(check_same(call, "r1", "submit-1", submission))
    in_journal = iter([None, None])
    with pytest.raises(ProblemError, match="another submission"):
        asyncio.run(check_same(call, "r1", "submit-1", submission))


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"pipeline": "0" * 64}, 422, "not here"),
        ({"bundle": "1" * 64}, 422, "not here"),
        ({"pipeline": "x"}, 422, "body"),
        ({"surprise": 1}, 422, "surprise"),
    ],
)
def test_what_cannot_be_a_run_is_refused_with_its_reason(
    server: Running, change: dict[str, object], status: int, said: str
) -> None:
    answer = server.call("POST", "/api/v1/runs", server.submission() | change)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json["detail"]


def test_a_tree_that_is_too_large_is_refused_before_it_is_laid_out(server: Running) -> None:
    script = server.put(b"small")
    bundle = server.put(encode_index([TreeFile(path="big", sha256=script, size_bytes=65 << 20)], []))
    answer = server.call("POST", "/api/v1/runs", server.submission() | {"bundle": bundle})
    assert answer.status == 409
    assert "in all" in answer.json["detail"]


def test_a_document_that_is_wrong_is_told_line_by_line(server: Running) -> None:
    text = PIPELINE.format(name="small", project="nlp", run="true").replace("intended_use", "intended")
    answer = server.call(
        "POST", "/api/v1/runs", server.submission() | {"pipeline": server.put(text.encode())}
    )
    assert answer.status == 422
    assert "did you mean 'intended_use'" in answer.json["detail"]
    assert answer.json["exit_code"] == 2


def test_a_job_gets_of_the_servers_environment_only_what_its_operator_allowed(server: Running) -> None:
    text = PIPELINE.format(name="small", project="nlp", run="true") + "secrets: [WATTLINE_DATABASE]\n"
    answer = server.call(
        "POST", "/api/v1/runs", server.submission() | {"pipeline": server.put(text.encode())}
    )
    assert answer.status == 409
    assert "WATTLINE_DATABASE" in answer.json["detail"]
    allowed = text.replace("WATTLINE_DATABASE", "ALLOWED_SECRET")
    body = server.submission() | {"pipeline": server.put(allowed.encode())}
    assert server.call("POST", "/api/v1/runs", body).status == 202


def test_data_comes_as_a_tree_and_must_be_what_is_pinned(server: Running) -> None:
    words = server.put(b"one two\n")
    tree = server.put(encode_index([TreeFile(path="data/words.txt", sha256=words, size_bytes=8)], []))
    text = PIPELINE.format(name="reads", project="nlp", run="cat data/words.txt")
    named = server.put((text + "data: [{name: words, path: data/words.txt}]\n").encode())
    body = server.submission() | {"pipeline": named}
    assert "did not come with it" in server.call("POST", "/api/v1/runs", body).json["detail"]
    answer = server.call("POST", "/api/v1/runs", body | {"data": tree})
    assert answer.status == 202
    server.wait(answer.json["run_id"], "succeeded")
    log = server.call("GET", f"/api/v1/runs/{answer.json['run_id']}/jobs/train/log")
    assert log.body == b"one two\n"
    pinned = f"data: [{{name: words, path: data/words.txt, sha256: '{'0' * 64}'}}]\n"
    body |= {"pipeline": server.put((text + pinned).encode()), "data": tree}
    assert server.call("POST", "/api/v1/runs", body).status == 409


def test_a_run_is_cancelled_and_what_has_ended_cannot_be(server: Running) -> None:
    run = server.submit("sleep 60", name="long")
    server.wait(run, "running", "starting")
    answer = server.call("POST", f"/api/v1/runs/{run}/jobs/train/cancel")
    assert answer.status == 202
    assert answer.json == {"run_id": run, "want": "cancel", "jobs": [f"{run}/train"]}
    server.wait(run, "cancelled")
    again = server.call("POST", f"/api/v1/runs/{run}/cancel")
    assert again.status == 409
    assert "has ended" in again.json["detail"]


def test_a_log_is_followed_while_it_grows(server: Running, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    hold = "until [ -e {} ]; do sleep 0.05; done"
    talk = f"{hold.format(first)}; echo one; {hold.format(second)}; echo two"
    run = server.submit(f"timeout 120 sh -c '{talk}'", name="talks")
    server.wait(run, "running", "starting")
    first.touch()
    text, offset, path = b"", 0, f"/api/v1/runs/{run}/jobs/train/log?follow=true"
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        answer = server.call("GET", f"{path}&offset={offset}")
        assert answer.status == 200
        text, offset = text + answer.body, int(answer.headers["wattline-next-offset"])
        if text == b"one\n":  # heard while it talks
            second.touch()
        if answer.headers["wattline-over"] == "true":
            break
    assert text == b"one\ntwo\n"


def test_what_is_answered_is_on_the_disk_with_its_audit(own: Running) -> None:
    run = own.submit("true", name="stays")
    session = Session(Home(own.home))
    submitted = [entry for entry in session.store.audit.read() if entry.action == "submit_run"]
    assert [(entry.subject, entry.outcome) for entry in submitted] == [(run, "accepted")]
    session.close()
    assert own.wait(run, "succeeded")["submitted_by"] == "local"
