"""The comment on a pull request or merge request: one, updated in place."""

from wattline.checks.posting.api import Api
from wattline.checks.posting.comment import Host, Outcome, post_comment
from wattline.checks.posting.github import GitHub, find_pull_request
from wattline.checks.posting.gitlab import GitLab

__all__ = ["Api", "GitHub", "GitLab", "Host", "Outcome", "find_pull_request", "post_comment"]
