"""Are the secrets there that the run needs, and is none written into its source?

Values are never put into a message: what is missing is named, what is found is told by its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.files import read_bytes, source_files

_LARGEST_BYTES = 1 << 20
_MOST_BYTES = 64 << 20  # of all files together
_MOST_NAMED = 20

# Each begins with a prefix that its maker chose so that it can be found; guesses by entropy cry wolf.
_TOKENS = re.compile(
    rb"(?P<aws>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)"
    rb"|(?P<github>\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{82}\b)"
    rb"|(?P<gitlab>\bglpat-[A-Za-z0-9_-]{20,255}\b)"
    rb"|(?P<huggingface>\bhf_[A-Za-z0-9]{34}\b)"
    rb"|(?P<slack>\bxox[abprs]-[0-9A-Za-z-]{10,255}\b)"
    rb"|(?P<key>-----BEGIN (?:RSA |EC |DSA |OPENSSH |ENCRYPTED )?PRIVATE KEY-----)"
)
_KINDS = {
    "aws": "an AWS access key",
    "github": "a GitHub token",
    "gitlab": "a GitLab token",
    "huggingface": "a Hugging Face token",
    "slack": "a Slack token",
    "key": "a private key",
}


@dataclass(frozen=True, slots=True)
class Found:
    file: str
    line: int
    kind: str


def check_secrets(asking: Asking) -> Iterator[Check]:
    yield from _there(asking)
    yield from _written(asking)


def _there(asking: Asking) -> Iterator[Check]:
    for name in asking.pipeline.secrets:
        if not asking.has_secrets:
            message = f"whether {name} is set is not looked at: there are no secrets here"
            yield Check(check="secrets", subject=name, outcome="skip", message=message)
            continue
        if asking.environment.get(name):
            yield Check(check="secrets", subject=name, outcome="pass", message=f"{name} is set")
            continue
        state = "empty" if name in asking.environment else "not set"
        yield Check(
            check="secrets",
            subject=name,
            outcome="fail",
            message=f"the pipeline needs {name}, which is {state} in the environment",
            fix=f"set {name} where the run is submitted, such as a masked variable of the CI project",
            file=asking.document,
        )


def _written(asking: Asking) -> Iterator[Check]:
    found = list(_find(asking))
    for one in found[:_MOST_NAMED]:
        yield Check(
            check="secrets.written",
            subject=one.file,
            outcome="warn",
            message=f"line {one.line} holds what looks like {_KINDS[one.kind]}",
            fix="revoke it, take it out, and name its variable under secrets",
            file=one.file,
            line=one.line,
        )
    if not found:
        message = "no well-known token in the source"
        yield Check(check="secrets.written", outcome="pass", message=message)


def _find(asking: Asking) -> Iterator[Found]:
    data = {entry.path for entry in asking.pipeline.data}
    left_bytes = _MOST_BYTES
    for path in source_files(asking):
        raw = None if path in data else read_bytes(asking.folder / path, min(_LARGEST_BYTES, left_bytes))
        if raw is None or b"\0" in raw[:8192]:
            continue
        left_bytes -= len(raw)
        for match in _TOKENS.finditer(raw):
            if not match[0].endswith(b"EXAMPLE"):  # as manuals print them
                line = raw.count(b"\n", 0, match.start()) + 1
                yield Found(path, line, match.lastgroup or "key")
