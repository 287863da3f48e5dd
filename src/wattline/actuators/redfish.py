"""Redfish actuator: how does a cap reach a node whose management controller sets limits for the whole of it?

The limit is of everything in the box: what its GPUs may draw under the cap, and what the rest draws at work.
"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.errors import UnavailableError, UsageError
from wattline.facility import Node, PowerCaps, Site
from wattline.telemetry.redfish_client import Redfish


class RedfishActuator:
    """Caps attempts that hold whole nodes of one site."""

    name = "redfish"
    kinds = frozenset({"cap_power"})
    is_slow = True

    def __init__(self, site: Site, caps: PowerCaps) -> None:
        self._nodes = {node.name: node for rack in site.racks for node in rack.nodes}
        self._controllers = {
            name: Redfish(
                url,
                timeout_seconds=caps.timeout_seconds,
                secret_file=caps.secret_file,
                ca_file=caps.ca_file,
            )
            for name, url in caps.targets.items()
        }
        self._held: dict[str, Mapping[str, int]] = {}
        self._before: dict[str, float | None] = {}  # node → its limit before it was capped; None: it had none

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        self._held[attempt] = {node: gpus for node, gpus in nodes.items() if gpus}

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        nodes = self._held.get(attempt)
        if nodes is None:
            raise UsageError(f"redfish: attempt {attempt} was not begun here")
        if fraction >= 1.0:
            self._restore(nodes)
            return
        for node, gpus in nodes.items():
            if node not in self._controllers:
                raise UnavailableError(f"{node} is not capped: power_caps has no target for it")
            if gpus < self._nodes[node].gpus:
                raise UnavailableError(
                    f"{attempt} has {gpus} of the {self._nodes[node].gpus} GPUs of {node}: a limit of the "
                    "whole node would cap others too",
                    hint="whole nodes can be capped",
                )
        try:
            for node in nodes:
                controller = self._controllers[node]
                if node not in self._before:
                    self._before[node] = controller.power_limit_watts()
                controller.set_power_limit(limit_watts(self._nodes[node], fraction))
        except UnavailableError:
            self._restore(nodes, quietly=True)
            raise

    def end(self, attempt: str) -> None:
        self._restore(self._held.pop(attempt, {}))

    def close(self) -> None:
        """Limits outlive whoever set them: they are put back before leaving."""
        self._restore(dict.fromkeys(self._before, 0), quietly=True)
        for controller in self._controllers.values():
            controller.close()

    def _restore(self, nodes: Mapping[str, int], *, quietly: bool = False) -> None:
        for node in [node for node in nodes if node in self._before]:
            try:
                self._controllers[node].set_power_limit(self._before[node])
            except UnavailableError:
                if not quietly:
                    raise
                continue
            del self._before[node]


def limit_watts(node: Node, fraction: float) -> float:
    """What a whole node may draw when its GPUs are held to a share of their limit."""
    if node.device is None:
        return node.other_watts
    gpu_watts = max(node.device.least_limit_watts, fraction * node.device.limit_watts)
    return node.gpus * gpu_watts + node.other_watts
