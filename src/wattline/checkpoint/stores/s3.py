"""An S3 bucket as a store: how does an object appear all at once, and only after it is known to be right?

S3 shows an object when its upload is completed, so one that is written is an upload until its end. One that
arrives in parts is an upload to a hidden name, `.arriving/…`, by which whoever comes after a crash finds it
again. It is completed there, read back, hashed, and only then copied, inside S3, to its own name.

Nobody can be locked out of a bucket, so `exclusive` does nothing, and a writer counts as dead when it has
sent no part for as long as `sweep` is told. Credentials come from where every S3 client looks for them.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.stores.bucket import (
    LEAST_PART_BYTES,
    MIB,
    MOST_PARTS,
    Bucket,
    ConditionError,
    ConflictError,
    NoUploadError,
    Upload,
)
from wattline.checkpoint.stores.contract import MissingError, Stored
from wattline.checkpoint.stores.names import check_arrival, check_name, check_prefix, check_range, is_name

_ARRIVING = ".arriving/"
_CONDITIONAL = ".conditional"
_MOST_PUT_BYTES = 2**30
_ARRIVING_PART_BYTES = 8 * MIB
_READ_BACK_BYTES = 8 * MIB
_AT_ONCE = 3
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)


class S3Store:
    """Implements Store below a prefix of a bucket; without a prefix the whole bucket is its own."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        endpoint: str | None = None,
        region: str | None = None,
        part_bytes: int = 32 * MIB,
        attempts: int = 5,
        timeout_seconds: float = 60.0,
    ) -> None:
        """A writing holds up to four `part_bytes` in memory, and takes up to ten thousand of them."""
        if not _BUCKET.fullmatch(bucket):
            raise CheckpointError(f"{bucket[:80]!r} is no name of a bucket")
        if part_bytes < LEAST_PART_BYTES:
            raise CheckpointError(f"parts of {part_bytes} bytes: S3 takes none below {LEAST_PART_BYTES}")
        if endpoint is not None:
            _check_endpoint(endpoint)
        base = check_name(prefix) + "/" if prefix else ""
        options = "" if endpoint is None else "?" + urlencode({"endpoint": endpoint}, safe=":/")
        self._address = f"s3://{bucket}/{prefix}".rstrip("/") + options
        self._part_bytes, self._attempts = part_bytes, attempts
        self._keeps_conditions = False
        self._bucket = Bucket(
            bucket,
            base,
            address=self._address,
            endpoint=endpoint,
            region=region,
            attempts=attempts,
            timeout_seconds=timeout_seconds,
        )

    @classmethod
    def from_url(cls, url: str) -> S3Store:
        """`s3://bucket/prefix?endpoint=https://…&region=…`; what follows `?` may be left out."""
        parts = urlsplit(url)
        if parts.scheme != "s3" or parts.fragment or "@" in parts.netloc:
            raise CheckpointError(
                "an S3 address is s3://bucket/prefix?endpoint=…&region=…",
                hint="credentials go into the environment, never into an address",
            )
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        endpoint, region = options.pop("endpoint", None), options.pop("region", None)
        if options:
            raise CheckpointError(f"an S3 address may say endpoint and region, not {sorted(options)}")
        return cls(parts.netloc, parts.path.strip("/"), endpoint=endpoint, region=region)

    streams = 8

    @property
    def address(self) -> str:
        return self._address

    def list(self, prefix: str = "") -> Sequence[Stored]:
        check_prefix(prefix)
        found = [stored for stored in self._bucket.list(prefix) if is_name(stored.name)]
        return sorted(found, key=lambda stored: stored.name)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        check_name(name)
        check_range(name, start, length)
        if length == 0:
            self._bucket.call("head_object", name)
            return b""
        return self._bucket.read(name, start, length)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        check_name(name)
        if len(data) > _MOST_PUT_BYTES:
            raise CheckpointError(f"{name} has {len(data)} bytes; at most {_MOST_PUT_BYTES} go in one go")
        if replace:
            self._bucket.put(name, data)
            return True
        self._require_conditions()
        mark = secrets.token_hex(16)
        for left in reversed(range(self._attempts)):
            try:
                self._bucket.put(name, data, mark=mark, IfNoneMatch="*")
            except ConditionError:
                return self._bucket.mark_of(name) == mark  # its own, where the answer to a first try was lost
            except ConflictError:
                if not left:
                    raise
                time.sleep(0.1)
            else:
                return True
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def create(self, name: str) -> Iterator[_Writing]:
        writing = _Writing(self._bucket, check_name(name), self._part_bytes)
        try:
            yield writing
        finally:
            writing.close()

    def arrive(self, name: str, size_bytes: int, blake3: str) -> _Arriving:
        check_arrival(name, size_bytes, blake3)
        return _Arriving(self._bucket, name, size_bytes, blake3)

    def delete(self, name: str) -> None:
        self._bucket.call("delete_object", check_name(name))

    def exclusive(self) -> AbstractContextManager[None]:
        return nullcontext()

    def sweep(self, older_than_seconds: float) -> int:
        moment = self._bucket.now() - older_than_seconds
        freed_bytes = 0
        for upload in self._bucket.uploads(""):
            ours = is_name(upload.name) or upload.name.startswith(_ARRIVING)
            if ours and upload.begun_at <= moment:
                freed_bytes += upload.abort_if_untouched_since(moment)
        for stored in list(self._bucket.list(_ARRIVING)):
            if stored.modified_at <= moment:
                self._bucket.call("delete_object", stored.name)
                freed_bytes += stored.size_bytes
        return freed_bytes

    def _require_conditions(self) -> None:
        """A service that does not know `If-None-Match` replaces in silence: see first that it refuses."""
        for _ in range(0 if self._keeps_conditions else 2):  # the first put may be the first ever
            try:
                self._bucket.put(_CONDITIONAL, b"", IfNoneMatch="*")
            except (ConditionError, ConflictError):
                self._keeps_conditions = True
                break
        if not self._keeps_conditions:
            raise CheckpointError(
                f"{self._address}: the service ignores If-None-Match: it may replace what must stay",
                hint="use a service that knows conditional writes",
            )


