"""How are numbers written for Prometheus, and which calls were answered how?

Text format 0.0.4, by hand: it is a page of rules, and a client library would keep its registry in global
state. `promtool check metrics` judges what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

_BUCKETS_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0)


@dataclass(slots=True)
class Metric:
    """One name with its samples; base units, the unit last in its name."""

    name: str
    kind: str
    say: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)

    def put(self, value: float, suffix: str = "", **labels: str) -> Metric:
        self.samples.append((suffix, labels, value))
        return self


class Calls:
    """Calls by endpoint and status, and how long they took. Used by one thread."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._seconds: dict[str, tuple[list[int], float, int]] = {}

    def note(self, endpoint: str, status: int, seconds: float) -> None:
        key = (endpoint, str(status))
        self._counts[key] = self._counts.get(key, 0) + 1
        buckets, total, count = self._seconds.get(endpoint, ([0] * len(_BUCKETS_SECONDS), 0.0, 0))
        for at, limit in enumerate(_BUCKETS_SECONDS):
            buckets[at] += seconds <= limit
        self._seconds[endpoint] = (buckets, total + seconds, count + 1)

    def metrics(self) -> list[Metric]:
        calls = Metric("wattline_http_requests_total", "counter", "Calls by endpoint and status.")
        for (endpoint, status), count in sorted(self._counts.items()):
            calls.put(float(count), endpoint=endpoint, status=status)
        took = Metric("wattline_http_request_duration_seconds", "histogram", "How long calls took.")
        for endpoint, (buckets, total, count) in sorted(self._seconds.items()):
            for limit, below in zip(_BUCKETS_SECONDS, buckets, strict=True):
                took.put(float(below), "_bucket", endpoint=endpoint, le=f"{limit:g}")
            took.put(float(count), "_bucket", endpoint=endpoint, le="+Inf")
            took.put(total, "_sum", endpoint=endpoint)
            took.put(float(count), "_count", endpoint=endpoint)
        return [calls, took]


def write_metrics(metrics: Iterable[Metric]) -> str:
    """The text of all that have a sample."""
    lines: list[str] = []
    for metric in metrics:
        if not metric.samples:
            continue
        lines += [f"# HELP {metric.name} {_escaped(metric.say)}", f"# TYPE {metric.name} {metric.kind}"]
        for suffix, labels, value in metric.samples:
            told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{metric.name}{suffix}{f'{{{told}}}' if told else ''} {_number(value)}")
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value) if value != int(value) else str(int(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
