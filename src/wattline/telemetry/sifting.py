"""Sifting: which of the samples of a meter can be believed, and what is said of those that cannot?

What every source has in common: samples too old, not finite, beyond what the thing can draw, counters that
begin anew, and things that nobody tells of any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from wattline.facility import COUNTERS, Site
from wattline.telemetry.counting import Counters
from wattline.telemetry.labels import Labels
from wattline.telemetry.plausible import Plausible
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remarks, named

_STALE_PERIODS, _STALE_SECONDS = 3.0, 30.0
# Held back for this share of the time is worth telling, and for this one not any more.
_THROTTLES, _RUNS_FREE = 0.1, 0.02
_MOST_RATE = 1.05  # seconds in a second, as two clocks count them
_FRACTIONS = {
    "gpu_power_violation_seconds": ("gpu_power_throttle_fraction", "its power limit"),
    "gpu_thermal_violation_seconds": ("gpu_thermal_throttle_fraction", "heat"),
}


class Sample(NamedTuple):
    """What a meter said of a thing, in the quantity's own unit."""

    at: float
    value: float
    name: str  # of the thing in the facility; of a GPU, its node


class Sieve:
    """The samples of one source at one site; what is odd goes to `remarks`."""

    def __init__(self, kind: str, site: Site, labels: Labels, remarks: Remarks, every_seconds: float) -> None:
        self._kind, self._site, self._labels, self._remarks = kind, site.name, labels, remarks
        self._plausible = Plausible(site)
        self._flows = {loop.name: loop.flow_litres_per_minute for loop in site.loops}
        self._counters = {quantity: Counters() for quantity in COUNTERS}
        self._stale_seconds = max(_STALE_SECONDS, _STALE_PERIODS * every_seconds)
        self._missing: set[tuple[str, str]] = set()
        self._missed: set[tuple[str, str]] = set()  # of this round

    def sift(self, quantity: str, what: str, samples: Mapping[str, Sample], now: float) -> list[Reading]:
        """What can be believed of the samples of one quantity, by subject; `what` is asked for it."""
        readings: list[Reading] = []
        odd: dict[str, str] = {}
        oldest_at, bounds, kind = now - self._stale_seconds, self._plausible.bounds, self._kind
        is_plain = quantity not in COUNTERS and quantity != "flow_litres_per_minute"
        for subject, (at, value, name) in samples.items():
            least, most = bounds(quantity, name)
            if at < oldest_at:
                odd[subject] = f"its last sample is {now - at:.0f} s old"
            elif not math.isfinite(value):
                odd[subject] = f"it says {value}"
            elif not least <= value <= most and value != 0.0:
                odd[subject] = self._plausible.doubt(quantity, name, value)
            elif is_plain:
                readings.append(Reading(subject, quantity, value, at, kind))
            elif quantity in COUNTERS:
                readings += self._count(quantity, subject, Sample(at, value, name), odd)
            elif (whole := self._flows.get(name)) is None:
                odd[subject] = "the facility does not say the flow that it is laid out for"
            else:
                readings.append(Reading(subject, "flow_fraction", value / whole, at, kind))
        if quantity in COUNTERS:
            self._counters[quantity].keep(samples)
        self._doubt(quantity, what, odd)
        return readings

    def expect(self, quantity: str, subjects: AbstractSet[str], readings: Iterable[Reading]) -> None:
        """Note of whom nothing was told and should have been; a node that is silent, once for its GPUs."""
        gpus, silent = self._labels.gpus, dict[str, list[str]]()
        for subject in subjects - {reading.subject for reading in readings}:
            silent.setdefault(subject.rpartition("/gpu")[0] or subject, []).append(subject)
        for name, its in silent.items():
            is_whole = len(its) == gpus.get(name, 1)
            self._missed |= {(name, quantity)} if is_whole else {(subject, quantity) for subject in its}

    def skip(self, quantity: str) -> None:
        """Nobody could be asked for a quantity: who was absent in it is so as far as is known."""
        self._missed |= {missing for missing in self._missing if missing[1] == quantity}

    def tell_missing(self) -> None:
        """Who is absent since this round, and who is back: once, however many quantities that concerns."""
        missing, self._missed = self._missed, set()
        for changed, say in (
            (missing - self._missing, "no {} of {}: is the meter up?"),
            (self._missing - missing, "{} of {} is told again"),
        ):
            by_name: dict[str, list[str]] = {}
            for name, quantity in sorted(changed):
                by_name.setdefault(name, []).append(quantity)
            alike: dict[str, list[str]] = {}
            for name, quantities in by_name.items():
                alike.setdefault(", ".join(quantities), []).append(name)
            for told, names in alike.items():
                self._remarks.note(self._site, say.format(told, named(names)))
        self._missing = missing

    def _count(self, quantity: str, subject: str, sample: Sample, odd: dict[str, str]) -> Iterable[Reading]:
        known = self._counters[quantity].rate(subject, sample.value, sample.at)
        if known is None:
            return ()
        rate, is_reset = known
        if is_reset:
            self._remarks.note(subject, f"{quantity} began anew: the machine or its driver was started again")
        if quantity == "gpu_joules":
            if rate > self._plausible.bounds("gpu_watts", sample.name)[1]:
                odd[subject] = self._plausible.doubt("gpu_watts", sample.name, rate)
                return ()
            return (Reading(subject, quantity, sample.value, sample.at, self._kind),)
        if rate > _MOST_RATE:
            odd[subject] = f"it was held back for {rate:.3g} s a second: its unit is smaller than was said"
            return ()
        fraction, why = _FRACTIONS[quantity]
        share, over = min(1.0, rate), f"no longer held back by {why}"
        if share >= _THROTTLES:
            say = f"held back by {why} for {100 * share:.0f} % of the time"
            self._remarks.hold(subject, quantity, say, over)
        elif share <= _RUNS_FREE:
            self._remarks.hold(subject, quantity, None, over)
        return (Reading(subject, fraction, share, sample.at, self._kind),)

    def _doubt(self, quantity: str, what: str, odd: Mapping[str, str]) -> None:
        first = min(odd, default="")
        say = f"{what} is not believed of {named(odd)}; of {first}: {odd[first]}" if odd else None
        self._remarks.hold(self._site, f"{quantity} odd", say, f"{what} is believed again")
