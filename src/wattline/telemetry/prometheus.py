"""Prometheus: what do its series say of the GPUs, racks, feeds and loops of a site, and when was that?

One question for each quantity. A plain selector is asked for its last samples (`name[60s]`), because those
come with the time they were scraped at; an instant value would say only when we asked.
"""

from __future__ import annotations

import math
import re
from typing import Any
from urllib.parse import quote

import msgspec

from wattline.facility import COUNTERS, SUBJECTS, Series, Site, Source
from wattline.telemetry.asking import Asker, MeterError, TooMuchError, UnansweredError
from wattline.telemetry.labels import Labels
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remarks, named
from wattline.telemetry.sifting import Sample, Sieve

_SELECTOR = re.compile(r'[A-Za-z_:][A-Za-z0-9_:]*(?:\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})?\Z')
_BYTES_EACH = 4096  # of one series: its labels and a minute's samples, twice over
_BYTES_MORE = 1 << 18
_WINDOW_SECONDS, _WINDOW_PERIODS = 60.0, 4.0
_END_OF_TIME = 1e11  # in the year 5138
_AHEAD_SECONDS = 5.0  # clocks are not all alike
_WITHOUT = {
    "gpu_joules": ": energy is counted from watts instead",
    "gpu_power_violation_seconds": ": its exporter does not tell who is held back by a power limit",
    "gpu_thermal_violation_seconds": ": its exporter does not tell who is held back by heat",
}


class _Result(msgspec.Struct, gc=False):
    """One series; of its samples only the last is looked at, so they stay as they came."""

    metric: Any
    value: msgspec.Raw = msgspec.Raw(b"")
    values: msgspec.Raw = msgspec.Raw(b"")


