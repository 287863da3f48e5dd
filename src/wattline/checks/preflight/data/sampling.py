"""Which part of a file is looked at? All of a small one; of a large one its head and evenly spaced blocks.

A block in the middle is cut to whole lines. Nothing is read beyond the budget, whatever a file claims to be.
"""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wattline.errors import UnavailableError
from wattline.spec.data_profile import Encoding
from wattline.spec.tree import printable
from wattline.units import format_bytes

# Two to four megabytes of cells are looked at in a second, and a check may take five seconds in all.
MOST_BYTES = 2 << 20

_GZIP = b"\x1f\x8b"
_GZIP_MEMBER = 16 + zlib.MAX_WBITS
_PACKED_BYTES = 16 << 10
_BLOCKS = 12
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class UnknownFormError(UnavailableError):
    """Neither text nor a table, as far as can be told here."""


def shown(path: Path) -> str:
    """A file's name for a message; in a folder it may be any bytes."""
    return printable(path.name, longest=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Decoded text: the head of a file, then blocks of whole lines from further on."""

    encoding: Encoding
    chunks: tuple[str, ...]
    chunk_bytes: tuple[int, ...]  # what each chunk took of the file
    of_bytes: int  # all of it, unpacked; estimated for gzip that was not read to its end
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raw:
    head: bytes
    blocks: tuple[bytes, ...] = ()
    of_bytes: int
    whole: bool


def take_sample(path: Path, most_bytes: int = MOST_BYTES) -> Sample:
    """Read at most so many bytes of a text file, plain or gzip."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if packed:
                raw = _read_packed(path, file, most_bytes)
            elif path.suffix == ".gz" and path.stat().st_size:
                raise UnavailableError(
                    f"{shown(path)} is named as gzip and is none", hint="unpack or rename it"
                )
            else:
                raw = _read_plain(file, path.stat().st_size, most_bytes)
    except OSError as error:
        raise UnavailableError(f"{shown(path)} cannot be read: {error.strerror or error}") from error
    return _decode(path, raw)


def _read_plain(file: BinaryIO, size_bytes: int, most_bytes: int) -> _Raw:
    if size_bytes <= most_bytes:
        return _Raw(head=file.read(most_bytes), of_bytes=size_bytes, whole=True)
    head, block_bytes = file.read(most_bytes // 4), most_bytes // 16
    if b"\n" not in head:
        # Lines this long leave nothing of a block once it is cut.
        head += file.read(most_bytes - len(head))
        return _Raw(head=head, of_bytes=size_bytes, whole=False)
    room = size_bytes - len(head) - block_bytes
    blocks = []
    for number in range(1, _BLOCKS + 1):
        file.seek(len(head) + room * number // _BLOCKS)
        blocks.append(_whole_lines(file.read(block_bytes), to_end=number == _BLOCKS))
    return _Raw(head=head, blocks=tuple(blocks), of_bytes=size_bytes, whole=False)


def _read_packed(path: Path, file: BinaryIO, most_bytes: int) -> _Raw:
    """Gzip has no middle that could be reached: the head it is, and its ratio tells how much there is."""
    try:
        head, used_bytes = _unpack(file, most_bytes + 1)
    except EOFError as error:
        raise UnavailableError(
            f"{shown(path)} ends too early: its gzip is cut off", hint="fetch it again"
        ) from error
    except zlib.error as error:
        raise UnavailableError(f"{shown(path)} is broken gzip: {error}", hint="fetch it again") from error
    if len(head) <= most_bytes:
        return _Raw(head=head, of_bytes=len(head), whole=True)
    of_bytes = round(len(head) * path.stat().st_size / used_bytes)
    return _Raw(head=head[:most_bytes], of_bytes=max(of_bytes, len(head)), whole=False)


def _unpack(file: BinaryIO, most_bytes: int) -> tuple[bytes, int]:
    """The first bytes of what is packed, and how many packed ones they took; gzip may have many members."""
    unpacked, used_bytes, packed = bytearray(), 0, b""
    decoder = zlib.decompressobj(_GZIP_MEMBER)
    while len(unpacked) < most_bytes:
        packed = packed or file.read(_PACKED_BYTES)
        if not packed:
            raise EOFError
        unpacked += decoder.decompress(packed, most_bytes - len(unpacked))
        left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        used_bytes += len(packed) - len(left)
        packed = left
        if decoder.eof:
            packed = (packed or file.read(_PACKED_BYTES)).lstrip(b"\0")  # tapes and disks pad with zeros
            if not packed:
                break
            decoder = zlib.decompressobj(_GZIP_MEMBER)
    return bytes(unpacked), used_bytes


def _whole_lines(block: bytes, *, to_end: bool) -> bytes:
    start = block.find(b"\n") + 1
    end = len(block) if to_end else block.rfind(b"\n") + 1
    return block[start:end] if start else b""


def _decode(path: Path, raw: _Raw) -> Sample:
    wide = raw.head.startswith(_WIDE)
    blocks = () if wide else tuple(block for block in raw.blocks if block)
    encoding: Encoding = (
        "utf-16" if wide else "utf-8 with BOM" if raw.head.startswith(codecs.BOM_UTF8) else "utf-8"
    )
    codec = {"utf-16": "utf-16", "utf-8 with BOM": "utf-8-sig"}.get(encoding, encoding)
    try:
        head = codecs.getincrementaldecoder(codec)().decode(raw.head, raw.whole)
        chunks = [head, *(block.decode("utf-8") for block in blocks)]
    except UnicodeDecodeError:
        encoding, codec = "not utf-8", "latin-1"
        chunks = [raw.head.decode(codec), *(block.decode(codec) for block in blocks)]
    if any("\0" in chunk for chunk in chunks):
        raise UnknownFormError(f"{shown(path)} holds NUL bytes, so it is neither text nor a table of text")
    head_bytes = len(raw.head)
    if not raw.whole:
        chunks[0], cut = _cut(chunks[0])
        if not chunks[0]:
            raise UnavailableError(
                f"{shown(path)} has a line of more than {format_bytes(head_bytes)}",
                hint="data is looked at line by line; break it into lines",
            )
        head_bytes -= len(cut.encode({"utf-16": "utf-16-le", "latin-1": "latin-1"}.get(codec, "utf-8")))
    sizes = (head_bytes, *map(len, blocks))
    return Sample(
        encoding=encoding, chunks=tuple(chunks), chunk_bytes=sizes, of_bytes=raw.of_bytes, whole=raw.whole
    )


def _cut(head: str) -> tuple[str, str]:
    end = head.rfind("\n") + 1
    return head[:end], head[end:]
