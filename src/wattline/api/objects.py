"""How do files come in and go out? By the SHA-256 of their content, in pieces, never held in memory whole."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from starlette.responses import Response, StreamingResponse

from wattline.api.call import Call, Endpoint, answer, wait_for
from wattline.api.door import STEERS
from wattline.api.problems import ProblemError
from wattline.store.tokens import Role

_SHA256 = re.compile("[0-9a-f]{64}")
_PIECE_BYTES = 1 << 20
_CARRIES = STEERS | {Role.AGENT}


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """An object is here; it was synced to the disk."""

    sha256: str
    size_bytes: int


async def _put(call: Call) -> Response:
    name = _name(call)
    place = call.served.objects.path(f"sha256:{name}")
    arriving = call.served.objects.arrive(f"sha256:{name}")
    try:
        async for piece in call.pieces(call.served.limits.object_bytes):
            await asyncio.to_thread(arriving.write, piece)
        is_right = await asyncio.to_thread(arriving.finish)
    except BaseException:
        arriving.drop()
        raise
    if not is_right:
        raise ProblemError(
            422,
            f"object {name}: what came has another SHA-256",
            hint="name it by the hash of its content, or send it again",
            exit_code=2,
        )
    size_bytes = place.stat().st_size
    await wait_for(call.served.intake.put([], call.audit(name, "accepted", f"{size_bytes} bytes")))
    return answer(Kept(sha256=name, size_bytes=size_bytes), 201)


async def _get(call: Call) -> Response:
    place = _place(call)
    size_bytes = place.stat().st_size

    async def pieces() -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(place.open, "rb")
        try:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                yield piece
        finally:
            file.close()

    headers = {"Content-Length": str(size_bytes), "ETag": f'"{_name(call)}"'}
    return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)


async def _head(call: Call) -> Response:
    size_bytes = _place(call).stat().st_size
    headers = {"Content-Length": str(size_bytes), "ETag": f'"{_name(call)}"'}
    return Response(media_type="application/octet-stream", headers=headers)


def _place(call: Call) -> Path:
    name = _name(call)
    place = call.served.objects.path(f"sha256:{name}")
    if not place.is_file():
        raise ProblemError(404, f"object {name} is not here", hint="put it first", exit_code=2)
    return place


def _name(call: Call) -> str:
    name = str(call.request.path_params["sha256"])
    if _SHA256.fullmatch(name) is None:
        raise ProblemError(404, f"object {name[:80]!r}: 64 hexadecimal digits name an object", exit_code=2)
    return name


_PATH = "/api/v1/objects/{sha256}"
ENDPOINTS = (
    Endpoint(
        method="PUT", path=_PATH, name="put_object", say="Keep an object; it must be what its name says.",
        handle=_put, answer=Kept, status=201, takes=bytes, allowed=_CARRIES, refuses=(404, 408, 413, 422),
        changes=True,
    ),
    Endpoint(
        method="GET", path=_PATH, name="get_object", say="The content of an object.", handle=_get,
        media="application/octet-stream", allowed=_CARRIES, refuses=(404,),
    ),
    Endpoint(
        method="HEAD", path=_PATH, name="head_object", say="Whether an object is here.", handle=_head,
        media="application/octet-stream", allowed=_CARRIES, refuses=(404,),
    ),
)  # fmt: skip
