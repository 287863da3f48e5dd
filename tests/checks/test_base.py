"""Bases in real repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.rendering.sample import BLOCKED
from wattline.checks.base import FoundBase, Standing, read_base, read_standing
from wattline.checks.reading import encode_report
from wattline.errors import UnavailableError, UsageError
from wattline.spec import read_pipeline

PIPELINE = """\
pipeline: small
model: small
owner: ada
project: nlp
data: [{{name: words, path: data/words.txt}}]
phases:
  train: {{run: python train.py, resources: {{gpus: {gpus}}}}}
"""
Make = Callable[..., None]


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, str], *gone: str) -> str:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in gone:
            (self.root / name).unlink()
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "team")


def look(folder: Path, base: str = "main", file: str = "wattline.yaml") -> FoundBase:
    with read_base(base, folder, file) as found:
        return found


def test_the_base_is_read_without_touching_the_work_tree(repository: Repository) -> None:
    first = repository.commit(
        {"a/wattline.yaml": PIPELINE.format(gpus=1), "a/data/words.txt": "w", "a/params.json": "{}"}
    )
    repository.git("switch", "-q", "-c", "change")
    repository.commit({"a/wattline.yaml": PIPELINE.format(gpus=4)})
    (repository.root / "a" / "dirty.txt").write_text("not committed")
    with read_base("main", repository.root / "a", "wattline.yaml") as found:
        assert found.commit == first
        assert found.pipeline == "a/wattline.yaml"
        assert found.document is not None
        assert read_pipeline(found.document).phases["train"].resources.gpus == 1
        beside = {path.name for path in found.document.parent.rglob("*") if path.is_file()}
        assert beside == {"wattline.yaml", "params.json"}  # no data
    assert not found.document.exists()
    assert (repository.root / "a" / "dirty.txt").exists()
    assert repository.git("branch", "--show-current") == "change"
    assert found.say == ""


def test_what_others_merged_since_is_not_counted(repository: Repository) -> None:
    first = repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    repository.git("switch", "-q", "-c", "change")
    repository.commit({"more.py": ""})
    repository.git("switch", "-q", "main")
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=8)})
    repository.git("switch", "-q", "change")
    found = look(repository.root)
    assert found.commit == first
    assert found.say == f"compared with {first[:10]}, where this left main"


def test_a_base_without_the_pipeline_says_that_it_is_added(repository: Repository) -> None:
    repository.commit({"README": "x"})
    repository.git("switch", "-q", "-c", "change")
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    found = look(repository.root)
    assert (found.pipeline, found.document, found.estimate) == (None, None, None)
    assert found.say == "main has no wattline.yaml: it is added"


def test_a_pipeline_that_git_sees_renamed_is_found(repository: Repository) -> None:
    repository.commit({"old.yaml": PIPELINE.format(gpus=1)})
    repository.git("switch", "-q", "-c", "change")
    repository.commit({"new/wattline.yaml": PIPELINE.format(gpus=2)}, "old.yaml")
    found = look(repository.root / "new")
    assert found.pipeline == "old.yaml"
    assert found.say == "old.yaml is now new/wattline.yaml"


def test_a_pipeline_that_moved_and_was_rewritten_is_found_by_its_name(repository: Repository) -> None:
    repository.commit(
        {"jobs/old.yml": PIPELINE.format(gpus=1), "jobs/broken.yaml": "pipeline: [", "x.yaml": "pipeline:"}
    )
    repository.git("switch", "-q", "-c", "change")
    other = "pipeline: small\nmodel: other\nowner: eve\nproject: cv\nphases:\n" + "".join(
        f"  p{at}: {{run: echo {at}}}\n" for at in range(40)
    )
    repository.commit({"wattline.yaml": other}, "jobs/old.yml")
    found = look(repository.root)
    assert found.pipeline == "jobs/old.yml"
    assert found.say == "pipeline small moved from jobs/old.yml to wattline.yaml"


def test_a_copy_beside_the_first_is_added_not_renamed(repository: Repository) -> None:
    repository.commit({"one.yaml": PIPELINE.format(gpus=1)})
    repository.git("switch", "-q", "-c", "change")
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    assert look(repository.root).say == "main has no wattline.yaml: it is added"


def test_a_pipeline_that_is_removed_still_has_its_base(repository: Repository) -> None:
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    repository.git("switch", "-q", "-c", "change")
    repository.commit({}, "wattline.yaml")
    found = look(repository.root)
    assert found.pipeline == "wattline.yaml"
    assert found.document is not None
    assert found.say == "wattline.yaml is removed"


def test_a_shallow_clone_without_the_base_says_how_to_get_it(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=2)})
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", f"file://{repository.root}", str(clone))
    with pytest.raises(UnavailableError, match="shallow") as told:
        look(clone, "release")
    assert "fetch-depth: 0" in str(told.value)
    assert "git fetch origin release" in str(told.value)


def test_a_branch_that_only_the_remote_has_is_found_there(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    repository.git("branch", "release")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", str(repository.root), str(clone))
    assert look(clone, "release").commit == first


def test_without_common_history_the_tip_is_the_base_and_that_is_said(repository: Repository) -> None:
    tip = repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    repository.git("switch", "-q", "--orphan", "other")
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=2)})
    found = look(repository.root)
    assert found.commit == tip
    assert found.say == "no common history with main, so compared with its tip"


@pytest.mark.parametrize(
    "ref", ["--output=/etc/passwd", "-h", "main:wattline.yaml", "a b", "", "x" * 300, "a\nb"]
)
def test_what_is_no_ref_is_never_shown_to_git(repository: Repository, ref: str) -> None:
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    with pytest.raises(UsageError, match="neither a file nor"):
        look(repository.root, ref)


def test_a_ref_that_is_not_there_is_told(repository: Repository) -> None:
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1)})
    with pytest.raises(UsageError, match="no file, commit, branch or tag"):
        look(repository.root, "nowhere")


def test_outside_of_a_repository_only_a_report_can_be_a_base(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="in no Git repository"):
        look(tmp_path)
    report = tmp_path / "report.json"
    report.write_bytes(encode_report(BLOCKED))
    found = look(tmp_path, str(report))
    assert found.estimate == BLOCKED.estimate
    assert found.say == "compared with the report of 2026-11-16T08:40:00Z"
    assert found.described(found.estimate).estimate == BLOCKED.estimate


def test_large_files_and_links_are_left_where_they_are(repository: Repository) -> None:
    (repository.root / "link").symlink_to("/etc/hostname")
    repository.commit(
        {"wattline.yaml": PIPELINE.format(gpus=1), "large.bin": "x" * 300_000, "[odd] name.py": "1"}
    )
    with read_base("main", repository.root, "wattline.yaml") as found:
        assert found.document is not None
        assert {path.name for path in found.document.parent.iterdir()} == {"wattline.yaml", "[odd] name.py"}


def test_a_hook_or_a_diff_program_of_the_repository_does_not_run(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"wattline.yaml": PIPELINE.format(gpus=1), ".gitattributes": "*.yaml diff=evil\n"})
    trap = tmp_path / "trap"
    repository.git("config", "diff.evil.command", f"touch {trap} #")
    repository.git("config", "diff.evil.textconv", f"touch {trap} #")
    repository.git("config", "core.fsmonitor", f"touch {trap} #")
    repository.git("switch", "-q", "-c", "change")
    trap.unlink(missing_ok=True)  # plain Git may have sprung it
    (repository.root / "wattline.yaml").rename(repository.root / "new.yaml")
    look(repository.root, file="new.yaml")
    assert not trap.exists()


def test_a_dirty_work_tree_is_told_with_the_file_from_the_root(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit({"a/wattline.yaml": PIPELINE.format(gpus=1)})
    folder = repository.root / "a"
    clean = Standing(file="a/wattline.yaml", commit=first, dirty=False)
    assert read_standing(folder, "wattline.yaml") == clean
    (folder / "wattline.yaml").write_text(PIPELINE.format(gpus=2))
    assert read_standing(folder, "wattline.yaml").dirty
    outside = Standing(file="wattline.yaml", commit=None, dirty=False)
    assert read_standing(tmp_path, "wattline.yaml") == outside
