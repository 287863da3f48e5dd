"""Labels: which thing of a site does a meter mean by the name it gives?"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.facility import Site


class Labels:
    """From what labels say to names of the facility; what was asked once is remembered."""

    def __init__(self, site: Site, names: Mapping[str, str]) -> None:
        nodes = [node for rack in site.racks for node in rack.nodes]
        self.gpus = {node.name: node.gpus for node in nodes}
        self.of_kind: dict[str, frozenset[str]] = {
            "node": frozenset(self.gpus),
            "rack": frozenset(rack.name for rack in site.racks),
            "supply": frozenset(supply.name for supply in site.supplies),
            "loop": frozenset(loop.name for loop in site.loops),
        }
        self.of_kind["gpu"] = frozenset(node for node, gpus in self.gpus.items() if gpus)
        self.of_kind["any"] = self.of_kind["rack"] | self.of_kind["supply"] | self.of_kind["loop"]
        self.subjects = {
            **self.of_kind,
            "gpu": frozenset(
                f"{node}/gpu{number}" for node, gpus in self.gpus.items() for number in range(gpus)
            ),
        }
        self._site = site.name
        self._names = {node.hostname: node.name for node in nodes} | dict(names)
        self._found: dict[tuple[str, str], str | None] = {}

    def find(self, kind: str, said: str) -> str | None:
        """The name here: by the facility's table or as a host is called, without its port, or its domain."""
        key = (kind, said)
        if key not in self._found:
            if len(self._found) > 4 * sum(map(len, self.of_kind.values())) + 10_000:
                self._found.clear()  # somebody makes names up
            self._found[key] = self._look_up(kind, said)
        return self._found[key]

    def _look_up(self, kind: str, said: str) -> str | None:
        host = said.rpartition(":")[0] if said.rpartition(":")[2].isdigit() else said
        for guess in (said, host, host.partition(".")[0]):
            name = self._names.get(guess, f"{self._site}/{guess}")
            if name in self.of_kind[kind]:
                return name
        return None
