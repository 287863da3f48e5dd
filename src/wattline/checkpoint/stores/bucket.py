"""Bucket: what does an S3 service answer, and what does that mean to a store?

The client is imported when a bucket is opened: who keeps checkpoints elsewhere does not need it. It tries
again by itself where the service is busy. What it gives up on is told by what the caller can do about it,
with the service's code alone: its own words may repeat what it was sent.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.stores.contract import MissingError, Stored

MIB = 2**20
MOST_PARTS = 10_000  # S3's own limits, this and the next two
LEAST_PART_BYTES = 5 * MIB
_MOST_KEY_BYTES = 1024
_MOST_READ_BYTES = 2**31
_MOST_PAGES = 1000
_COPY_BYTES = 512 * MIB  # what a service copies well within one request's time
_COPIES_AT_ONCE = 4
_MARK = "wattline"
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)
_NO_ACCESS = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
_BUSY = frozenset({"BadDigest", "IncompleteBody", "OperationAborted", "RequestTimeout", "SlowDown"})
_LATER = "the service is busy or out of reach; the same may succeed later"
_CREDENTIALS = "check the credentials in the environment and what they may do in this bucket"


class ConditionError(CheckpointError):
    """There is an object where there must be none, or it is not the one it must be."""


class ConflictError(StorageError):
    """Somebody else writes the same object at this moment."""


class NoUploadError(StorageError):
    """The upload was completed, aborted or swept."""


class BeyondError(CheckpointError):
    """The object ends before the first byte that was asked for."""


class Bucket:
    """The part of a bucket below a base; names do not have it, keys do."""

    def __init__(
        self,
        name: str,
        base: str,
        *,
        address: str,
        endpoint: str | None,
        region: str | None,
        attempts: int,
        timeout_seconds: float,
    ) -> None:
        self._name, self._base, self._address, self._attempts = name, base, address, attempts
        self._client = _connect(endpoint, region, attempts, timeout_seconds)

    def call(self, operation: str, name: str, **arguments: Any) -> Any:
        """An operation on the object of that name."""
        key = self._base + name
        if len(key) > _MOST_KEY_BYTES:
            raise CheckpointError(f"{name[:80]}… is too long: a key has at most {_MOST_KEY_BYTES} bytes")
        with _errors(f"{self._address}: {operation} {name}"):
            return getattr(self._client, operation)(Bucket=self._name, Key=key, **arguments)

    def list(self, prefix: str) -> Iterator[Stored]:
        """Every object whose name begins so, in no order, hidden ones too."""
        for page in self._pages("list_objects_v2", ("ContinuationToken",), Prefix=self._base + prefix):
            for item in page.get("Contents", ()):
                name = item["Key"].removeprefix(self._base)
                yield Stored(name, int(item["Size"]), item["LastModified"].timestamp())

    def read(self, name: str, start: int, length: int | None, **conditions: str) -> bytes:
        """At least one byte is asked for: S3 cannot express a range of none."""
        if start or length is not None:
            conditions["Range"] = f"bytes={start}-" + ("" if length is None else str(start + length - 1))
        for left in reversed(range(self._attempts)):
            try:
                answer = self.call("get_object", name, **conditions)
            except BeyondError:
                return b""
            _check_length(answer, f"{self._address}: {name}", start, length)
            try:
                with _errors(f"{self._address}: get_object {name}"), closing(answer["Body"]) as body:
                    data: bytes = body.read()
                    return data
            except StorageError:
                if not left:  # the client tries again until an answer begins, not when it breaks off
                    raise
        raise AssertionError("the last try returns or raises")

    def put(self, name: str, data: bytes | bytearray, *, mark: str = "", **conditions: str) -> None:
        self.call("put_object", name, Body=data, ContentMD5=_md5(data), Metadata={_MARK: mark}, **conditions)

    def mark_of(self, name: str) -> str | None:
        """What its writer gave it: how a writer knows its own object after an answer was lost."""
        try:
            answer = self.call("head_object", name)
        except MissingError:
            return None
        return str(answer.get("Metadata", {}).get(_MARK))

    def copy(self, source: str, target: str, *, size_bytes: int, etag: str, mark: str) -> None:
        """Inside S3, and only what still has that tag."""
        what = {
            "CopySource": {"Bucket": self._name, "Key": self._base + source},
            "CopySourceIfMatch": etag,
        }
        if size_bytes <= _COPY_BYTES:
            self.call("copy_object", target, **what)
            return
        upload = self.begin_upload(target, mark)
        starts = range(0, size_bytes, _COPY_BYTES)
        ranges = [f"bytes={start}-{min(start + _COPY_BYTES, size_bytes) - 1}" for start in starts]
        with upload.aborted_unless_completed(), ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            parts = [
                pool.submit(upload.copy_part, number, CopySourceRange=each, **what)
                for number, each in enumerate(ranges)
            ]
            upload.complete([part.result() for part in parts])

    def begin_upload(self, name: str, mark: str) -> Upload:
        answer = self.call("create_multipart_upload", name, Metadata={_MARK: mark})
        return Upload(self, name, answer["UploadId"], mark=mark)

    def uploads(self, prefix: str) -> Sequence[Upload]:
        """Those to names that begin so, the oldest first."""
        markers = ("KeyMarker", "UploadIdMarker")
        found = [
            Upload(
                self, item["Key"].removeprefix(self._base), item["UploadId"], item["Initiated"].timestamp()
            )
            for page in self._pages("list_multipart_uploads", markers, Prefix=self._base + prefix)
            for item in page.get("Uploads", ())
        ]
        return sorted(found, key=lambda upload: (upload.begun_at, upload.id))

    def parts_of(self, upload: Upload) -> Sequence[Any]:
        pages = self._pages(
            "list_parts", ("PartNumberMarker",), Key=self._base + upload.name, UploadId=upload.id
        )
        return [part for page in pages for part in page.get("Parts", ())]

    def now(self) -> float:
        """By the clock that dates objects and uploads."""
        page = next(self._pages("list_objects_v2", (), Prefix=self._base, MaxKeys=1))
        with suppress(KeyError, ValueError):
            return parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
        return time.time()

    def _pages(self, operation: str, markers: tuple[str, ...], **arguments: Any) -> Iterator[Any]:
        for _ in range(_MOST_PAGES):
            with _errors(f"{self._address}: {operation}"):
                page = getattr(self._client, operation)(Bucket=self._name, **arguments)
            yield page
            if not page.get("IsTruncated"):
                return
            arguments |= {marker: page.get(f"Next{marker}") for marker in markers}
        raise CheckpointError(f"{self._address}: {operation} goes on after {_MOST_PAGES} pages")


class Upload:
    """A multipart upload; its parts count from 0 here and from 1 there."""

    def __init__(
        self, bucket: Bucket, name: str, upload_id: str, begun_at: float = 0.0, *, mark: str = ""
    ) -> None:
        self._bucket, self.name, self.id, self.begun_at, self._mark = bucket, name, upload_id, begun_at, mark
        self._completed = False

    def put_part(self, number: int, data: bytes | bytearray | memoryview) -> str:
        answer = self._call("upload_part", PartNumber=number + 1, Body=data, ContentMD5=_md5(data))
        return str(answer["ETag"])

    def copy_part(self, number: int, **source: Any) -> str:
        answer = self._call("upload_part_copy", PartNumber=number + 1, **source)
        return str(answer["CopyPartResult"]["ETag"])

    def complete(self, etags: Sequence[str]) -> None:
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
        try:
            self._call("complete_multipart_upload", MultipartUpload={"Parts": parts})
        except NoUploadError:
            if self._bucket.mark_of(self.name) != self._mark:  # else it was completed, and the answer lost
                raise
        self._completed = True

    def abort(self) -> None:
        with suppress(NoUploadError):
            self._call("abort_multipart_upload")

    def abort_if_untouched_since(self, moment: float) -> int:
        """How many bytes went."""
        try:
            parts = self._bucket.parts_of(self)
        except NoUploadError:
            return 0
        if max([self.begun_at, *(part["LastModified"].timestamp() for part in parts)]) > moment:
            return 0
        self.abort()
        return sum(int(part["Size"]) for part in parts)

    @contextmanager
    def aborted_unless_completed(self) -> Iterator[None]:
        try:
            yield
        finally:
            if not self._completed:
                with suppress(CheckpointError):  # a sweep finds it; what went wrong before matters more
                    self.abort()

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._bucket.call(operation, self.name, UploadId=self.id, **arguments)


def _connect(endpoint: str | None, region: str | None, attempts: int, timeout_seconds: float) -> Any:
    try:
        import botocore.session  # type: ignore[import-untyped]
        from botocore.config import Config  # type: ignore[import-untyped]
    except ImportError as error:
        raise CheckpointError(
            "the S3 client is not installed", hint="pip install 'wattline[s3]' where this runs"
        ) from error
    config = Config(
        connect_timeout=min(10.0, timeout_seconds),
        read_timeout=timeout_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=32,
        # Every body has its MD5, which services of all makes compare; trailing checksums are newer than many.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "auto" if endpoint is None else "path"},
    )
    with _errors("S3"):
        session = botocore.session.get_session()
        known = region or session.get_config_variable("region") or "us-east-1"
        return session.create_client("s3", endpoint_url=endpoint, region_name=known, config=config)


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    from botocore import exceptions
    from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

    try:
        yield
    except exceptions.ClientError as error:
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        code = re.sub(r"[^A-Za-z0-9]", "", str(error.response.get("Error", {}).get("Code")))[:80]
        raise _meaning(doing, status, code) from error
    except (
        exceptions.HTTPClientError,
        exceptions.ConnectionError,
        exceptions.IncompleteReadError,
    ) as error:
        raise StorageError(f"{doing}: {type(error).__name__}", hint=_LATER) from error
    except ResponseParserError as error:
        raise StorageError(
            f"{doing}: the answer is not S3's", hint="check the endpoint; something else may answer there"
        ) from error
    except exceptions.BotoCoreError as error:
        raise CheckpointError(f"{doing}: {type(error).__name__}", hint=_CREDENTIALS) from error


def _meaning(doing: str, status: int, code: str) -> CheckpointError:
    said = f"{doing}: {status} {code}"
    if code == "NoSuchUpload":
        return NoUploadError(said, hint="begin again: it was completed, aborted or swept meanwhile")
    if code == "NoSuchBucket":
        return CheckpointError(said, hint="make the bucket, or correct its name")
    if status == 404:
        return MissingError(said)
    if status == 412:
        return ConditionError(said)
    if status == 416:
        return BeyondError(said)
    if status == 501:
        return CheckpointError(said, hint="this service lacks what is asked of it; use another one")
    if code == "RequestTimeTooSkewed":
        return CheckpointError(said, hint="set this machine's clock")
    if status in (401, 403) or code in _NO_ACCESS:
        return CheckpointError(said, hint=_CREDENTIALS)
    if status == 409:
        return ConflictError(said, hint=_LATER)
    if status >= 500 or status in (408, 429) or code in _BUSY:
        return StorageError(said, hint=_LATER)
    return CheckpointError(said, hint="check the bucket, its region and the endpoint")


def _check_length(answer: Any, what: str, start: int, length: int | None) -> None:
    """The answer is about the bytes that were asked for, before any of them is taken into memory."""
    size = answer.get("ContentLength")
    ranged = _CONTENT_RANGE.fullmatch(answer.get("ContentRange", ""))
    if ranged is not None:
        first, last, whole = (int(number) for number in ranged.groups())
        end = whole if length is None else min(whole, start + length)
        right = first == start and last + 1 == end and size == end - start
    else:  # all of it, which is what was asked for, or a range that holds all of it
        right = size is not None and start == 0 and (length is None or size <= length)
    if not right:
        answer["Body"].close()
        raise CheckpointError(f"{what} comes with {size} bytes, which is not what was asked for")
    if size > _MOST_READ_BYTES:
        answer["Body"].close()
        raise CheckpointError(
            f"{what} comes with {size} bytes, and at most {_MOST_READ_BYTES} are read at once"
        )


def _md5(data: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
