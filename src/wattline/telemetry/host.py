"""Host: what does this machine draw, by the meters that its kernel shows?

A power meter of the board (hwmon, in microwatts) measures all of it. Without one, counters of the processors
(powercap) measure these alone: that is said, and not told as what the machine draws.
"""

from __future__ import annotations

from pathlib import Path

from wattline.facility import Site, Source
from wattline.telemetry.asking import MeterError
from wattline.telemetry.labels import Labels
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remarks
from wattline.telemetry.sifting import Sample, Sieve

_SYS = Path("/sys/class")
_BOARD = frozenset({"power_meter", "acpi_power_meter"})


class HostSource:
    """This machine, which is the site's every node."""

    kind = "host"

    def __init__(self, site: Site, source: Source, root: Path = _SYS) -> None:
        self.site, self.every_seconds = site.name, source.every_seconds
        self.remarks = Remarks()
        self._root = root
        labels = Labels(site, {})
        self._nodes = sorted(labels.of_kind["node"])
        self._sieve = Sieve(self.kind, site, labels, self.remarks, source.every_seconds)

    def read(self, now: float) -> list[Reading]:
        watts = self._board_watts()
        if watts is None:
            processors = list(self._root.glob("powercap/intel-rapl:?"))
            what = "only its processors have meters" if processors else "it has none"
            raise MeterError(
                f"this machine has no power meter of its board: {what}",
                hint="meter it by its PDU or its management controller",
            )
        samples = {node: Sample(now, watts, node) for node in self._nodes}
        return self._sieve.sift("node_watts", "node_watts (hwmon)", samples, now)

    def close(self) -> None: ...

    def _board_watts(self) -> float | None:
        """The sum of all supplies that the board's meters see."""
        found = []
        for folder in sorted(self._root.glob("hwmon/hwmon*")):
            try:
                if (folder / "name").read_text().strip() not in _BOARD:
                    continue
                meters = (*folder.glob("power*_average"), *folder.glob("device/power*_average"))
                found += [int(meter.read_text()) * 1e-6 for meter in meters]
            except (OSError, ValueError):
                continue  # a meter that is there and cannot be read says nothing
        return sum(found) if found else None
