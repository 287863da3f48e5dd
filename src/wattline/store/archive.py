"""In which bytes does a backup lie, and how is a whole one told from half of one?

    b"wattline.backup.1\\n"          what it is
    frames, compressed with zstd    each: its length (unsigned 32 bits, big-endian), then a MessagePack array

First a Header, then Rows of one table after the other, then the objects in Pieces, at last an End with how
many of each there were and the SHA-256 of all frames before it. A file without its End was cut off. Values
are those of SQL (null, true, numbers, text, bytes), so any database can take them in again.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, BinaryIO

import msgspec
import zstandard

from wattline.errors import UnavailableError

Tell = Callable[[int, int], None]
"""To be told the bytes that are through, and the bytes in all."""

OBJECTS = "objects"

_MAGIC = b"wattline.backup.1\n"
_LENGTH = struct.Struct(">I")
_MAX_FRAME_BYTES = 300 * 1024 * 1024  # the largest row is a snapshot of the state
_MAX_WINDOW_BYTES = 128 * 1024 * 1024
_LEVEL = 6


class Header(msgspec.Struct, frozen=True, tag="header", array_like=True):
    """What was backed up, and when."""

    schema_version: int
    taken_at: float
    software: str
    tables: dict[str, list[str]]
    """Of each table its columns, in the order in which rows have them."""
    journal_seq: int
    journal_hash: bytes
    has_objects: bool


class Rows(msgspec.Struct, frozen=True, tag="rows", array_like=True):
    """Some rows of one table, in order."""

    table: str
    rows: list[list[Any]]


class Piece(msgspec.Struct, frozen=True, tag="piece", array_like=True):
    """The next bytes of one object."""

    digest: str
    content: bytes
    is_last: bool


class End(msgspec.Struct, frozen=True, tag="end", array_like=True):
    """That all is there: rows by table, and objects; and the hash of all before."""

    counts: dict[str, int]
    sha256: bytes


Frame = Header | Rows | Piece | End

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


class ArchiveWriter:
    """Frames into a file."""

    def __init__(self, file: BinaryIO) -> None:
        file.write(_MAGIC)
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._stream = compressor.stream_writer(file, closefd=False)
        self._hasher = sha256()
        self._counts: Counter[str] = Counter()
        self.written_bytes = 0

    def write(self, frame: Header | Rows | Piece) -> None:
        _count(self._counts, frame)
        self._hasher.update(self._put(frame))

    def finish(self) -> None:
        self._put(End(dict(self._counts), self._hasher.digest()))
        self._stream.flush(zstandard.FLUSH_FRAME)

    def _put(self, frame: Frame) -> bytes:
        content = _encode(frame)
        self._stream.write(_LENGTH.pack(len(content)))
        self._stream.write(content)
        self.written_bytes += len(content)
        return content


def read_archive(file: BinaryIO, name: str) -> Iterator[Frame]:
    """The frames of a backup, each checked as far as it can be alone; the last one, End, vouches for all."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise UnavailableError(
            f"{name}: is not a backup of a store", hint="name a file that `wattline store backup` wrote"
        )
    hasher, counts = sha256(), Counter[str]()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    with decompressor.stream_reader(file, closefd=False) as stream:
        is_first = True
        while True:
            content = _read_frame(stream, name)
            frame = _decode_frame(content, name)
            if isinstance(frame, Header) is not is_first:
                raise _damaged(name, "its parts are not in order")
            is_first = False
            if isinstance(frame, End):
                _check_end(frame, counts, hasher.digest(), name)
                yield frame
                return
            hasher.update(content)
            _count(counts, frame)
            yield frame


def _count(counts: Counter[str], frame: Header | Rows | Piece) -> None:
    if isinstance(frame, Rows):
        counts[frame.table] += len(frame.rows)
    elif isinstance(frame, Piece):
        counts[OBJECTS] += frame.is_last


def _check_end(end: End, counts: Mapping[str, int], digest: bytes, name: str) -> None:
    if end.sha256 != digest:
        raise _damaged(name, "its content is not what was written")
    if end.counts != dict(counts):
        raise _damaged(name, f"it should have {end.counts}, and has {dict(counts)}")


def _read_frame(stream: zstandard.ZstdDecompressionReader, name: str) -> bytes:
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size, name))
    if length > _MAX_FRAME_BYTES:
        raise _damaged(name, f"a part of it claims to have {length} bytes")
    return _read_exactly(stream, length, name)


def _read_exactly(stream: zstandard.ZstdDecompressionReader, length: int, name: str) -> bytes:
    content = bytearray()
    while len(content) < length:
        try:
            chunk = stream.read(min(length - len(content), 1 << 20))
        except zstandard.ZstdError as error:
            raise _damaged(name, f"it cannot be decompressed ({error})") from error
        if not chunk:
            raise _damaged(name, "it ends too early")
        content += chunk
    return bytes(content)


def _decode_frame(content: bytes, name: str) -> Frame:
    try:
        frame: Frame = _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(name, f"a part of it cannot be read ({error})") from error
    return frame


def _damaged(name: str, why: str) -> UnavailableError:
    return UnavailableError(f"{name}: this backup is damaged: {why}", hint="use another backup")
