"""Carrying: how do sources and results get to a site and back, when the objects are at the control plane?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from wattline.checkpoint import Rate
from wattline.engines.files import OUTPUT
from wattline.errors import UnavailableError
from wattline.live.printed import Printed
from wattline.live.uplink import Uplink
from wattline.release.goods import KeptGoods
from wattline.store import Digest, ObjectStore

_AGAIN_SECONDS = 2.0
RateOf = Callable[[], Rate | None]


class CarriedObjects(ObjectStore):
    """Objects of a site: what is missing is fetched, what is made here is remembered until it was pushed."""

    def __init__(self, root: Path, uplink: Uplink, rate: RateOf) -> None:
        super().__init__(root)
        self._uplink, self._rate = uplink, rate
        self._made = threading.local()

    def open(self, digest: str) -> BinaryIO:
        path = self.path(digest)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._uplink.fetch(Digest(digest).hex, path, self._rate())
        return super().open(digest)

    def made_here(self) -> list[Digest]:
        """By this thread, since it last asked."""
        made, self._made.digests = getattr(self._made, "digests", []), []
        return made

    def push(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            self._uplink.push(digest.hex, self.path(digest), self._rate())

    def _put(self, chunks: Iterable[bytes]) -> Digest:
        digest = super()._put(chunks)
        self._made.digests = [*getattr(self._made, "digests", []), digest]
        return digest


class CarriedGoods(KeptGoods):
    """What a phase left counts once the control plane has it: until then it is tried again, also for days."""

    def __init__(self, objects: CarriedObjects, printed: Printed) -> None:
        super().__init__(objects)
        self._carried, self._printed = objects, printed
        self._closing = threading.Event()

    def close(self) -> None:
        self._closing.set()

    def show(self, attempt: str, folder: Path) -> None:
        self._printed.finish(attempt, folder / OUTPUT)

    def pack(self, folder: Path) -> str:
        self._carried.made_here()
        digest = super().pack(folder)
        made = self._carried.made_here()
        while True:
            try:
                self._carried.push(made)
            except UnavailableError:
                if self._closing.wait(_AGAIN_SECONDS):
                    raise
            else:
                return digest
