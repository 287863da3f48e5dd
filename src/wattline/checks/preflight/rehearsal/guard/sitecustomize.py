"""Which host would this process talk to? It is written down, and the call fails as without a network.

A network namespace makes calls fail too, where there is one, but does not tell whom they were for.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

_NOTES = os.environ.get("WATTLINE_REHEARSAL_NOTES", "")
_HERE = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120 - pathlib would slow every start


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        _refuse(arguments[0], by_name=True)
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple) and address and isinstance(address[0], str):
            _refuse(address[0], by_name=False)


def _refuse(host: object, *, by_name: bool) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    if _is_here(name) or (by_name and _is_address(name)):
        return
    note = os.open(_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(note, f"{name[:253]}\n".encode())
    os.close(note)
    import socket

    message = f"a rehearsal has no network, and this needs {name}"
    if by_name:
        raise socket.gaierror(socket.EAI_AGAIN, message)
    raise OSError(101, message)  # ENETUNREACH


def _is_here(name: str) -> bool:
    own = ("", "localhost", "::1", "0.0.0.0", "::", os.uname().nodename)  # noqa: S104 - nothing is bound
    return name in own or name.startswith("127.")


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


def _run_hidden() -> None:
    """The environment may have a sitecustomize of its own, which this one hides."""
    elsewhere = [entry for entry in sys.path if os.path.realpath(entry) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if _NOTES:
    sys.addaudithook(_watch)
_run_hidden()