class _Writing:
    """Parts are sent by threads while the next one fills; each waits for a place, which bounds memory."""

    def __init__(self, bucket: Bucket, name: str, part_bytes: int) -> None:
        self._bucket, self._name, self._part_bytes = bucket, name, part_bytes
        self._part = bytearray()
        self._upload: Upload | None = None
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="s3")
        self._sent: list[Future[str]] = []
        self._open = True

    def write(self, data: memoryview) -> None:
        self._require_open()
        data = data.cast("B")
        while data:
            room = self._part_bytes - len(self._part)
            self._part += data[:room]
            data = data[room:]
            if len(self._part) == self._part_bytes:
                self._send()

    def finish(self) -> None:
        self._require_open()
        if self._upload is None:
            self._bucket.put(self._name, self._part)
        else:
            if self._part:
                self._send()
            self._upload.complete([sent.result() for sent in self._sent])
            self._upload = None
        self._open = False

    def close(self) -> None:
        self._open = False
        self._pool.shutdown(cancel_futures=True)  # a part that lands after the abort would stay
        if self._upload is not None:
            with suppress(CheckpointError):  # a sweep finds it; what went wrong before matters more
                self._upload.abort()

    def _send(self) -> None:
        if len(self._sent) == MOST_PARTS:
            raise CheckpointError(
                f"{self._name} is longer than {MOST_PARTS} parts of {self._part_bytes} bytes",
                hint="open the store with larger part_bytes",
            )
        if self._upload is None:
            self._upload = self._bucket.begin_upload(self._name, secrets.token_hex(16))
        if len(self._sent) >= _AT_ONCE:
            self._sent[-_AT_ONCE].result()
        self._sent.append(self._pool.submit(self._upload.put_part, len(self._sent), self._part))
        self._part = bytearray()

    def _require_open(self) -> None:
        if not self._open:
            raise CheckpointError(f"{self._name} is not being written any more")


