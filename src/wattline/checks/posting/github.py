"""GitHub: comments of a pull request, and which pull request a checked commit belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from wattline.checks.posting.api import Api, RejectedError
from wattline.checks.posting.comment import Posted
from wattline.errors import UsageError

_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_PAGES = 50
_ACTIONS = "github-actions[bot]"  # who a workflow's own token writes as; it may not ask for its name


class GitHub:
    """The comments of one pull request."""

    def __init__(self, api: Api, repository: str, pull_request: int) -> None:
        self._api, self._repository, self._number = api, check_repository(repository), pull_request
        self._author: str | None = None

    def author(self) -> str:
        if self._author is None:
            try:
                self._author = str(self._api.ask("GET", "/user").get("login", _ACTIONS))
            except RejectedError as error:
                if error.status not in {401, 403, 404}:
                    raise
                self._author = _ACTIONS
        return self._author

    def comments(self) -> Iterator[Posted]:
        path = f"/repos/{self._repository}/issues/{self._number}/comments"
        for item in self._api.pages(path, most=_MOST_PAGES):
            author = item.get("user") or {}
            yield Posted(
                id=int(item["id"]), author=str(author.get("login")), body=str(item.get("body") or "")
            )

    def create(self, body: str) -> None:
        self._write("POST", f"/repos/{self._repository}/issues/{self._number}/comments", body)

    def update(self, comment: Posted, body: str) -> None:
        self._write("PATCH", f"/repos/{self._repository}/issues/comments/{comment.id}", body)

    def _write(self, method: str, path: str, body: str) -> None:
        try:
            self._api.ask(method, path, {"body": body})
        except RejectedError as error:
            if error.status in {401, 403}:
                error.hint = (
                    "give the job `permissions: pull-requests: write`; on behalf of a fork no job has it: "
                    "comment from a workflow_run workflow, as ci/github/wattline-comment.yml does"
                )
            raise


def find_pull_request(api: Api, repository: str, head: str, commit: str) -> int | None:
    """The open pull request whose newest commit this is; None where there is none any more.

    A run for a fork's branch does not name it, and what the run left behind is not to be believed.
    """
    owner, colon, branch = head.partition(":")
    if not owner or not colon or not branch or _COMMIT.fullmatch(commit) is None:
        raise UsageError(f"--head {head[:100]!r} at {commit[:80]!r} is no owner:branch and commit")
    path = f"/repos/{check_repository(repository)}/pulls?state=open&head={quote(head, safe=':')}"
    for item in api.pages(path, most=2):
        if (item.get("head") or {}).get("sha") == commit:
            return int(item["number"])
    return None


def check_repository(repository: str) -> str:
    if _REPOSITORY.fullmatch(repository) is None:
        raise UsageError(f"--repository {repository[:150]!r} is not written as owner/name")
    return repository
