"""Telemetry of a site, as people write it: what is asked for readings, and what sets power limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from wattline.facility import SUBJECTS, PowerCaps, Series, Source, units_of
from wattline.spec.document import Document
from wattline.spec.quantities import Number, Seconds
from wattline.spec.ranges import check_name_or_range, names_in

# What the exporter of NVIDIA's DCGM says without further ado. Its violation counters are in nanoseconds,
# whatever older comments of its say, and its energy is in millijoules.
DCGM: dict[str, tuple[str, str]] = {
    "gpu_watts": ("DCGM_FI_DEV_POWER_USAGE", "W"),
    "gpu_celsius": ("DCGM_FI_DEV_GPU_TEMP", "C"),
    "gpu_joules": ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "mJ"),
    "gpu_power_violation_seconds": ("DCGM_FI_DEV_POWER_VIOLATION", "ns"),
    "gpu_thermal_violation_seconds": ("DCGM_FI_DEV_THERMAL_VIOLATION", "ns"),
}
_DCGM_LABELS = ("Hostname", "gpu")
_EVERY_SECONDS = {"nvml": 1.0}
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_OID = re.compile(r"(?:0|[1-9][0-9]{0,9})(?:\.(?:0|[1-9][0-9]{0,9})){2,127}\Z")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?\Z")
_FIELDS = ("time_scale", "url", "every", "timeout", "secret_file", "ca_file", "series", "targets", "names")
_ALLOWED: dict[str, frozenset[str]] = {
    "emulated": frozenset({"time_scale"}),
    "none": frozenset(),
    "nvml": frozenset({"every"}),
    "host": frozenset({"every"}),
    "prometheus": frozenset({"url", "every", "timeout", "secret_file", "ca_file", "series", "names"}),
    "redfish": frozenset({"targets", "every", "timeout", "secret_file", "ca_file"}),
    "snmp": frozenset({"targets", "every", "timeout", "secret_file", "series"}),
}


def check_url(value: str) -> str:
    """http or https, with a host and without a secret in it."""
    parts = urlsplit(value)
    if len(value) > 1024 or not value.isprintable() or parts.scheme not in ("http", "https"):
        raise ValueError("a URL begins with http:// or https://, such as http://prometheus:9090")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("the port of a URL is a number from 0 to 65535") from None
    if not parts.hostname or parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("a URL has a host, and no user, password, ? or #; secrets go into secret_file")
    return value.rstrip("/")


def check_absolute_path(value: str) -> str:
    if not 1 < len(value) <= 1024 or not value.isprintable() or not value.startswith("/"):
        raise ValueError("this path is absolute and has up to 1024 characters")
    if ".." in value.split("/"):
        raise ValueError("this path has no ..")
    return value


def _check_label(value: str) -> str:
    if _LABEL.match(value) is None:
        raise ValueError("a label is letters, digits and underscores, and does not begin with a digit")
    return value


def _check_query(value: str) -> str:
    if not 1 <= len(value) <= 2000 or not value.isprintable():
        raise ValueError("a query has 1 to 2000 characters on one line")
    return value


def _check_oid(value: str) -> str:
    if _OID.match(value) is None:
        raise ValueError("an OID is written in digits, such as 1.3.6.1.4.1.318.1.1.26.4.3.1.5.1")
    return value


def _check_quantity(value: str) -> str:
    if value not in SUBJECTS:
        raise ValueError(f"a series is one of {', '.join(SUBJECTS)}")
    return value


def _written(value: object) -> object:
    """OIDs and labels look like numbers to YAML, now and then."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Url = Annotated[str, AfterValidator(check_url)]
AbsolutePath = Annotated[str, AfterValidator(check_absolute_path)]
LabelName = Annotated[str, AfterValidator(_check_label)]
LabelValue = Annotated[str, BeforeValidator(_written), Field(min_length=1, max_length=200)]
Target = Annotated[str, AfterValidator(check_name_or_range)]
Address = Annotated[str, Field(min_length=1, max_length=1024)]