class PrometheusSource:
    """One Prometheus, asked about one site."""

    kind = "prometheus"

    def __init__(self, site: Site, source: Source) -> None:
        self.site, self.every_seconds = site.name, source.every_seconds
        self.remarks = Remarks()
        self._source = source
        self._asker = Asker(
            source.url,
            timeout_seconds=source.timeout_seconds,
            secret_file=source.secret_file,
            ca_file=source.ca_file,
        )
        self._labels = Labels(site, source.names)
        self._sieve = Sieve(self.kind, site, self._labels, self.remarks, source.every_seconds)
        self._decoders = {series.quantity: _decoder(series) for series in source.series}

    def read(self, now: float) -> list[Reading]:
        """What it says now; MeterError where it answers nothing at all. What is odd is in `remarks`."""
        found: list[Reading] = []
        failures: dict[str, MeterError] = {}
        answered = unanswered = 0
        for series in self._source.series:
            quantity = series.quantity
            if unanswered == (2 if answered else 1):  # the rest would end alike, each after its timeout
                self._sieve.skip(quantity)
                continue
            try:
                found += self.take(series, self._ask(series), now)
            except MeterError as error:
                failures[quantity] = error
                unanswered += isinstance(error, UnansweredError)
                self._sieve.skip(quantity)
                continue
            answered += 1
            self.remarks.hold(self.site, f"{quantity} fails", None, f"{quantity} is told again")
        for quantity, failure in failures.items():
            if not answered:
                raise failure
            self.remarks.hold(self.site, f"{quantity} fails", f"{quantity}: {failure.message}")
        self._sieve.tell_missing()
        return found

    def close(self) -> None:
        self._asker.close()

    def _ask(self, series: Series) -> bytes:
        kind = SUBJECTS[series.quantity]
        things = sum(self._labels.gpus.values()) if kind == "gpu" else len(self._labels.of_kind[kind])
        window = max(_WINDOW_SECONDS, _WINDOW_PERIODS * self.every_seconds)
        asked = f"{series.ask}[{window:.0f}s]" if _SELECTOR.match(series.ask) else series.ask
        path = f"/api/v1/query?query={quote(asked, safe='')}"
        try:
            return self._asker.ask(path, most_bytes=_BYTES_MORE + _BYTES_EACH * things)
        except TooMuchError as error:
            raise TooMuchError(
                f"{series.ask[:100]}: {error.message}, far more than {things:,} things need",
                hint="narrow the query to this site, such as by a label",
            ) from None

    def take(self, series: Series, body: bytes, now: float) -> list[Reading]:
        """The readings of one answer."""
        try:
            told: list[_Result] = self._decoders[series.quantity].decode(body).data.result
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MeterError(f"{self._source.url}: no answer of a Prometheus: {str(error)[:200]}") from None
        quantity, what = series.quantity, f"{series.quantity} ({series.ask[:100]})"
        samples = self._samples(series, told, now, what)
        readings = self._sieve.sift(quantity, what, samples, now)
        nothing = f"nothing answers to {what}{_WITHOUT.get(quantity, '')}"
        self.remarks.hold(self.site, f"{quantity} none", None if told else nothing, f"{what} answers")
        if quantity not in COUNTERS and SUBJECTS[quantity] != "any":
            self._sieve.expect(quantity, self._labels.subjects[SUBJECTS[quantity]], readings)
        return readings

    def _samples(self, series: Series, told: list[_Result], now: float, what: str) -> dict[str, Sample]:
        """The newest of each subject; labels that lead nowhere are said."""
        kind, worth, find = SUBJECTS[series.quantity], series.worth, self._labels.find
        is_gpu, gpus = kind == "gpu", self._labels.gpus
        samples: dict[str, Sample] = {}
        strangers: set[str] = set()
        repeated: set[str] = set()
        ahead = 0.0
        for result in told:
            said, number = result.metric.thing, result.metric.gpu
            sample = _last(bytes(result.values) or bytes(result.value))
            name = find(kind, said) if said else None
            if name is None or sample is None:
                strangers.add(said or f"something without the label {series.label}")
                continue
            subject = name
            if is_gpu:
                if not number or not number.isdecimal() or len(number) > 4 or int(number) >= gpus[name]:
                    strangers.add(f"{said} GPU {number}")
                    continue
                subject = f"{name}/gpu{int(number)}"
            at = float(int(sample[0]))  # by the second: never younger than it is, and few different moments
            if at > now:
                ahead = max(ahead, at - now)
                at = now
            if subject in samples:
                repeated.add(subject)
                if samples[subject].at >= at:
                    continue
            samples[subject] = Sample(at, sample[1] * worth, name)
        hold = self.remarks.hold
        say = f"{what} tells of {named(strangers)}: not in the facility"
        hold(self.site, f"{series.quantity} strangers", say if strangers else None)
        say = f"{what} comes more than once for {named(repeated)}: the newest counts"
        hold(self.site, f"{series.quantity} repeated", say if repeated else None)
        say = f"{what} is {ahead:.0f} s ahead of our clock: it counts as of now"
        is_ahead = ahead > _AHEAD_SECONDS
        hold(self.site, f"{series.quantity} ahead", say if is_ahead else None, f"{what} is in time again")
        return samples


def _last(samples: bytes) -> tuple[float, float] | None:
    """The time and value of the last of `[[1.5,"300"],[11.5,"310"]]`; what is no number is not a number."""
    begin = samples.rfind(b"[")
    at, _, value = samples[begin + 1 : samples.find(b"]", begin)].partition(b",")
    try:
        when = float(at)
    except ValueError:
        return None
    if not 0.0 <= when < _END_OF_TIME:
        return None
    try:
        return when, float(value.strip(b' "'))
    except ValueError:
        return when, math.nan


def _decoder(series: Series) -> msgspec.json.Decoder[Any]:
    """Of an answer's labels only those that count are read: there may be a hundred thousand series."""
    renamed = {"thing": series.label, "gpu": series.gpu_label or "gpu"}
    labels = msgspec.defstruct(
        "Labels", [("thing", str | None, None), ("gpu", str | None, None)], rename=renamed, gc=False
    )
    result = msgspec.defstruct("Result", [("metric", labels)], bases=(_Result,), gc=False)
    data = msgspec.defstruct("Data", [("result", list[result])])  # type: ignore[valid-type]
    return msgspec.json.Decoder(msgspec.defstruct("Answer", [("data", data)]))
