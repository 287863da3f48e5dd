"""How does the API listen: on which socket, for how long, and to whom not?

uvicorn speaks HTTP (h11: it bounds what is held of an unfinished request). It has no limit on how long a
client may take to say what it wants, so this adds one: who dribbles a request in, byte by byte, is let go.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from wattline.errors import UnavailableError, UsageError

_HEADER_SECONDS = 10.0
_HEADER_BYTES = 16 << 10
_MOST_CONNECTIONS = 1000
_IDLE_SECONDS = 30
_LEAVE_SECONDS = 10
_START_SECONDS = 30.0


class _Patient(H11Protocol):
    """Lets go of whoever has not said what they want in time; also between two requests."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        busy = self._is_busy()
        super().data_received(data)
        if self._is_busy() and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif not busy and self._deadline is None:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_busy() and not self.transport.is_closing():
            self.transport.close()


class Listener:
    """The API on a socket, in a thread of its own."""

    def __init__(self, app: Starlette, sock: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            http=_Patient,
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_LEAVE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._socket = sock
        self._thread = threading.Thread(target=self._run, name="wattline-api", daemon=True)

    def start(self) -> None:
        """Returns once it answers."""
        self._thread.start()
        give_up_at = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > give_up_at:
                raise UnavailableError("the API did not start", hint="its log says more")
            time.sleep(0.01)

    def stop(self) -> None:
        """Take no more calls, finish those that run, and leave."""
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def open_socket(listen: str, *, has_tokens: bool) -> socket.socket:
    """A socket at HOST:PORT; beyond this machine only where callers have to show a token."""
    host, port = _parse(listen)
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not has_tokens and not ipaddress.ip_address(address[0]).is_loopback:
            raise UsageError(
                f"--listen {listen}: without a token this server listens on loopback only",
                hint="make one first: wattline token create NAME --role operator",
            )
        sock = socket.create_server(address[:2], family=family, backlog=512)
        # Connections inherit it. asyncio sets it only on sockets that were made with a protocol number, and
        # without it the second half of every answer waits 40 ms for the client's acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise UnavailableError(
            f"--listen {listen}: {error.strerror or error}", hint="choose an address and port that are free"
        ) from error
    return sock


def _parse(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {listen[:100]!r} is no HOST:PORT", hint="such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)
