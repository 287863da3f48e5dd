"""Receiver: how does another site put checkpoints into a folder of this one?

HTTP/1.1 with a bearer token; `HttpStore` is the other end. Between requests nothing counts but what lies in
the folder, so a receiver may be stopped and started at any moment.

    GET    /v1/objects?prefix=P                   [[name, size, modified_at], …]
    GET    /v1/objects/NAME?start=N&length=N      bytes, fewer where the object ends, at most 1 MiB
    PUT    /v1/objects/NAME                       If-None-Match: * does not replace (412); chunked if long
    DELETE /v1/objects/NAME
    POST   /v1/arriving/NAME?size=N&blake3=H      {"key": K, "part_bytes": N, "missing": [[first, count], …]}
    PUT    /v1/parts/KEY?n=N                      404 where nothing arrives under that key, any more or at all
    POST   /v1/arrived/NAME?size=N&blake3=H       compares the hash, then lets it be seen (422 if it differs)
    POST   /v1/sweep?older_than_seconds=N         {"freed_bytes": N}
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.manifest import MAX_MANIFEST_BYTES
from wattline.checkpoint.pacing import tune
from wattline.checkpoint.stores.contract import MissingError
from wattline.checkpoint.stores.http import READ_BYTES
from wattline.checkpoint.stores.local import LocalStore
from wattline.checkpoint.stores.names import check_prefix, is_name
from wattline.checkpoint.stores.wire import HASH_DIGITS
from wattline.errors import UsageError

_T = TypeVar("_T")

LEAST_TOKEN_LENGTH = 16
_REMEMBERED_PUTS = 1024
_LINGER_SECONDS = 2.0
_LINGER_READS = 64
_SETTLING_SECONDS = 0.01
_LEAST_PART_BYTES, _MOST_PART_BYTES = 2**14, 2**20
# Parts on their way when a link is cut are sent again: of this many, two dozen streams lose about 1 %.
_WORTHWHILE_PARTS = 2048
_PATH = re.compile(r"/v1/(objects|arriving|parts|arrived|sweep)(?:/(.+))?", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_HEADER = re.compile(r"([A-Za-z0-9-]+):([\t -~]*)", re.ASCII)
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}\r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sender may ask of a receiver, right token or not."""

    connections: int = 128
    object_bytes: int = 2**42
    put_bytes: int = MAX_MANIFEST_BYTES
    head_bytes: int = 2**14
    head_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""
    idle_seconds: float = 60.0
    """Between requests, and without a byte inside one."""


DEFAULT_LIMITS = Limits()


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A request that is answered with this status and sentence."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(slots=True)
class _Request:
    """One request; its body is still on the way."""

    method: str
    what: str
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    reader: asyncio.StreamReader
    idle_seconds: float
    is_drained: bool

    @property
    def is_chunked(self) -> bool:
        return "transfer-encoding" in self.headers

    def number(self, key: str, most: int) -> int:
        text = self.query.get(key, "")
        if not _NUMBER.fullmatch(text) or int(text) > most:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{key} is {text[:40]!r}, not a number up to {most}")
        return int(text)

    async def body(self, most_bytes: int) -> bytes:
        """All of it, compared with the hash that came with it."""
        size_bytes = int(self.headers["content-length"])
        if size_bytes > most_bytes:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{size_bytes} bytes, at most {most_bytes} go")
        data = b"".join([piece async for piece in self._exactly(size_bytes)])
        self.is_drained = True
        if blake3(data).hexdigest()[:HASH_DIGITS] != self.headers.get("content-blake3"):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the body was altered on its way")
        return data

    async def chunks(self, most_bytes: int) -> AsyncIterator[bytes]:
        whole_bytes = 0
        while True:
            async with asyncio.timeout(self.idle_seconds):
                line = await self.reader.readuntil(b"\r\n")
            if not _CHUNK_SIZE.fullmatch(line):
                raise Refused(HTTPStatus.BAD_REQUEST, "a chunk has no size")
            size_bytes = int(line, 16)
            whole_bytes += size_bytes
            if whole_bytes > most_bytes:
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {most_bytes} bytes go")
            async for piece in self._exactly(size_bytes):
                yield piece
            if await self.reader.readexactly(2) != b"\r\n":
                raise Refused(HTTPStatus.BAD_REQUEST, "a chunk has no end")
            if size_bytes == 0:
                self.is_drained = True
                return

    async def _exactly(self, size_bytes: int) -> AsyncIterator[bytes]:
        while size_bytes > 0:
            async with asyncio.timeout(self.idle_seconds):
                piece = await self.reader.read(size_bytes)
            if not piece:
                raise ConnectionResetError
            yield piece
            size_bytes -= len(piece)


