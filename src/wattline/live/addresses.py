"""Where is a server, and with which token is it asked? What is wrong with either is said without a secret.

Both come from an environment, where a password in an address or a line's end behind a token are common.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from wattline.errors import UsageError

_TOKEN = re.compile("[!-~]+")  # what may stand in a header, without spaces
_PASSWORD = re.compile("//[^/@]*@")
_MOST_SHOWN_CHARS = 100


def server_addresses(text: str) -> list[SplitResult]:
    """The servers of one control plane, with commas between."""
    return [_address(one.strip()) for one in text.split(",")]


def base_of(address: SplitResult) -> str:
    return f"{address.scheme}://{address.netloc}"


def bearer_of(token: str | None) -> str:
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
