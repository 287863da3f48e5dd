"""The one comment of a pull request, against a server that plays the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from checks.posting.playing import TOKEN, Fault, World, playing
from checks.rendering.sample import BLOCKED, PASSED
from wattline.checks.posting import Api, GitHub, GitLab, find_pull_request, post_comment
from wattline.checks.posting.api import RejectedError, check_token
from wattline.checks.rendering import render_markdown
from wattline.checks.rendering.escaping import marker
from wattline.checks.report import Check
from wattline.errors import UsageError, WattlineError

QUIET = msgspec.structs.replace(PASSED, worth_a_comment=False)
SHA = "4f2c9d1a8b7e6f5d4c3b2a190807060504030201"


@pytest.fixture
def world() -> Iterator[World]:
    with playing() as world:
        yield world


def api(world: World, token: str = TOKEN) -> Api:
    return Api(world.url, {"Authorization": f"Bearer {token}"}, pause_seconds=0.01)


def github(world: World) -> GitHub:
    return GitHub(api(world), "acme/models", 7)


def test_the_first_report_makes_a_comment_and_the_next_updates_it(world: World) -> None:
    world.add("looks good", "ada")
    assert post_comment(github(world), BLOCKED) == "created"
    assert post_comment(github(world), BLOCKED) == "unchanged"
    assert post_comment(github(world), PASSED) == "updated"
    assert [comment["body"] for comment in world.comments] == ["looks good", render_markdown(PASSED)]
    assert any(asked.startswith("PATCH /repos/acme/models/issues/comments/1001") for asked in world.asked)


def test_its_own_comment_is_found_on_the_third_page(world: World) -> None:
    for number in range(230):
        world.add(f"{number}", "ada")
    own = world.add(render_markdown(BLOCKED))
    assert post_comment(github(world), PASSED) == "updated"
    assert own["body"] == render_markdown(PASSED)
    assert sum("page=3" in asked for asked in world.asked) == 1


def test_a_marker_that_somebody_else_wrote_is_left_alone(world: World) -> None:
    theirs = world.add(f"{marker(BLOCKED.file)}\nmine", "mallory")
    quoted = world.add(f"> {marker(BLOCKED.file)}")
    assert post_comment(github(world), BLOCKED) == "created"
    assert theirs["body"].endswith("mine")
    assert quoted["body"].startswith("> ")


def test_two_pipelines_have_two_comments(world: World) -> None:
    other = msgspec.structs.replace(BLOCKED, file="other/wattline.yaml")
    assert [post_comment(github(world), each) for each in (BLOCKED, other, BLOCKED)] == [
        "created",
        "created",
        "unchanged",
    ]


def test_a_person_s_token_asks_for_its_name(world: World) -> None:
    world.user = "ada"
    world.add(render_markdown(BLOCKED), "github-actions[bot]")
    assert post_comment(github(world), BLOCKED) == "created"
    assert world.comments[-1]["user"]["login"] == "ada"


def test_nothing_worth_a_comment_makes_none_but_brings_an_old_one_up_to_date(world: World) -> None:
    assert post_comment(github(world), QUIET) == "quiet"
    assert world.comments == []
    post_comment(github(world), BLOCKED)
    assert post_comment(github(world), QUIET) == "updated"
    assert "nothing worth a comment any more" in world.comments[0]["body"]


def test_a_fork_s_token_may_not_write_and_the_way_out_is_told(world: World) -> None:
    world.may_write = False
    with pytest.raises(RejectedError, match="403") as told:
        post_comment(github(world), BLOCKED)
    assert "ci/github/wattline-comment.yml" in str(told.value)
    assert sum(asked.startswith("POST") for asked in world.asked) == 1
    assert TOKEN not in str(told.value)


def test_a_comment_that_is_too_long_is_told_shorter(world: World) -> None:
    many = tuple(Check(check=f"c{at}", outcome="pass", message="x" * 500) for at in range(90))
    world.longest = 30_000
    assert post_comment(github(world), msgspec.structs.replace(BLOCKED, preflight=many)) == "created"
    assert "Left out" in world.comments[0]["body"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("GET", 502),
        Fault("POST", 403, {"Retry-After": "0"}, "You have exceeded a secondary rate limit"),
        Fault("POST", 429, {}, "slow down"),
        Fault("POST", 403, {"X-RateLimit-Remaining": "0"}),
    ],
)
def test_a_server_that_is_busy_is_asked_again(world: World, fault: Fault) -> None:
    world.faults.append(fault)
    assert post_comment(github(world), BLOCKED) == "created"
    assert len(world.comments) == 1


def test_a_comment_that_was_made_without_an_answer_is_not_made_twice(world: World) -> None:
    world.faults.append(Fault("POST", 502, done=True))
    assert post_comment(github(world), BLOCKED) == "unchanged"
    assert len(world.comments) == 1


def test_patience_ends(world: World) -> None:
    world.faults += [Fault("GET", 503, message="later") for _ in range(9)]
    with pytest.raises(RejectedError, match="503: later"):
        post_comment(github(world), BLOCKED)
    assert len(world.asked) == 4


def test_a_comment_that_was_removed_meanwhile_is_made_anew(world: World) -> None:
    world.add(render_markdown(BLOCKED))
    host = github(world)
    listed = list(host.comments())
    world.comments.clear()
    first = iter([iter(listed)])

    class Late(GitHub):
        def comments(self) -> Any:
            return next(first, None) or super().comments()

    assert post_comment(Late(api(world), "acme/models", 7), PASSED) == "created"


def test_a_redirect_does_not_take_the_token_elsewhere(world: World) -> None:
    with playing() as elsewhere:
        world.faults.append(Fault("GET", 301, {"Location": f"{elsewhere.url}/user"}))
        with pytest.raises(RejectedError, match="301"):
            post_comment(github(world), BLOCKED)
        assert elsewhere.asked == []


def test_a_server_that_is_not_there_is_told(world: World) -> None:
    nowhere = Api("http://127.0.0.1:9", {}, pause_seconds=0.0)
    with pytest.raises(WattlineError, match="no answer"):
        post_comment(GitHub(nowhere, "a/b", 1), BLOCKED)


def test_a_merge_request_has_one_note(world: World) -> None:
    world.user = "project_7_bot"
    notes = GitLab(Api(world.url, {"PRIVATE-TOKEN": TOKEN}), "group/models", 3)
    assert [post_comment(notes, each) for each in (BLOCKED, PASSED, PASSED)] == [
        "created",
        "updated",
        "unchanged",
    ]
    assert any(
        asked.startswith("PUT /projects/group%2Fmodels/merge_requests/3/notes/1000") for asked in world.asked
    )


def test_the_pull_request_is_the_one_whose_newest_commit_was_checked(world: World) -> None:
    world.pulls = [{"number": 3, "head": {"sha": "0" * 40}}, {"number": 4, "head": {"sha": SHA}}]
    assert find_pull_request(api(world), "acme/models", "eve:a b&state=closed", SHA) == 4
    assert "head=eve:a%20b%26state%3Dclosed" in world.asked[0]
    assert find_pull_request(api(world), "acme/models", "eve:x", "1" * 40) is None


@pytest.mark.parametrize("repository", ["acme", "acme/../x", "a/b/c", "a b/c", "/x", "x/"])
def test_a_repository_is_owner_and_name(world: World, repository: str) -> None:
    with pytest.raises(UsageError, match="owner/name"):
        GitHub(api(world), repository, 1)


def test_a_token_is_never_shown_and_goes_over_https_only() -> None:
    with pytest.raises(UsageError) as told:
        check_token("GITHUB_TOKEN", "secret\r\nX: y")
    assert "secret" not in str(told.value)
    with pytest.raises(UsageError, match="https"):
        Api("http://api.github.com", {})
    with pytest.raises(UsageError, match="is not set"):
        check_token("GITHUB_TOKEN", None)