class Receiver:
    """Serves a folder from a thread of its own, from `with` until its end.

    Without TLS whoever sits on the way can read the token: use it on a private link only.
    """

    def __init__(
        self,
        root: Path,
        token: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if len(token) < LEAST_TOKEN_LENGTH:
            raise UsageError(
                f"a token of {len(token)} characters is too short: at least {LEAST_TOKEN_LENGTH}",
                hint="python -c 'import secrets; print(secrets.token_urlsafe())' makes one",
            )
        self._store, self._token = LocalStore(root), token.encode()
        self._host, self._port, self._tls, self._limits = host, port, tls, limits
        self._started: Future[None] = Future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._puts: OrderedDict[str, None] = OrderedDict()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    def __enter__(self) -> Self:
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="receiver", daemon=True)
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopped, self._alone = asyncio.get_running_loop(), asyncio.Event(), asyncio.Lock()
        try:
            server = await asyncio.start_server(
                self._connected,
                self._host,
                self._port,
                limit=self._limits.head_bytes,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.head_seconds if self._tls else None,
            )
        except OSError as error:
            address = f"{self._host}:{self._port}"
            self._started.set_exception(UsageError(f"{address}: cannot be listened on: {error.strerror}"))
            return
        self._port = server.sockets[0].getsockname()[1]
        self._started.set_result(None)
        await self._stopped.wait()
        for listening in server.sockets:  # one accepted at this moment would not survive `close` well
            self._loop.remove_reader(listening.fileno())
        await asyncio.sleep(_SETTLING_SECONDS)
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        is_welcome = len(self._tasks) < self._limits.connections
        self._tasks.add(task)
        try:
            tune(writer.get_extra_info("socket"))
            if not is_welcome:
                await _reply(writer, HTTPStatus.SERVICE_UNAVAILABLE, b"too many connections", goes_on=False)
            while is_welcome and await self._answer_next(reader, writer):
                pass
            await _linger(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the sender went, or said nothing for too long: it will come again
        except asyncio.CancelledError:  # raised on, the stream's own callback would report it as a fault
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        async with asyncio.timeout(self._limits.idle_seconds):
            first = await reader.read(1)
        if not first:
            return False
        async with asyncio.timeout(self._limits.head_seconds):
            head = first + await reader.readuntil(b"\r\n\r\n")
        is_drained, body = False, b""
        try:
            request = _parse(head, reader, self._limits.idle_seconds)
            self._authorize(request)
            try:
                status, body = await self._answer(request)
            finally:
                is_drained = request.is_drained
        except Refused as error:
            status, body = error.status, error.why.encode()
        except CheckpointError as error:
            status, body = _status(error), error.message.encode()
        await _reply(writer, status, body, goes_on=is_drained)
        return is_drained

    def _authorize(self, request: _Request) -> None:
        shown = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(shown, b"Bearer " + self._token):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is not the right one")

    async def _answer(self, request: _Request) -> tuple[HTTPStatus, bytes]:
        match request.method, request.what, bool(request.name):
            case "GET", "objects", False:
                return HTTPStatus.OK, await self._run(self._list, request.query.get("prefix", ""))
            case "GET", "objects", True:
                start, length = request.number("start", 2**62), request.number("length", READ_BYTES)
                return HTTPStatus.OK, await self._run(self._store.read, request.name, start, length)
            case "PUT", "objects", True:
                return (await (self._create(request) if request.is_chunked else self._put(request))), b""
            case "DELETE", "objects", True:
                await self._run(self._store.delete, request.name)
            case "POST", "arriving", True:
                return HTTPStatus.OK, await self._run(self._begin, *self._arrival(request))
            case "PUT", "parts", True:
                number, data = request.number("n", 2**62), await request.body(_MOST_PART_BYTES)
                if not await self._run(self._store.keep_part, request.name, number, memoryview(data)):
                    raise Refused(HTTPStatus.NOT_FOUND, "nothing arrives here under that key")
            case "POST", "arrived", True:
                name, size_bytes, digest = self._arrival(request)
                size = part_bytes(size_bytes)
                arriving = self._store.arriving(name, size_bytes, digest, part_bytes=size)
                await self._run(arriving.finish)
            case "POST", "sweep", False:
                freed_bytes = await self._run(self._store.sweep, request.number("older_than_seconds", 2**40))
                return HTTPStatus.OK, json.dumps({"freed_bytes": freed_bytes}).encode()
            case _:
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not for {request.what}")
        return HTTPStatus.NO_CONTENT, b""

    async def _run(self, work: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.to_thread(work, *arguments)

    def _arrival(self, request: _Request) -> tuple[str, int, str]:
        size_bytes = request.number("size", self._limits.object_bytes)
        return request.name, size_bytes, request.query.get("blake3", "")

    def _begin(self, name: str, size_bytes: int, digest: str) -> bytes:
        arriving = self._store.arrive(name, size_bytes, digest, part_bytes=part_bytes(size_bytes))
        told = {"key": arriving.key, "part_bytes": arriving.part_bytes, "missing": _runs(arriving.missing)}
        return json.dumps(told).encode()

    def _list(self, prefix: str) -> bytes:
        found = self._store.list(check_prefix(prefix))
        return json.dumps([[one.name, one.size_bytes, one.modified_at] for one in found]).encode()

    async def _put(self, request: _Request) -> HTTPStatus:
        """One at a time: their bodies may be large, and a repeat must find what the first try did."""
        replace, key = request.headers.get("if-none-match") != "*", request.headers.get("idempotency-key", "")
        async with self._alone:
            data = await request.body(self._limits.put_bytes)
            if key and key in self._puts:
                return HTTPStatus.NO_CONTENT
            if not await asyncio.to_thread(self._store.put, request.name, data, replace=replace):
                return HTTPStatus.PRECONDITION_FAILED
            self._puts[key] = None
            if len(self._puts) > _REMEMBERED_PUTS:
                self._puts.popitem(last=False)
        return HTTPStatus.NO_CONTENT

    async def _create(self, request: _Request) -> HTTPStatus:
        with self._store.create(request.name) as writing:
            async for piece in request.chunks(self._limits.object_bytes):
                await self._run(writing.write, memoryview(piece))
            await self._run(writing.finish)
        return HTTPStatus.NO_CONTENT


def part_bytes(size_bytes: int) -> int:
    """Small enough that little is lost on a cut, large enough that a huge object is not all overhead."""
    wanted = 1 << (size_bytes // _WORTHWHILE_PARTS).bit_length()
    return max(_LEAST_PART_BYTES, min(_MOST_PART_BYTES, wanted))


def _runs(numbers: Sequence[int]) -> Sequence[tuple[int, int]]:
    """The first of each, and how many."""
    runs = groupby(enumerate(numbers), key=lambda place: place[1] - place[0])
    found = [[number for _, number in run] for _, run in runs]
    return [(run[0], len(run)) for run in found]


def _parse(head: bytes, reader: asyncio.StreamReader, idle_seconds: float) -> _Request:
    """Only what `HttpStore` would say: anything doubtful is refused rather than guessed at."""
    try:
        first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = first.split(" ")
        pairs = [_HEADER.fullmatch(line) for line in lines]
        headers = {pair[1].lower(): pair[2].strip() for pair in pairs if pair}
        url = urlsplit(target)
        query = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=True) if url.query else ())
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request") from None
    if len(headers) < len(lines):
        raise Refused(HTTPStatus.BAD_REQUEST, "a header is none, or there twice")
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if version != "HTTP/1.1" or (coding is not None and (coding != "chunked" or length is not None)):
        raise Refused(HTTPStatus.BAD_REQUEST, "only HTTP/1.1, with a length or in chunks")
    if coding is None and not _NUMBER.fullmatch(headers.setdefault("content-length", "0")):
        raise Refused(HTTPStatus.BAD_REQUEST, "the length is no number")
    path = _PATH.fullmatch(url.path)
    if path is None or not is_name(path[2] or "-"):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{target[:80]!r} names nothing here")
    is_empty = coding is None and int(headers["content-length"]) == 0
    return _Request(method, path[1], path[2] or "", query, headers, reader, idle_seconds, is_empty)


def _status(error: CheckpointError) -> HTTPStatus:
    if isinstance(error, MissingError):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, StorageError):
        return HTTPStatus.INSUFFICIENT_STORAGE
    return HTTPStatus.UNPROCESSABLE_ENTITY


async def _reply(writer: asyncio.StreamWriter, status: HTTPStatus, body: bytes, *, goes_on: bool) -> None:
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n"
    if status is not HTTPStatus.NO_CONTENT:
        head += f"Content-Length: {len(body)}\r\n"
    if not goes_on:
        head += "Connection: close\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    await writer.drain()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read on for a moment: closing on a sender in the middle of a body would take the answer from it."""
    if writer.can_write_eof():
        writer.write_eof()
        async with asyncio.timeout(_LINGER_SECONDS):
            for _ in range(_LINGER_READS):
                if not await reader.read(2**16):
                    return