class SeriesDocument(Document):
    """What to ask for one quantity, and how to read the answer."""

    query: Annotated[str, AfterValidator(_check_query)] | None = None
    oid: Annotated[str, BeforeValidator(_written), AfterValidator(_check_oid)] | None = None
    label: LabelName | None = None  # whose value names the node, rack, supply or loop
    gpu: LabelName | None = None  # whose value is the number of the GPU
    unit: Annotated[str, Field(max_length=8)] | None = (
        None  # the one that the quantity ends with, unless said
    )
    scale: Annotated[Number, Field(gt=0, le=1e12)] = 1.0  # what the meter says times this is in the unit


class Telemetry(Document):
    """One source of readings; a site may have several."""

    source: Literal["emulated", "prometheus", "nvml", "redfish", "snmp", "host", "none"] = "emulated"
    time_scale: Annotated[Number, Field(ge=1, le=10_000)] = 1.0
    url: Url | None = None
    every: Annotated[Seconds, Field(ge=1, le=3600)] | None = None
    timeout: Annotated[Seconds, Field(gt=0, le=300)] | None = None
    secret_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None
    series: dict[Annotated[str, AfterValidator(_check_quantity)], SeriesDocument | None] = Field(
        default_factory=dict
    )
    targets: Annotated[dict[Target, Address], Field(max_length=20_000)] = Field(default_factory=dict)
    names: Annotated[dict[LabelValue, Target], Field(max_length=200_000)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_its_source(self) -> Telemetry:
        allowed = _ALLOWED[self.source]
        for name in _FIELDS:
            if (
                name in self.model_fields_set
                and name not in allowed
                and getattr(self, name) not in (None, {})
            ):
                if name == "time_scale" and self.time_scale == 1:
                    continue
                if name == "time_scale":
                    raise ValueError("only emulated telemetry has a time_scale")
                raise ValueError(f"telemetry from {self.source} has no {name}")
        if self.source == "prometheus" and self.url is None:
            raise ValueError("telemetry from prometheus says its url, such as http://prometheus:9090")
        if self.source in ("redfish", "snmp") and not self.targets:
            raise ValueError(f"telemetry from {self.source} says its targets: what is metered, and where")
        if self.source == "snmp" and not self.series:
            raise ValueError("telemetry from snmp says its series, such as supply_watts: {oid: …}")
        for target in self.targets.values():
            _check_address(self.source, target)
        for quantity, series in self.series.items():
            _check_series(self.source, quantity, series)
        for said, called in self.names.items():
            if ".." in said:
                check_name_or_range(said)
            if len(names_in(said)) != len(names_in(called)):
                raise ValueError(f"{said} and {called} stand for different numbers of names")
        return self

    def build(self, site: str) -> Source:
        """The same, with the names of its site."""
        return Source(
            kind=self.source,
            url=self.url or "",
            every_seconds=self.every or _EVERY_SECONDS.get(self.source, 10.0),
            timeout_seconds=self.timeout or 5.0,
            secret_file=self.secret_file or "",
            ca_file=self.ca_file or "",
            series=tuple(self._series()),
            targets=_unrolled(site, self.targets),
            names={
                one: f"{site}/{other}"
                for said, called in self.names.items()
                for one, other in zip(names_in(said), names_in(called), strict=True)
            },
        )

    def _series(self) -> Iterator[Series]:
        if self.source == "prometheus":
            usual = {name: SeriesDocument(query=ask, unit=unit) for name, (ask, unit) in DCGM.items()}
        else:
            usual = {}
        for quantity, series in {**usual, **self.series}.items():
            if series is None:
                continue
            units = units_of(quantity)
            is_gpu = SUBJECTS[quantity] == "gpu"
            label = _DCGM_LABELS[0] if is_gpu or SUBJECTS[quantity] == "node" else SUBJECTS[quantity]
            yield Series(
                quantity=quantity,
                ask=series.query or series.oid or "",
                label=series.label or ("name" if label == "any" else label),
                gpu_label=(series.gpu or _DCGM_LABELS[1]) if is_gpu else "",
                worth=series.scale * units[series.unit or next(iter(units))],
            )


def _unrolled(site: str, targets: Mapping[str, str]) -> dict[str, str]:
    """`r1..r8: 10.0.1.{}` stands for eight; {} is the number at the end of each name."""
    found = {}
    for written, address in targets.items():
        for name in names_in(written):
            number = re.search(r"[0-9]*\Z", name)
            found[f"{site}/{name}"] = address.replace("{}", number[0] if number else "")
    return found


def _check_address(source: str, address: str) -> None:
    plain = address.replace("{}", "1")
    if source == "redfish":
        check_url(plain)
    elif _ADDRESS.match(plain) is None:
        raise ValueError(f"an SNMP target is host or host:port, got {address!r}")


def _check_series(source: str, quantity: str, series: SeriesDocument | None) -> None:
    if series is None:
        return
    asked = series.query if source == "prometheus" else series.oid
    other = series.oid if source == "prometheus" else series.query
    if asked is None or other is not None:
        what = "query" if source == "prometheus" else "oid"
        raise ValueError(f"series {quantity} from {source} says its {what}, and nothing else to ask")
    known = units_of(quantity)
    if series.unit is not None and series.unit not in known:
        raise ValueError(f"series {quantity} comes in {', '.join(known)}, not in {series.unit!r}")
    if source == "snmp" and SUBJECTS[quantity] == "gpu":
        raise ValueError(f"series {quantity} is of a GPU; SNMP tells of nodes, racks, supplies and loops")


class PowerCapsDocument(Document):
    """What sets the power limits of a site's nodes; without it no job there is capped."""

    by: Literal["helper", "redfish"]
    command: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=50)
    ] = ()
    targets: Annotated[dict[Target, Url], Field(max_length=20_000)] = Field(default_factory=dict)
    secret_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None
    timeout: Annotated[Seconds, Field(gt=0, le=300)] = 5.0

    @model_validator(mode="after")
    def _fits_its_kind(self) -> PowerCapsDocument:
        if self.by == "helper" and (not self.command or self.targets):
            raise ValueError("caps by helper say their command, such as [wattline, node-helper]; no targets")
        if self.by == "redfish" and (not self.targets or self.command):
            raise ValueError("caps by redfish say their targets, a URL for each node; no command")
        return self

    def build(self, site: str) -> PowerCaps:
        return PowerCaps(
            by=self.by,
            command=self.command,
            targets=_unrolled(site, self.targets),
            secret_file=self.secret_file or "",
            ca_file=self.ca_file or "",
            timeout_seconds=self.timeout,
        )


