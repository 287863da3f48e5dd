"""What code does a run consist of?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wattline.errors import RefusedError, UnavailableError
from wattline.release import Bundle, bundle_source, materialise_bundle, read_bundle
from wattline.store import ObjectStore

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={**os.environ, **IDENTITY},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return git(folder, "rev-parse", "HEAD")


def paths_of(bundle: Bundle) -> list[str]:
    return [file.path for file in bundle.files]


def test_outside_git_everything_but_clutter_and_data_is_source(folder: Path, objects: ObjectStore) -> None:
    for clutter in (
        ".venv/x",
        "a/__pycache__/x",
        ".wattline/x",
        "b/node_modules/x",
        "checkpoints/x",
        "out/x",
    ):
        (folder / clutter).parent.mkdir(parents=True)
        (folder / clutter).write_text("clutter")
    (folder / "a" / "checkpoints").mkdir()
    (folder / "a" / "checkpoints" / "code.py").write_text("x = 1\n")
    bundle = bundle_source(folder, objects, exclude=["./data/"])
    assert paths_of(bundle) == ["a/checkpoints/code.py", "params.yaml", "train.py", "wattline.yaml"]
    assert (bundle.commit, bundle.dirty) == (None, None)


def test_a_clean_work_tree_is_bundled_with_its_commit(
    folder: Path, objects: ObjectStore, tmp_path: Path
) -> None:
    (folder / ".gitignore").write_text("*.secret\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("train.py")
    commit = commit_all(folder)
    (folder / "key.secret").write_text("hidden")
    bundle = bundle_source(folder, objects, exclude=["data/corpus.txt"])
    assert paths_of(bundle) == [".gitignore", "params.yaml", "run.sh", "train.py", "wattline.yaml"]
    assert [link.path for link in bundle.links] == ["link"]
    assert (bundle.commit, bundle.dirty) == (commit, False)
    materialise_bundle(bundle.digest, objects, tmp_path / "site")
    assert os.access(tmp_path / "site" / "run.sh", os.X_OK)
    assert read_bundle(bundle.digest, objects).files == bundle.files


def test_the_digest_depends_on_content_alone(folder: Path, objects: ObjectStore) -> None:
    before = bundle_source(folder, objects)
    commit_all(folder)
    assert bundle_source(folder, objects).digest == before.digest
    (folder / "train.py").write_text("print('other')\n")
    assert bundle_source(folder, objects).digest != before.digest


@pytest.mark.parametrize("change", ["edit", "new", "delete", "stage", "mode"])
def test_any_difference_from_the_commit_makes_it_dirty(
    folder: Path, objects: ObjectStore, change: str
) -> None:
    commit_all(folder)
    if change == "edit":
        (folder / "train.py").write_text("print('edited')\n")
    elif change == "new":
        (folder / "new.py").write_text("x = 1\n")
    elif change == "delete":
        (folder / "train.py").unlink()
    elif change == "stage":
        (folder / "train.py").write_text("print('staged')\n")
        git(folder, "add", "train.py")
    else:
        (folder / "train.py").chmod(0o755)
    bundle = bundle_source(folder, objects)
    assert bundle.dirty is True
    assert ("new.py" in paths_of(bundle)) == (change == "new")
    assert ("train.py" in paths_of(bundle)) == (change != "delete")


def test_data_and_results_make_nothing_dirty(folder: Path, objects: ObjectStore) -> None:
    commit_all(folder)
    (folder / "data" / "corpus.txt").write_text("another story\n")
    (folder / "out").mkdir()
    (folder / "out" / "model.bin").write_text("weights")
    bundle = bundle_source(folder, objects, exclude=["data/corpus.txt"])
    assert bundle.dirty is False
    assert "out/model.bin" not in paths_of(bundle)


def test_a_folder_inside_a_work_tree_is_bundled_alone(folder: Path, objects: ObjectStore) -> None:
    inner = folder / "models" / "é"
    inner.mkdir(parents=True)
    (inner / "model.py").write_text("x = 1\n")
    commit = commit_all(folder)
    (folder / "train.py").write_text("print('edited')\n")
    bundle = bundle_source(inner, objects)
    assert (paths_of(bundle), bundle.commit, bundle.dirty) == (["model.py"], commit, False)
    (inner / "model.py").write_text("x = 2\n")
    assert bundle_source(inner, objects).dirty is True


def test_a_folder_that_git_ignores_is_bundled_as_if_there_were_no_git(
    folder: Path, objects: ObjectStore
) -> None:
    (folder / ".gitignore").write_text("demo/\n")
    commit_all(folder)
    (folder / "demo").mkdir()
    (folder / "demo" / "train.py").write_text("x = 1\n")
    bundle = bundle_source(folder / "demo", objects)
    assert (paths_of(bundle), bundle.commit, bundle.dirty) == (["train.py"], None, None)


def test_before_the_first_commit_there_is_none_to_name(folder: Path, objects: ObjectStore) -> None:
    git(folder, "init", "--quiet")
    bundle = bundle_source(folder, objects)
    assert (bundle.commit, bundle.dirty) == (None, True)
    assert "train.py" in paths_of(bundle)


def test_submodules_and_repositories_inside_are_taken_along(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "layer.py").write_text("x = 1\n")
    commit_all(library)
    commit_all(folder)
    git(folder, "submodule", "--quiet", "add", str(library), "library")
    (folder / "vendored").mkdir()
    (folder / "vendored" / "tool.py").write_text("x = 1\n")
    commit_all(folder / "vendored")
    assert {"library/layer.py", "vendored/tool.py"} <= set(paths_of(bundle_source(folder, objects)))


def test_no_hook_or_monitor_of_the_repository_runs(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    commit_all(folder)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(trap))
    for hook in ("post-index-change", "post-checkout", "pre-commit"):
        (folder / ".git" / "hooks" / hook).symlink_to(trap)
    (folder / "train.py").write_text("print('edited')\n")
    assert bundle_source(folder, objects).dirty is True
    assert not (tmp_path / "sprung").exists()


def test_the_caller_s_git_environment_does_not_matter(
    tmp_path: Path, folder: Path, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = commit_all(folder)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    bundle = bundle_source(folder, objects)
    assert (bundle.commit, bundle.dirty) == (commit, False)


def test_without_git_installed_the_folder_is_walked(
    tmp_path: Path, folder: Path, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(folder)
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = bundle_source(folder, objects)
    assert (bundle.commit, bundle.dirty) == (None, None)
    assert "train.py" in paths_of(bundle)
    assert not any(path.startswith(".git/") for path in paths_of(bundle))


def test_a_broken_repository_is_not_taken_for_none(folder: Path, objects: ObjectStore) -> None:
    commit_all(folder)
    (folder / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(UnavailableError, match="git ls-files"):
        bundle_source(folder, objects)


@pytest.mark.parametrize(
    ("name", "target"), [("link", "/etc/passwd"), ("link", "../outside"), ("data/link", "../../outside")]
)
def test_a_link_that_leads_out_is_refused(folder: Path, objects: ObjectStore, name: str, target: str) -> None:
    (folder / name).symlink_to(target)
    with pytest.raises(RefusedError, match="leads out"):
        bundle_source(folder, objects)


@pytest.mark.parametrize("name", [b"new\nline", b"bell\x07", b"not-utf8-\xff", "\u202edecoy".encode()])
@pytest.mark.parametrize("tracked", [True, False])
def test_a_name_that_hides_something_is_refused(
    folder: Path, objects: ObjectStore, name: bytes, tracked: bool
) -> None:
    (folder / os.fsdecode(name)).write_text("x")
    if tracked:
        commit_all(folder)
    with pytest.raises(RefusedError, match="control character"):
        bundle_source(folder, objects)


def test_a_pipe_is_refused_and_not_waited_for(folder: Path, objects: ObjectStore) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(RefusedError, match="'pipe' is a pipe"):
        bundle_source(folder, objects)


def test_a_large_file_is_data(folder: Path, objects: ObjectStore) -> None:
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    with pytest.raises(RefusedError, match=r"weights\.bin") as refused:
        bundle_source(folder, objects)
    assert "data:" in (refused.value.hint or "")
    assert bundle_source(folder, objects, exclude=["weights.bin"]).files


def test_what_pins_dependencies_is_pointed_out(folder: Path, objects: ObjectStore) -> None:
    for name in ("uv.lock", "requirements-dev.txt", "conda-lock.yml", "locksmith.py"):
        (folder / name).write_text("x")
    locks = [file.path for file in bundle_source(folder, objects).lock_files]
    assert locks == ["conda-lock.yml", "requirements-dev.txt", "uv.lock"]
