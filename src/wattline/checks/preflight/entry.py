"""Does the script that each phase names exist, and would it travel with the run?

Only plain `python script.py` can be told.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from wattline.checks.preflight.asking import Asking, Check

_INTERPRETERS = ("python", "python3", "bash", "sh")
_PLAIN_FLAGS = frozenset({"-u", "-B", "-E", "-I", "-O", "-OO", "-s", "-S", "-e", "-x", "-eu", "-ex", "-eux"})
_PLAIN_PATH = re.compile(r"[\w.][\w./-]*")


def check_entry_points(asking: Asking) -> Iterator[Check]:
    for name, phase in asking.pipeline.phases.items():
        try:
            script = script_of(shlex.split(phase.run))
        except ValueError as error:
            yield Check(
                check="entry",
                subject=name,
                outcome="fail",
                message=f"{phase.run!r} cannot be read as a command: {error}",
                fix="close its quotes",
                file=asking.document,
            )
            continue
        if script is None:
            continue
        is_there = (asking.folder / script).is_file()
        if is_there and asking.source is not None and posixpath.normpath(script) not in asking.source:
            yield Check(
                check="entry",
                subject=name,
                outcome="fail",
                message=f"{script} is there but not in the source bundle",
                fix="is it ignored by Git? Take it out of .gitignore",
                file=script,
            )
        elif is_there:
            yield Check(check="entry", subject=name, outcome="pass", message=f"{script} is there")
        else:
            yield Check(
                check="entry",
                subject=name,
                outcome="fail",
                message=f"{phase.run!r} names {script}, which is not in {asking.folder}",
                fix="name a script that is there, from the pipeline's folder",
                file=asking.document,
            )


def script_of(words: list[str]) -> str | None:
    """The script among a command's words, where it stands as a plain path inside the pipeline's folder.

    Anything else could be right for reasons that only a shell knows: an option that takes the next word, a
    variable, a script that an earlier phase writes.
    """
    if not words or Path(words[0]).name not in _INTERPRETERS:
        return None
    script = next((word for word in words[1:] if word not in _PLAIN_FLAGS), "")
    made_here = PurePosixPath(script).parts[:1] == ("out",)
    return script if _PLAIN_PATH.fullmatch(script) and not made_here else None
