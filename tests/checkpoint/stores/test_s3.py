"""S3: what a bucket does that a folder does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.stores import MissingError, bucket
from wattline.checkpoint.stores.s3 import S3Store

PART_BYTES = 5 * 2**20
SECRET = "hunter2-is-never-printed"


class Middle(Protocol):
    endpoint: str
    seen: list[tuple[str, str]]

    def misbehave(self, method: str, part_of_url: str = "", **how: Any) -> None: ...

    def behave(self) -> None: ...

    def count(self, method: str, part_of_url: str = "") -> int: ...


@pytest.fixture
def store(middle: Middle, open_s3: Callable[..., S3Store]) -> S3Store:
    return open_s3(middle.endpoint)


def everything_in(error: BaseException) -> str:
    return "".join(
        str(each) for each in (error, error.__cause__, error.__cause__ and error.__cause__.__cause__)
    )


# addresses


def test_an_address_says_where_and_never_how_to_get_in(s3_endpoint: str) -> None:
    url = f"s3://checkpoints/runs/lm?endpoint={s3_endpoint}&region=eu-central-1"
    assert S3Store.from_url(url).address == f"s3://checkpoints/runs/lm?endpoint={s3_endpoint}"
    assert S3Store.from_url("s3://checkpoints/runs/lm/").address == "s3://checkpoints/runs/lm"
    assert S3Store.from_url("s3://checkpoints").address == "s3://checkpoints"


@pytest.mark.parametrize(
    "url",
    [
        "http://checkpoints/runs",
        "s3://",
        "s3:///runs",
        "s3://key:hunter2@checkpoints/runs",
        "s3://Checkpoints/runs",
        "s3://checkpoints/../runs",
        "s3://checkpoints/.runs",
        "s3://checkpoints/runs#x",
        "s3://checkpoints/runs?secret=hunter2",
        "s3://checkpoints/runs?endpoint=",
        "s3://checkpoints/runs?endpoint=file:///etc",
        "s3://checkpoints/runs?endpoint=https://key:hunter2@host",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_a_secret(url: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        S3Store.from_url(url)
    assert "hunter2" not in everything_in(caught.value)


def test_parts_that_s3_would_refuse_are_refused_at_once() -> None:
    with pytest.raises(CheckpointError, match="5242879"):
        S3Store("checkpoints", "runs", part_bytes=PART_BYTES - 1)


def test_a_key_is_no_longer_than_s3_takes(store: S3Store) -> None:
    with pytest.raises(CheckpointError, match="too long"):
        store.put("/".join(["a" * 250] * 5), b"", replace=True)


def test_who_does_not_use_s3_does_not_import_its_client() -> None:
    script = "import sys, wattline.checkpoint; sys.exit('botocore' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_the_client_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(CheckpointError, match=r"wattline\[s3\]"):
        S3Store("checkpoints")


# what is left in the bucket


def test_a_small_object_is_one_request_and_a_large_one_is_sent_in_parts(
    store: S3Store, middle: Middle
) -> None:
    with store.create("packs/small") as writing:
        writing.write(memoryview(bytes(PART_BYTES - 1)))
        writing.finish()
    assert [method for method, _ in middle.seen] == ["PUT"]
    with store.create("packs/large") as writing:
        writing.write(memoryview(bytes(2 * PART_BYTES + 1)))
        writing.finish()
    assert middle.count("PUT", "partNumber=") == 3


def test_an_upload_that_is_not_finished_is_aborted(store: S3Store, middle: Middle) -> None:
    with suppress(KeyError), store.create("packs/a") as writing:
        writing.write(memoryview(bytes(2 * PART_BYTES)))
        raise KeyError
    assert middle.count("DELETE", "uploadId=") == 1
    assert store._bucket.uploads("") == []


def test_a_write_longer_than_its_parts_allow_is_refused(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattline.checkpoint.stores.s3.MOST_PARTS", 2)
    with pytest.raises(CheckpointError, match="larger part_bytes"), store.create("packs/a") as writing:
        writing.write(memoryview(bytes(3 * PART_BYTES)))
    assert store._bucket.uploads("") == []


def test_a_large_arrival_is_copied_to_its_name_in_parts(
    store: S3Store, middle: Middle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "_COPY_BYTES", PART_BYTES)
    data = os.urandom(2 * PART_BYTES + 7)
    arrive(store, data)
    assert middle.count("PUT", "packs/a?") == 3
    assert store.read("packs/a") == data


def test_an_arrival_leaves_only_the_object(store: S3Store) -> None:
    arrive(store, b"1234")
    assert [stored.name for stored in store._bucket.list("")] == ["packs/a"]
    assert store._bucket.uploads("") == []


def test_an_arrival_completed_just_before_a_crash_is_found_whole(
    middle: Middle, open_s3: Callable[..., S3Store]
) -> None:
    store = open_s3(middle.endpoint)
    middle.misbehave("HEAD", ".arriving/", skip=1, status=403)
    with pytest.raises(CheckpointError, match="403"):
        arrive(store, b"1234")
    assert store.list() == []
    middle.behave()
    again = store.arrive("packs/a", 4, blake3(b"1234").hexdigest())
    assert list(again.missing) == []
    again.finish()
    assert store.read("packs/a") == b"1234"


def test_a_sweep_removes_what_was_completed_and_never_shown(
    store: S3Store, eventually: Callable[[Callable[[], bool]], bool]
) -> None:
    store._bucket.put(".arriving/0123", b"12345")
    assert store.sweep(3600) == 0
    assert eventually(lambda: store.sweep(0) == 5)
    assert list(store._bucket.list("")) == []


def test_listings_are_followed_page_by_page_and_not_for_ever(
    middle: Middle, open_s3: Callable[..., S3Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_s3(middle.endpoint)
    for number in range(5):
        store.put(f"packs/{number}", b"", replace=True)
    whole = store._bucket._client.list_objects_v2
    monkeypatch.setattr(
        store._bucket._client, "list_objects_v2", lambda **arguments: whole(**arguments, MaxKeys=2)
    )
    assert [stored.name for stored in store.list("packs/")] == [f"packs/{number}" for number in range(5)]
    monkeypatch.setattr(bucket, "_MOST_PAGES", 2)
    with pytest.raises(CheckpointError, match="2 pages"):
        store.list("packs/")


# a service that misbehaves


@pytest.mark.parametrize(
    ("status", "code"), [(503, "SlowDown"), (503, ""), (500, "InternalError"), (429, "TooManyRequests")]
)
def test_a_busy_service_is_asked_again_and_then_given_up(
    store: S3Store, middle: Middle, status: int, code: str
) -> None:
    store.put("fence", b"1", replace=True)
    middle.misbehave("GET", "fence", status=status, code=code, times=1)
    assert store.read("fence") == b"1"
    middle.misbehave("GET", "fence", status=status, code=code)
    with pytest.raises(StorageError, match=str(status)) as caught:
        store.read("fence")
    assert caught.value.hint
    assert "later" in caught.value.hint
    assert middle.count("GET", "fence") == 4


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (403, "AccessDenied", "credentials"),
        (403, "SignatureDoesNotMatch", "credentials"),
        (400, "ExpiredToken", "credentials"),
        (403, "RequestTimeTooSkewed", "clock"),
        (404, "NoSuchBucket", "bucket"),
        (301, "PermanentRedirect", "region"),
        (501, "NotImplemented", "another"),
    ],
)
def test_what_trying_again_does_not_mend_says_what_would(
    store: S3Store, middle: Middle, status: int, code: str, hint: str
) -> None:
    middle.misbehave("GET", "fence", status=status, code=code)
    with pytest.raises(CheckpointError, match=code) as caught:
        store.read("fence")
    assert not isinstance(caught.value, StorageError | MissingError)
    assert hint in (caught.value.hint or "")
    assert SECRET not in everything_in(caught.value)


@pytest.mark.parametrize("verb", ["list", "read", "put", "create", "arrive", "delete", "sweep"])
def test_every_verb_tells_a_service_that_never_answers(
    middle: Middle, open_s3: Callable[..., S3Store], verb: str
) -> None:
    store = open_s3(middle.endpoint, timeout_seconds=0.3)
    for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
        middle.misbehave(method)
    verbs: dict[str, Callable[[], object]] = {
        "list": store.list,
        "read": lambda: store.read("fence"),
        "put": lambda: store.put("fence", b"", replace=True),
        "create": lambda: write(store, bytes(PART_BYTES)),
        "arrive": lambda: arrive(store, b"1234"),
        "delete": lambda: store.delete("fence"),
        "sweep": lambda: store.sweep(0),
    }
    with pytest.raises(StorageError, match="TimeoutError"):
        verbs[verb]()


def test_a_service_that_is_not_there_may_come_back(open_s3: Callable[..., S3Store]) -> None:
    with pytest.raises(StorageError, match="EndpointConnectionError"):
        open_s3("http://127.0.0.1:9").list()


def test_something_that_is_no_s3_service_is_told(store: S3Store, middle: Middle) -> None:
    middle.misbehave("GET", "", alter=lambda _: b"<html>Please log in to the guest network")
    with pytest.raises(CheckpointError):
        store.list()


def test_an_answer_that_breaks_off_is_asked_for_again(store: S3Store, middle: Middle) -> None:
    store.put("fence", b"12345678", replace=True)
    middle.misbehave("GET", "fence", cut=True, times=1)
    assert store.read("fence") == b"12345678"
    middle.misbehave("GET", "fence", cut=True)
    with pytest.raises(StorageError):
        store.read("fence")


@pytest.mark.parametrize("alter", [lambda data: data[:-1], lambda data: data + b"!", lambda data: b""])
@pytest.mark.parametrize(("start", "length"), [(2, 4), (0, 4), (2, None)])
def test_an_answer_of_the_wrong_length_is_refused(
    store: S3Store, middle: Middle, alter: Callable[[bytes], bytes], start: int, length: int | None
) -> None:
    store.put("fence", b"12345678", replace=True)
    middle.misbehave("GET", "fence", alter=alter)
    with pytest.raises(CheckpointError, match="not what was asked for"):
        store.read("fence", start, length)


def test_a_service_that_ignores_ranges_is_refused_before_all_of_it_is_read(
    store: S3Store, middle: Middle
) -> None:
    store.put("fence", b"12345678", replace=True)
    middle.misbehave("GET", "fence", drop_header="Range")
    assert store.read("fence", 0, 100) == b"12345678"
    for start, length in ((0, 4), (2, 4), (2, None)):
        with pytest.raises(CheckpointError, match="comes with 8 bytes"):
            store.read("fence", start, length)


def test_wrong_bytes_from_the_service_keep_an_arrival_from_being_shown(
    store: S3Store, middle: Middle
) -> None:
    middle.misbehave("GET", ".arriving/", alter=lambda data: data.replace(b"1234", b"1235"))
    with pytest.raises(CheckpointError, match="not what was sent"):
        arrive(store, b"1234")
    assert list(store._bucket.list("")) == []


# putting without replacing


def test_a_service_that_ignores_the_condition_is_not_trusted_with_it(store: S3Store, middle: Middle) -> None:
    store.put("fence", b"old", replace=True)
    middle.misbehave("PUT", "", drop_header="If-None-Match")
    with pytest.raises(CheckpointError, match="ignores If-None-Match"):
        store.put("fence", b"new", replace=False)
    assert store.read("fence") == b"old"


def test_a_service_that_lacks_the_condition_says_so(store: S3Store, middle: Middle) -> None:
    middle.misbehave("PUT", "", status=501, code="NotImplemented")
    with pytest.raises(CheckpointError, match="NotImplemented"):
        store.put("fence", b"new", replace=False)


def test_the_condition_is_tried_out_once(store: S3Store, middle: Middle) -> None:
    for number in range(3):
        assert store.put(f"packs/{number}", b"", replace=False)
    assert middle.count("PUT", ".conditional") == 2


def test_a_put_whose_answer_was_lost_still_counts_as_the_first(store: S3Store, middle: Middle) -> None:
    middle.misbehave("PUT", "fence", status=500, code="InternalError", after=True, times=1)
    assert store.put("fence", b"1", replace=False)
    assert not store.put("fence", b"1", replace=False)


def test_a_put_that_meets_another_is_tried_again(store: S3Store, middle: Middle) -> None:
    middle.misbehave("PUT", "fence", status=409, code="ConditionalRequestConflict", times=1)
    assert store.put("fence", b"1", replace=False)
    middle.misbehave("PUT", "fence", status=409, code="ConditionalRequestConflict")
    with pytest.raises(StorageError, match="409"):
        store.put("fence", b"2", replace=False)


def test_a_completion_whose_answer_was_lost_is_recognised(store: S3Store, middle: Middle) -> None:
    middle.misbehave("POST", "uploadId=", status=404, code="NoSuchUpload", after=True)
    write(store, bytes(PART_BYTES))
    assert len(store.read("packs/a")) == PART_BYTES
    arrive(store, b"1234")
    assert store.read("packs/a") == b"1234"


def test_an_upload_that_was_swept_under_its_writer_is_told(store: S3Store, middle: Middle) -> None:
    store.put("packs/a", b"old", replace=True)
    middle.misbehave("POST", "uploadId=", status=404, code="NoSuchUpload")
    with pytest.raises(StorageError, match="NoSuchUpload"):
        write(store, bytes(PART_BYTES))
    with pytest.raises(StorageError, match="swept"):
        arrive(store, b"1234")
    assert store.read("packs/a") == b"old"


def test_what_fails_while_writing_is_told_and_leaves_nothing(store: S3Store, middle: Middle) -> None:
    middle.misbehave("PUT", "partNumber=2", status=503, code="SlowDown")
    with pytest.raises(StorageError, match="503"):
        write(store, bytes(4 * PART_BYTES))
    assert store.list() == []
    assert store._bucket.uploads("") == []


def test_the_secret_is_in_no_error_and_no_address(store: S3Store, middle: Middle, tmp_path: Path) -> None:
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == SECRET
    middle.misbehave("GET", "", status=403, code="SignatureDoesNotMatch")
    with pytest.raises(CheckpointError) as caught:
        store.list()
    assert SECRET not in everything_in(caught.value) + store.address + repr(store)


def write(store: S3Store, data: bytes) -> None:
    with store.create("packs/a") as writing:
        writing.write(memoryview(data))
        writing.finish()


def arrive(store: S3Store, data: bytes) -> None:
    arriving = store.arrive("packs/a", len(data), blake3(data).hexdigest())
    for number in arriving.missing:
        start = number * arriving.part_bytes
        arriving.put(number, memoryview(data)[start : start + arriving.part_bytes])
    arriving.finish()