def write_source(source: Source, prefix: str) -> dict[str, object]:
    """The way back: the fields of a Telemetry, written out."""
    asked = "query" if source.kind == "prometheus" else "oid"
    series: dict[str, object] = dict.fromkeys(DCGM) if source.kind == "prometheus" else {}
    for one in source.series:
        fields = {asked: one.ask, "label": one.label or None, "gpu": one.gpu_label or None}
        series[one.quantity] = {**fields, "scale": one.worth}
    written = {
        "url": source.url,
        "every": f"{source.every_seconds!r}s",
        "timeout": f"{source.timeout_seconds!r}s",
        "secret_file": source.secret_file,
        "ca_file": source.ca_file,
        "series": series,
        "targets": {name.removeprefix(prefix): address for name, address in source.targets.items()},
        "names": {said: name.removeprefix(prefix) for said, name in source.names.items()},
    }
    allowed = _ALLOWED[source.kind]
    return {
        "source": source.kind,
        **{name: value for name, value in written.items() if value and name in allowed},
    }


def write_power_caps(caps: PowerCaps, prefix: str) -> dict[str, object]:
    return {
        "by": caps.by,
        "command": list(caps.command),
        "targets": {name.removeprefix(prefix): address for name, address in caps.targets.items()},
        "secret_file": caps.secret_file or None,
        "ca_file": caps.ca_file or None,
        "timeout": f"{caps.timeout_seconds!r}s",
    }
