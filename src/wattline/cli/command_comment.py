"""The comment command: say on a pull request or merge request what a check reported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from wattline.checks.posting import Api, GitHub, GitLab, Host, find_pull_request, post_comment
from wattline.checks.posting.api import check_token
from wattline.checks.reading import read_report
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.errors import UsageError

_GITHUB_API = "https://api.github.com"
_SAID = {
    "created": "commented",
    "updated": "the comment is updated",
    "unchanged": "the comment says so already",
    "quiet": "nothing worth a comment",
    "outdated": "no open pull request has this commit as its newest: nothing to say",
}


def comment_report(
    report: Path,
    *,
    repository: str | None,
    pull_request: int | None,
    head: str | None,
    commit: str | None,
    project: str | None,
    merge_request: int | None,
    as_json: bool,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Read the report, find the one comment that is ours, and make it say what the report says."""
    told = read_report(report)
    host: Host | None
    if merge_request is not None:
        if pull_request is not None or head is not None:
            raise UsageError("--merge-request is GitLab's, --pull-request and --head are GitHub's: give one")
        host = _gitlab(project, merge_request, environment)
    else:
        host = _github(repository, pull_request, head, commit, environment)
    outcome = "outdated" if host is None else post_comment(host, told)
    if as_json:
        print_json({"outcome": outcome, "pipeline": told.pipeline, "verdict": told.verdict})
    else:
        stdout_console().print(plain(f"{told.pipeline}: {_SAID[outcome]}"), soft_wrap=True)
    return 0


def _github(
    repository: str | None,
    pull_request: int | None,
    head: str | None,
    commit: str | None,
    environment: Mapping[str, str],
) -> GitHub | None:
    repository = repository or environment.get("GITHUB_REPOSITORY")
    if not repository:
        raise UsageError("which repository?", hint="--repository owner/name")
    token = check_token("GITHUB_TOKEN", environment.get("GITHUB_TOKEN"))
    api = Api(
        environment.get("GITHUB_API_URL") or _GITHUB_API,
        {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    if pull_request is None:
        if head is None or commit is None:
            raise UsageError(
                "which pull request?",
                hint="--pull-request N; or --head owner:branch with --commit, which are looked up",
            )
        pull_request = find_pull_request(api, repository, head, commit)
    return None if pull_request is None else GitHub(api, repository, pull_request)


def _gitlab(project: str | None, merge_request: int, environment: Mapping[str, str]) -> GitLab:
    project = project or environment.get("CI_PROJECT_ID")
    url = environment.get("CI_API_V4_URL")
    if not project or not url:
        raise UsageError(
            "which project of which GitLab?", hint="--project group/name, and CI_API_V4_URL as in a job"
        )
    token = check_token("GITLAB_TOKEN", environment.get("GITLAB_TOKEN"))
    return GitLab(Api(url, {"PRIVATE-TOKEN": token}), project, merge_request)
