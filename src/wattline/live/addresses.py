"""Where is a server, and with which token is it asked? What is wrong with either is said without a secret.

Both come from an environment, where a password in an address or a line's end behind a token are common.
"""

from __future__ import annotations

import re
import ssl
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from wattline.errors import UsageError

_TOKEN = re.compile("[!-~]+")  # what may stand in a header, without spaces
_PASSWORD = re.compile("//[^/@]*@")
_MOST_SHOWN_CHARS = 100


class Servers:
    """Those of one control plane, with commas between: the one that answered last is asked first.

    Calls of several threads may turn to the next at once, which does no harm: each goes on until one answers.
    """

    def __init__(self, urls: str, token: str | None, tls: ssl.SSLContext | None = None) -> None:
        self._addresses = [_address(one.strip()) for one in urls.split(",")]
        self._token, self._tls = _bearer(token), tls
        self._at = 0

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def url(self) -> str:
        address = self._address
        return f"{address.scheme}://{address.netloc}"

    @property
    def credentials(self) -> dict[str, str]:
        """The header that says who asks."""
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def turn(self) -> None:
        """This one did not answer, or stands by: ask the next."""
        self._at += 1

    def connect(self, seconds: float) -> HTTPConnection:
        address = self._address
        host, port = address.hostname or "", address.port
        if address.scheme == "https":
            return HTTPSConnection(
                host, port, timeout=seconds, context=self._tls or ssl.create_default_context()
            )
        return HTTPConnection(host, port, timeout=seconds)

    @property
    def _address(self) -> SplitResult:
        return self._addresses[self._at % len(self._addresses)]


def _bearer(token: str | None) -> str:
    """A token as it goes into a header; empty where there is none."""
    token = (token or "").strip()
    if token and _TOKEN.fullmatch(token) is None:
        raise UsageError(
            f"WATTLINE_TOKEN: a token is one word of plain letters, digits and signs; this has others in "
            f"{len(token)} characters",
            hint="set it to one line, as `wattline token create` showed it",
        )
    return token


def _address(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_right = (
            text.isprintable()
            and parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # raises where it is no number, or too large
            and not (parts.username or parts.password or parts.query or parts.fragment)
            and parts.path in ("", "/")
        )
    except ValueError:
        is_right = False
    if not is_right:
        shown = _PASSWORD.sub("//***@", text)[:_MOST_SHOWN_CHARS]
        raise UsageError(
            f"server {shown!r}: is no address of a server: http:// or https://, a host, perhaps a port, "
            "and nothing else",
            hint="such as https://wattline.example.org:8443; WATTLINE_TOKEN says who asks",
        )
    return parts
