"""Site stores: where are the checkpoints of each site, seen from who runs one of them, or some?

Its own lie in its home; those of others are behind their receivers, whose addresses their agents tell the
control plane. All sites of a fleet share one token for this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from wattline.checkpoint import LocalStore, StorageError, Store, list_checkpoints
from wattline.checkpoint.receiver import Receiver
from wattline.checkpoint.stores.below import BelowStore
from wattline.checkpoint.stores.http import HttpStore
from wattline.errors import UsageError
from wattline.live.home import Home

RECEIVER_TOKEN = "WATTLINE_RECEIVER_TOKEN"  # noqa: S105 - the name of a variable
_EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 - to refuse it
_PATIENCE_SECONDS = 10.0
_SILENCE_SECONDS = 10.0


class SiteStores:
    """Gives the store of a phase's checkpoints at a site; `receivers` is told anew with every sync."""

    def __init__(self, home: Home, is_own: Callable[[str], bool]) -> None:
        self._home, self._is_own = home, is_own
        self._token = os.environ.get(RECEIVER_TOKEN, "")
        self.receivers: Mapping[str, str] = {}

    def __call__(self, site: str, run: str, phase: str) -> Store:
        url, here = self.receivers.get(site), LocalStore(self._home.checkpoints(site, run, phase))
        if self._is_own(site) and (not url or not self._token or list_checkpoints(here)):
            return here  # else what a server saved that ran the site before
        if not url or not self._token:
            raise StorageError(
                f"checkpoints of {run}/{phase}: nobody hands over what lies at {site}: "
                f"an agent there, or the server, does with --receive, to who shares its {RECEIVER_TOKEN}"
            )
        address, below = _split(url)
        far = HttpStore(
            address, self._token, patience_seconds=_PATIENCE_SECONDS, silence_seconds=_SILENCE_SECONDS
        )
        return BelowStore(far, f"{below}{run}/{phase}/")


def make_receiver(receive: str, folder: Path) -> Receiver:
    """At `HOST:PORT`, which others are told: so no address that means each of them."""
    host, _, port = receive.rpartition(":")
    token = os.environ.get(RECEIVER_TOKEN, "")
    if not token:
        raise UsageError(
            f"--receive {receive}: needs a token that all sites share", hint=f"set {RECEIVER_TOKEN}"
        )
    if not host or not port.isdigit():
        raise UsageError(f"--receive {receive}: is no HOST:PORT", hint="such as 10.0.0.5:8470")
    if host in _EVERYWHERE:
        raise UsageError(
            f"--receive {receive}: others are told this address, and there it means themselves",
            hint="name the one at which other sites reach this machine, such as 10.0.0.5:8470",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return Receiver(folder, token, host=host, port=int(port))


def receiver_of(url: str, site: str) -> str:
    """Where a server that runs several sites hands over the checkpoints of one; see `Home.checkpoints`."""
    return f"{url}/{site}/checkpoints"


def _split(url: str) -> tuple[str, str]:
    """The address of a receiver, and the folder below it with a slash; an agent's has one site only."""
    parts = urlsplit(url)
    below = parts.path.strip("/")
    return f"{parts.scheme}://{parts.netloc}", f"{below}/" if below else ""
