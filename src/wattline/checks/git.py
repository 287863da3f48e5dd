"""Git: what does a repository hold at another commit? Asked, never changed; nothing is checked out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import UnavailableError
from wattline.release.git import ask_git

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
        said = self._ask("rev-parse", "--show-prefix")
        return None if said is None else os.fsdecode(said.rstrip(b"\n"))

    def commit(self, ref: str) -> str | None:
        """The commit that a ref means, or None. A branch that only the remote has is found there."""
        for name in (ref, f"refs/remotes/origin/{ref}"):
            said = self._ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", none_is=1)
            if said:
                return said.decode("ascii").strip()
        return None

    def merge_base(self, commit: str) -> str | None:
        """Where the work tree's branch left that commit's; None where no common history is there."""
        said = self._ask("merge-base", commit, "HEAD", none_is=1)
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
            "grep", "-z", "-l", "-E", "^pipeline:", commit, "--", ":(top)*.yaml", ":(top)*.yml", none_is=1
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

    def _ask(self, *arguments: str, none_is: int | None = None, given: bytes | None = None) -> bytes | None:
        return ask_git(self._folder, *arguments, none_is=none_is, given=given)


def _parse_tree(said: bytes) -> Iterator[Blob]:
    for entry in said.split(b"\0"):
        facts, _, path = entry.partition(b"\t")
        words = facts.decode("ascii").split()
        if len(words) == 4 and words[0] in _REGULAR and words[3].isdigit():
            yield Blob(path=os.fsdecode(path), name=words[2], size_bytes=int(words[3]))
