"""GitLab: notes of a merge request."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from wattline.checks.posting.api import Api, RejectedError
from wattline.checks.posting.comment import Posted

_MOST_PAGES = 50


class GitLab:
    """The notes of one merge request; a project is a number, or a path such as group/name."""

    def __init__(self, api: Api, project: str, merge_request: int) -> None:
        self._api = api
        self._notes = f"/projects/{quote(project, safe='')}/merge_requests/{merge_request}/notes"
        self._author: str | None = None

    def author(self) -> str:
        if self._author is None:
            self._author = str(self._api.ask("GET", "/user").get("username"))
        return self._author

    def comments(self) -> Iterator[Posted]:
        for item in self._api.pages(f"{self._notes}?sort=asc&order_by=created_at", most=_MOST_PAGES):
            author = item.get("author") or {}
            yield Posted(
                id=int(item["id"]), author=str(author.get("username")), body=str(item.get("body") or "")
            )

    def create(self, body: str) -> None:
        self._write("POST", self._notes, body)

    def update(self, comment: Posted, body: str) -> None:
        self._write("PUT", f"{self._notes}/{comment.id}", body)

    def _write(self, method: str, path: str, body: str) -> None:
        try:
            self._api.ask(method, path, {"body": body})
        except RejectedError as error:
            if error.status in {401, 403}:
                error.hint = (
                    "GITLAB_TOKEN needs the scope api and the role Reporter; a job's own token has neither"
                )
            raise
