"""Is the image one that cannot change, down to what it is built on?

The pipeline's own image is named by its digest or refused when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.files import read_text, source_files

_RECIPE = re.compile(r"(?:Dockerfile|Containerfile)(?:\..+)?|.+\.[Dd]ockerfile")
_FROM = re.compile(r"\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_ARG = re.compile(r"\s*ARG\s+(\w+)=[\"']?([^\"'\s]+)", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{?(\w+)(?::-([^}]*))?\}?")
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


def check_image(asking: Asking) -> Iterator[Check]:
    image = asking.pipeline.image
    if image is None:
        message = "the pipeline names no image: it runs with what the site has"
        yield Check(check="image", outcome="skip", message=message)
    else:
        name, _, digest = image.partition("@sha256:")
        yield Check(check="image", outcome="pass", message=f"{name} by digest {digest[:12]}…")
    for path in source_files(asking):
        if _RECIPE.fullmatch(PurePosixPath(path).name):
            yield from _check_bases(path, read_text(asking.folder / path) or "")


def _check_bases(path: str, text: str) -> Iterator[Check]:
    loose = list(_loose_bases(text))
    for line, base in loose:
        yield Check(
            check="image.base",
            subject=path,
            outcome="warn",
            message=f"{base} is built on by its tag, which can be moved",
            fix=f"write {base}@sha256:…; `docker buildx imagetools inspect {base}` tells the digest",
            file=path,
            line=line,
        )
    if not loose:
        yield Check(check="image.base", subject=path, outcome="pass", message="every base is named by digest")


def _loose_bases(text: str) -> Iterator[tuple[int, str]]:
    """Bases by tag, with their lines; what only a build's arguments tell is left out."""
    defaults: dict[str, str] = {}
    stages = {"scratch"}
    for number, line in enumerate(text.splitlines(), start=1):
        if argument := _ARG.match(line):
            defaults[argument[1]] = argument[2]
        elif found := _FROM.match(line):
            base = _VARIABLE.sub(lambda match: defaults.get(match[1], match[2] or match[0]), found[1])
            if base.lower() not in stages and "$" not in base and _DIGEST.fullmatch(base) is None:
                yield number, base
            if found[2]:
                stages.add(found[2].lower())
