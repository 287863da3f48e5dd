"""Git: what does a repository hold at another commit? Asked, never changed; nothing is checked out.

No hook, monitor, prompt, lock or external command of the repository runs, nothing of the caller's `GIT_*` is
passed on, and waiting ends.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import UnavailableError

_TIMEOUT_SECONDS = 60.0
_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME")
_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-pager")
_REGULAR = ("100644", "100755")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A file at a commit."""

    path: str  # from the root of the repository
    name: str  # its object
    size_bytes: int


class Git:
    """A repository, asked from a folder of its work tree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prefix(self) -> str | None:
        """The folder from the root, ending with a slash but for the root; None outside of a work tree."""
        said = self._ask("rev-parse", "--show-prefix", fails_with=128)
        return None if said is None else os.fsdecode(said.rstrip(b"\n"))

    def commit(self, ref: str) -> str | None:
        """The commit that a ref means, or None. A branch that only the remote has is found there."""
        for name in (ref, f"refs/remotes/origin/{ref}"):
            said = self._ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", fails_with=1)
            if said:
                return said.decode("ascii").strip()
        return None

    def merge_base(self, commit: str) -> str | None:
        """Where the work tree's branch left that commit's; None where no common history is there."""
        said = self._ask("merge-base", commit, "HEAD", fails_with=1)
        return said.decode("ascii").strip() if said else None

    def is_shallow(self) -> bool:
        return self._ask("rev-parse", "--is-shallow-repository") == b"true\n"

    def blobs(self, commit: str, under: str) -> list[Blob]:
        """Regular files below a folder, or the one of this path; neither links nor other repositories."""
        where = ("--", under) if under else ()
        return list(
            _parse_tree(self._ask("ls-tree", "-r", "-z", "--full-tree", "--long", commit, *where) or b"")
        )

    def renamed_from(self, commit: str, path: str) -> str | None:
        """What Git takes for the former name of a file. The index is asked: no filter reads the work tree."""
        said = self._ask("diff", "--cached", "--name-status", "-z", "-M", "--diff-filter=R", commit)
        words = iter(os.fsdecode(word) for word in (said or b"").split(b"\0"))
        for status in words:
            if status.startswith("R") and (former := next(words, "")) and next(words, "") == path:
                return former
        return None

    def naming_pipelines(self, commit: str) -> list[str]:
        """YAML files with a `pipeline:` in them."""
        said = self._ask(
            "grep", "-z", "-l", "-E", "^pipeline:", commit, "--", ":(top)*.yaml", ":(top)*.yml", fails_with=1
        )
        found = [os.fsdecode(name) for name in (said or b"").split(b"\0") if name]
        return [name.partition(":")[2] for name in found]

    def read(self, blobs: Sequence[Blob]) -> Iterator[tuple[Blob, bytes]]:
        """Contents, all from one process."""
        names = "".join(f"{blob.name}\n" for blob in blobs).encode("ascii")
        said = self._ask("cat-file", "--batch", given=names) or b""
        at = 0
        for blob in blobs:
            end = said.index(b"\n", at)
            header = said[at:end].split()
            if len(header) != 3:
                raise UnavailableError(
                    f"{blob.path}: object {blob.name} is not in this clone",
                    hint="fetch it whole: a partial clone leaves objects out",
                )
            size_bytes = int(header[2])
            yield blob, said[end + 1 : end + 1 + size_bytes]
            at = end + 2 + size_bytes

    def _ask(
        self, *arguments: str, fails_with: int | None = None, given: bytes | None = None
    ) -> bytes | None:
        """What Git prints; None without Git, or when it ends with `fails_with`."""
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        try:
            done = subprocess.run(
                ["git", *_QUIET, *arguments],
                cwd=self._folder,
                env=environment,
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            return None
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"git {arguments[0]} in {self._folder} gave no answer within {_TIMEOUT_SECONDS:g} s",
                hint="check the file system the folder lies on",
            ) from error
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode == 0:
            return done.stdout
        if done.returncode == fails_with and "dubious ownership" not in said:
            return None
        raise UnavailableError(f"git {arguments[0]} in {self._folder} failed: {said[:500]}")


def _parse_tree(said: bytes) -> Iterator[Blob]:
    for entry in said.split(b"\0"):
        facts, _, path = entry.partition(b"\t")
        words = facts.decode("ascii").split()
        if len(words) == 4 and words[0] in _REGULAR and words[3].isdigit():
            yield Blob(path=os.fsdecode(path), name=words[2], size_bytes=int(words[3]))
