"""Cost: joules become kilowatt-hours at the street meter, then dollars and carbon."""

from __future__ import annotations

import pytest

from wattline.physics import carbon_kg, compute_usd, energy_usd, facility_kwh


def test_energy_is_counted_at_the_street_meter() -> None:
    assert facility_kwh(3.6e6, 1.5) == pytest.approx(1.5)


def test_a_kilowatt_hour_costs_its_tariff_and_its_carbon() -> None:
    assert energy_usd(100.0, 0.12) == pytest.approx(12.0)
    assert carbon_kg(100.0, 250.0) == pytest.approx(25.0)
    assert compute_usd(8.0, 1.6) == pytest.approx(12.8)
