"""Site stores: where are the checkpoints of each site, seen from who runs one of them, or some?

Its own lie in its home; those of others are behind their receivers, whose addresses their agents tell the
control plane. All sites of a fleet share one token for this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from wattline.checkpoint import LocalStore, StorageError, Store
from wattline.checkpoint.stores.below import BelowStore
from wattline.checkpoint.stores.http import HttpStore
from wattline.live.home import Home

RECEIVER_TOKEN = "WATTLINE_RECEIVER_TOKEN"  # noqa: S105 - the name of a variable
_PATIENCE_SECONDS = 10.0
_SILENCE_SECONDS = 10.0


class SiteStores:
    """Gives the store of a phase's checkpoints at a site; `receivers` is told anew with every sync."""

    def __init__(self, home: Home, is_own: Callable[[str], bool]) -> None:
        self._home, self._is_own = home, is_own
        self._token = os.environ.get(RECEIVER_TOKEN, "")
        self.receivers: Mapping[str, str] = {}

    def __call__(self, site: str, run: str, phase: str) -> Store:
        if self._is_own(site):
            return LocalStore(self._home.checkpoints(site, run, phase))
        url = self.receivers.get(site)
        if url is None or not self._token:
            raise StorageError(
                f"checkpoints of {run}/{phase}: nobody hands over what lies at {site}: "
                f"an agent there with --receive does, to who shares its {RECEIVER_TOKEN}"
            )
        far = HttpStore(
            url, self._token, patience_seconds=_PATIENCE_SECONDS, silence_seconds=_SILENCE_SECONDS
        )
        return BelowStore(far, f"{run}/{phase}/")
