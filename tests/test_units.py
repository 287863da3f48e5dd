from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline import units
from wattline.units import Kind, QuantityError

KINDS = [value for value in vars(units).values() if isinstance(value, Kind)]
FORMATS = [
    (units.POWER, units.format_watts, 1e-3, 1e10),
    (units.DURATION, units.format_seconds, 1e-3, 3.1e9),
    (units.BANDWIDTH, units.format_bits_per_second, 1e-3, 1e15),
    (units.SIZE, units.format_bytes, 1e-3, 1e18),
    (units.FRACTION, units.format_share, 1e-3, 1.0),
]


@pytest.mark.parametrize(
    ("kind", "text", "amount"),
    [
        (units.POWER, "6.5kW", 6500.0),
        (units.POWER, " 6.5 kW ", 6500.0),
        (units.POWER, "1_000 W", 1000.0),
        (units.POWER, "1.5e1MW", 15e6),
        (units.POWER, 0, 0.0),
        (units.DURATION, "6h", 21600.0),
        (units.DURATION, "8ms", 0.008),
        (units.DURATION, ".5min", 30.0),
        (units.BANDWIDTH, "40Gbps", 40e9),
        (units.BANDWIDTH, "40 Gbit/s", 40e9),
        (units.THROUGHPUT, "2GB/s", 2e9),
        (units.SIZE, "1KiB", 1024.0),
        (units.FRACTION, "70%", 0.7),
        (units.FRACTION, 0.7, 0.7),
        (units.TEMPERATURE, "-5C", -5.0),
        (units.TEMPERATURE, "25 °C", 25.0),
        (units.TEMPERATURE_DIFFERENCE, "10K", 10.0),
        (units.FLOW, "6m3/h", 100.0),
        (units.MONEY, "0.12", 0.12),
        (units.MONEY, -0.02, -0.02),
    ],
)
def test_a_quantity_arrives_in_its_base_unit(kind: Kind, text: object, amount: float) -> None:
    assert kind.parse(text) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (6.5, "needs a unit, such as 6.5kW"),
        ("6.5", "needs a unit, such as 6.5kW"),
        ("6.5KW", "unknown unit 'KW' for a power; known units: W, kW, MW, GW"),
        ("-5kW", "lies between 0 and 1e\\+10 W"),
        ("1e30kW", "lies between 0 and 1e\\+10 W"),
        ("1e999kW", "finite"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        (10**400, "finite"),
        ("nan kW", "written as 6.5kW"),
        ("1__0kW", "unknown unit"),
        ("", "written as 6.5kW"),
        ("kW", "written as 6.5kW"),
        ("5" * 65, "written as 6.5kW"),
        (True, "written as 6.5kW"),
        (None, "written as 6.5kW"),
        ([5], "written as 6.5kW"),
    ],
)
def test_what_is_no_power_is_refused_with_what_would_be(value: object, complaint: str) -> None:
    with pytest.raises(QuantityError, match=complaint):
        units.POWER.parse(value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_accepts_the_example_its_messages_give(kind: Kind) -> None:
    assert kind.least <= kind.parse(kind.example) <= kind.most


@settings(deadline=None)
@given(text=st.text(max_size=80), kind=st.sampled_from(KINDS))
def test_any_text_is_either_a_bounded_quantity_or_refused_as_one(text: str, kind: Kind) -> None:
    try:
        amount = kind.parse(text)
    except QuantityError:
        return
    assert kind.least <= amount <= kind.most


@settings(deadline=None)
@given(data=st.data())
def test_what_is_printed_can_be_read_back_within_three_digits(data: st.DataObject) -> None:
    kind, write, least, most = data.draw(st.sampled_from(FORMATS))
    amount = data.draw(st.floats(least, most))
    assert min(kind.parse(write(amount)), kind.most) == pytest.approx(amount, rel=0.006)


@settings(deadline=None)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_more_of_a_unit_is_more(data: st.DataObject, kind: Kind) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.worth)))
    smaller, larger = sorted(data.draw(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6))))
    with suppress(QuantityError):  # beyond the kind's bounds
        assert kind.parse(f"{smaller!r}{unit}") <= kind.parse(f"{larger!r}{unit}")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("short_by_watts", 1234.0, "1.23 kW"),
        ("cap_watts", 999_700.0, "1 MW"),
        ("left_gpu_hours", 12.0, "12 GPU-hours"),
        ("left_gpu_hours", 1976.4, "1,976 GPU-hours"),
        ("limit_kwh", 999.6, "1,000 kWh"),
        ("left_kg", 12_345.0, "12,345 kg"),
        ("wait_seconds", 840.0, "14 min"),
        ("wait_minutes", 90.0, "1.5 h"),
        ("inlet_celsius", 22.04, "22.0 °C"),
        ("asked_gpus", 1.0, "1 GPU"),
        ("asked_gpus", 8.0, "8 GPUs"),
        ("left_usd", 1234.5, "1,234.50 USD"),
        ("rounds", 3.0, "3"),
    ],
)
def test_a_number_is_written_by_the_unit_its_name_ends_with(name: str, value: float, text: str) -> None:
    assert units.format_named(name, value) == text
