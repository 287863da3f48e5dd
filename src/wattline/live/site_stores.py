"""Site stores: where are the checkpoints of each site, seen from one of them?

Its own lie in its home; those of others are behind their receivers, whose addresses the control plane tells.
All sites of a fleet share one token for this.
"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.checkpoint import LocalStore, StorageError, Store
from wattline.checkpoint.stores.below import BelowStore
from wattline.checkpoint.stores.http import HttpStore
from wattline.live.home import Home

_PATIENCE_SECONDS = 10.0
_SILENCE_SECONDS = 10.0


class SiteStores:
    """Gives the store of a phase's checkpoints at a site; `receivers` is told anew with every sync."""

    def __init__(self, home: Home, site: str, token: str) -> None:
        self._home, self._site, self._token = home, site, token
        self.receivers: Mapping[str, str] = {}

    def __call__(self, site: str, run: str, phase: str) -> Store:
        if site == self._site:
            return LocalStore(self._home.checkpoints(site, run, phase))
        url = self.receivers.get(site)
        if url is None or not self._token:
            raise StorageError(
                f"checkpoints of {run}/{phase}: nobody at {site} receives any",
                hint="start the agents of both sites with WATTLINE_RECEIVER_TOKEN and --receive",
            )
        far = HttpStore(
            url, self._token, patience_seconds=_PATIENCE_SECONDS, silence_seconds=_SILENCE_SECONDS
        )
        return BelowStore(far, f"{run}/{phase}/")
