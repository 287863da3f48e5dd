from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.errors import UnavailableError, UsageError
from wattline.store import Digest, ObjectStore, StoreRefusedError

LARGE = bytes(range(256)) * 10_000  # more than two chunks


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


def digest_of(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("content", [b"", b"small", LARGE])
def test_content_comes_back_by_its_digest(objects: ObjectStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert objects.put_file(tmp_path / "file") == digest_of(content)
    assert objects.put_bytes(content) == digest_of(content)
    with objects.open(digest_of(content)) as stored:
        assert stored.read() == content
    objects.verify(digest_of(content))


def test_an_object_lies_read_only_where_its_digest_says(objects: ObjectStore, tmp_path: Path) -> None:
    digest = objects.put_bytes(b"content")
    assert objects.path(digest) == tmp_path / "objects" / "sha256" / digest.hex[:2] / digest.hex[2:]
    assert objects.path(digest).stat().st_mode & 0o777 == 0o444
    assert list((tmp_path / "objects" / "incoming").iterdir()) == []


def test_a_copy_belongs_to_who_asked_for_it(objects: ObjectStore, tmp_path: Path) -> None:
    digest = objects.put_bytes(LARGE)
    target = tmp_path / "copy"
    target.write_text("was here before")
    objects.materialise(digest, target, mode=0o755)
    assert target.read_bytes() == LARGE
    assert target.stat().st_mode & 0o777 == 0o755
    target.write_bytes(b"altered by a script")
    objects.verify(digest)


def test_damage_is_found_before_the_content_is_used(objects: ObjectStore, tmp_path: Path) -> None:
    digest = objects.put_bytes(b"content")
    objects.path(digest).chmod(0o644)
    objects.path(digest).write_bytes(b"c0ntent")
    with pytest.raises(UnavailableError, match="damaged"):
        objects.verify(digest)
    with pytest.raises(UnavailableError, match="damaged"):
        objects.materialise(digest, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["objects"], "neither a copy nor half of one"


def test_putting_the_original_again_mends_a_damaged_object(objects: ObjectStore) -> None:
    digest = objects.put_bytes(b"content")
    objects.path(digest).chmod(0o644)
    objects.path(digest).write_bytes(b"")
    objects.put_bytes(b"content")
    objects.verify(digest)
    assert objects.path(digest).read_bytes() == b"content"


def test_an_object_that_is_not_there_is_named(objects: ObjectStore, tmp_path: Path) -> None:
    missing = digest_of(b"never put")
    for use in (
        lambda: objects.verify(missing),
        lambda: objects.open(missing),
        lambda: objects.materialise(missing, tmp_path / "copy"),
    ):
        with pytest.raises(UnavailableError, match=f"{missing} is not in"):
            use()


@pytest.mark.parametrize(
    "text",
    [
        "sha256:../../etc/passwd",
        "sha256:" + "A" * 64,
        "sha256:" + "a" * 63,
        "sha256:" + "a" * 64 + "\n",
        "md5:" + "a" * 64,
        "a" * 64,
        "",
    ],
)
def test_only_a_whole_digest_becomes_a_path(objects: ObjectStore, text: str) -> None:
    with pytest.raises(UsageError, match="digest"):
        objects.path(text)


@settings(deadline=None)
@given(text=st.text() | st.from_regex(r"sha256:[0-9a-f./]{60,66}"))
def test_no_text_leads_out_of_the_store(text: str) -> None:
    try:
        path = ObjectStore(Path("/objects")).path(text)
    except UsageError:
        return
    assert path.parent.parent == Path("/objects/sha256")
    assert path == Path(os.path.normpath(path))


def test_what_is_no_file_is_not_stored_and_does_not_block(objects: ObjectStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreRefusedError, match="regular"):
        objects.put_file(tmp_path / "pipe")
    with pytest.raises(StoreRefusedError, match="regular"):
        objects.put_file(tmp_path)
    with pytest.raises(UnavailableError, match="No such file"):
        objects.put_file(tmp_path / "nothing")


def test_a_copy_gets_permission_bits_and_nothing_more(objects: ObjectStore, tmp_path: Path) -> None:
    digest = objects.put_bytes(b"content")
    with pytest.raises(StoreRefusedError, match="0o4755"):
        objects.materialise(digest, tmp_path / "copy", mode=0o4755)
    with pytest.raises(UnavailableError, match="missing"):
        objects.materialise(digest, tmp_path / "missing" / "copy")


def test_a_root_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match=r"file/objects: File exists"):
        ObjectStore(tmp_path / "file" / "objects").put_bytes(b"content")


def test_a_digest_is_a_string_that_was_checked() -> None:
    digest = Digest.of(b"content")
    assert digest == digest_of(b"content")
    assert Digest(digest).hex == digest_of(b"content")[7:]