class _Arriving:
    def __init__(self, bucket: Bucket, name: str, size_bytes: int, digest: str) -> None:
        self._bucket, self._name, self._size_bytes, self._digest = bucket, name, size_bytes, digest
        key = blake3(f"{name}\0{size_bytes}\0{digest}".encode()).hexdigest()[:32]
        self._hidden = _ARRIVING + key
        least_bytes = -(-size_bytes // MOST_PARTS)
        self.part_bytes = max(_ARRIVING_PART_BYTES, -(-least_bytes // MIB) * MIB)
        self._count = -(-size_bytes // self.part_bytes)
        self._upload = self._find_upload() if size_bytes else None

    @property
    def missing(self) -> Sequence[int]:
        etags = self._etags()
        return [number for number in range(self._count) if number not in etags]

    def put(self, number: int, data: memoryview) -> None:
        if not 0 <= number < self._count or data.nbytes != self._part_size(number):
            raise CheckpointError(f"part {number} of {self._name} has {data.nbytes} bytes")
        if self._upload is not None:
            self._upload.put_part(number, data.tobytes())

    def finish(self) -> None:
        if self._upload is not None:
            etags = self._etags()
            if len(etags) < self._count:
                raise CheckpointError(f"{self._name}: {self._count - len(etags)} parts have not arrived")
            with suppress(
                NoUploadError
            ):  # completed by somebody else: what lies there is looked at all the same
                self._upload.complete([etags[number] for number in range(self._count)])
        if not self._size_bytes:
            self._compare(blake3())
            self._bucket.put(self._name, b"", mark=self._digest)
            return
        try:
            self._verify_and_show()
        except (MissingError, ConditionError) as error:
            if self._bucket.mark_of(self._name) != self._digest:  # else somebody else finished it first
                raise StorageError(
                    f"{self._name} was swept or replaced while it was verified", hint="send it again"
                ) from error

    def _find_upload(self) -> Upload | None:
        """None where all of it was completed, under its hidden name, before a crash."""
        if self._bucket.mark_of(self._hidden) == self._digest:
            return None
        for upload in self._bucket.uploads(self._hidden):
            return Upload(self._bucket, upload.name, upload.id, upload.begun_at, mark=self._digest)
        return self._bucket.begin_upload(self._hidden, self._digest)

    def _etags(self) -> dict[int, str]:
        """Of the parts that are there, whole."""
        if self._upload is None:
            return dict.fromkeys(range(self._count), "")
        parts: Sequence[Any] = self._bucket.parts_of(self._upload)
        told = {int(part["PartNumber"]) - 1: part for part in parts}
        return {
            number: str(part["ETag"])
            for number, part in told.items()
            if 0 <= number < self._count and part["Size"] == self._part_size(number)
        }

    def _part_size(self, number: int) -> int:
        return min(self.part_bytes, self._size_bytes - number * self.part_bytes)

    def _verify_and_show(self) -> None:
        known = self._bucket.call("head_object", self._hidden)
        digest = blake3()
        if known["ContentLength"] == self._size_bytes:
            for piece in self._read_back(known["ETag"]):
                digest.update(piece)
        self._compare(digest)
        self._bucket.copy(
            self._hidden, self._name, size_bytes=self._size_bytes, etag=known["ETag"], mark=self._digest
        )
        self._bucket.call("delete_object", self._hidden)

    def _compare(self, digest: Any) -> None:
        if digest.hexdigest() != self._digest:
            self._bucket.call("delete_object", self._hidden)
            raise CheckpointError(
                f"{self._name}: what arrived is not what was sent",
                hint="verify the source, and send it again",
            )

    def _read_back(self, etag: str) -> Iterator[bytes]:
        """In order, a few requests ahead."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="s3") as pool:
            ahead: deque[Future[bytes]] = deque()
            for start in range(0, self._size_bytes, _READ_BACK_BYTES):
                length = min(_READ_BACK_BYTES, self._size_bytes - start)
                ahead.append(pool.submit(self._bucket.read, self._hidden, start, length, IfMatch=etag))
                if len(ahead) > _AT_ONCE:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise CheckpointError(
            "an endpoint is http://host:port or https://host:port",
            hint="credentials go into the environment, never into an address",
        )
