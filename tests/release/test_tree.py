"""Does a folder come back from the objects as it was?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.errors import RefusedError, UnavailableError
from wattline.release.index import encode_index
from wattline.release.tree import (
    Limits,
    materialise_tree,
    read_tree,
    store_survey,
    survey_folder,
    walk_folder,
)
from wattline.store import ObjectStore

LIMITS = Limits(files=5, file_bytes=10, total_bytes=25, hint="smaller")

names = st.sampled_from(["a", "b", "c.py", "däta", "with space", "-rf"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
contents = st.dictionaries(paths, st.tuples(st.binary(max_size=20), st.booleans()), max_size=5)


def write_folder(folder: Path, files: dict[str, tuple[bytes, bool]]) -> dict[str, tuple[bytes, bool]]:
    """Write what fits: a path below a file cannot be written."""
    written = {}
    for path, (data, executable) in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            continue
        (folder / path).chmod(0o755 if executable else 0o644)
        written[path] = (data, executable)
    return written


def read_folder(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def store(folder: Path, objects: ObjectStore, limits: Limits = LIMITS) -> str:
    survey = survey_folder(folder, walk_folder(folder, lambda _: False), limits)
    assert survey.unfit == ()
    return store_survey(folder, survey, objects).digest


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(contents)
def test_a_folder_comes_back_byte_for_byte(files: dict[str, tuple[bytes, bool]]) -> None:
    limits = Limits(files=100, file_bytes=100, total_bytes=1000, hint="")
    with tempfile.TemporaryDirectory() as name:
        root, objects = Path(name), ObjectStore(Path(name) / "objects")
        (root / "source").mkdir()
        written = write_folder(root / "source", files)
        digest = store(root / "source", objects, limits)
        materialise_tree(digest, objects, root / "target")
        (root / "target").mkdir(exist_ok=True)
        assert read_folder(root / "target") == written
        assert store(root / "target", objects, limits) == digest


def test_links_come_back_as_links(tmp_path: Path, objects: ObjectStore) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "file").write_text("x")
    (source / "deep" / "up").symlink_to("../file")
    (source / "folder").symlink_to("deep")
    digest = store(source, objects)
    materialise_tree(digest, objects, tmp_path / "target")
    materialise_tree(digest, objects, tmp_path / "target")
    assert (tmp_path / "target" / "deep" / "up").readlink() == Path("../file")
    assert (tmp_path / "target" / "folder" / "up").read_text() == "x"


def test_a_repeat_mends_what_was_altered_and_leaves_the_rest(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    digest = store(folder, objects, Limits(files=9, file_bytes=99, total_bytes=999, hint=""))
    target = tmp_path / "target"
    materialise_tree(digest, objects, target)
    untouched = (target / "train.py").stat()
    (target / "params.yaml").write_text("rate: 9.9\n")
    (target / "data" / "corpus.txt").chmod(0o777)
    (target / "mine.txt").write_text("mine")
    materialise_tree(digest, objects, target)
    assert (target / "params.yaml").read_text() == "rate: 0.1\n"
    assert (target / "data" / "corpus.txt").stat().st_mode & 0o777 == 0o644
    assert (target / "mine.txt").read_text() == "mine"
    assert (target / "train.py").stat().st_ino == untouched.st_ino


def test_what_was_put_in_place_can_be_changed_without_changing_the_objects(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    tree = read_tree(
        store(folder, objects, Limits(files=9, file_bytes=99, total_bytes=999, hint="")), objects
    )
    materialise_tree(tree.digest, objects, tmp_path / "target")
    with (tmp_path / "target" / "train.py").open("a") as file:
        file.write("more")
    for stored in tree.files:
        objects.verify(stored.digest)


def test_nothing_is_written_through_a_link_that_lies_in_the_target(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    digest = store(folder, objects, Limits(files=9, file_bytes=99, total_bytes=999, hint=""))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "victim").write_text("untouched")
    target = tmp_path / "target"
    target.mkdir()
    (target / "train.py").symlink_to(tmp_path / "victim")
    (target / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="not a folder of its own"):
        materialise_tree(digest, objects, target)
    (target / "data").unlink()
    materialise_tree(digest, objects, target)
    assert (tmp_path / "victim").read_text() == "untouched"
    assert not (target / "train.py").is_symlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_altered_or_missing_object_is_never_put_in_place(
    tmp_path: Path, folder: Path, objects: ObjectStore
) -> None:
    tree = read_tree(
        store(folder, objects, Limits(files=9, file_bytes=99, total_bytes=999, hint="")), objects
    )
    kept = objects.path(tree.files[-1].digest)
    kept.chmod(0o644)
    kept.write_bytes(b"other")
    with pytest.raises(UnavailableError, match="damaged"):
        materialise_tree(tree.digest, objects, tmp_path / "target")
    assert not (tmp_path / "target" / tree.files[-1].path).exists()
    kept.unlink()
    with pytest.raises(UnavailableError, match="is not in"):
        materialise_tree(tree.digest, objects, tmp_path / "target")


def test_a_wrong_index_is_found_before_anything_is_written(tmp_path: Path, objects: ObjectStore) -> None:
    digest = objects.put_bytes(
        encode_index([], []).replace(b'"links":[]', b'"links":[{"path":"a","target":"/"}]')
    )
    with pytest.raises(UnavailableError, match="leads out"):
        materialise_tree(digest, objects, tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [([1] * 6, "more than 5 files"), ([11], "at most 10 B"), ([9, 9, 9], "more than 25 B in all")],
)
def test_each_limit_is_kept_before_anything_is_stored(
    tmp_path: Path, objects: ObjectStore, sizes: list[int], message: str
) -> None:
    for number, size in enumerate(sizes):
        (tmp_path / "source").mkdir(exist_ok=True)
        (tmp_path / "source" / str(number)).write_bytes(b"x" * size)
    with pytest.raises(RefusedError, match=message) as refused:
        store(tmp_path / "source", objects)
    assert refused.value.hint == "smaller"
    assert not (tmp_path / "objects").exists()


@pytest.mark.parametrize("sizes", [[1] * 5, [10], [10, 10, 5]])
def test_exactly_at_the_limit_is_allowed(tmp_path: Path, objects: ObjectStore, sizes: list[int]) -> None:
    (tmp_path / "source").mkdir()
    for number, size in enumerate(sizes):
        (tmp_path / "source" / str(number)).write_bytes(b"x" * size)
    assert len(read_tree(store(tmp_path / "source", objects), objects).files) == len(sizes)
