from __future__ import annotations

import numpy as np
import pytest

from twin.calibrate.conftest import Fitting
from twin.calibrate.synthesis import NODE, Row
from wattline.twin.calibrate import Outcome

GPU = f"{NODE}/gpu0"


def a_day(seed: int, *, cap_watts: float = 400.0) -> list[Row]:
    """Idle for 200 readings, busy for 200, and again; now and then memory is held while idle."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(2000):
        at, busy = 1e9 + 5.0 * number, number // 200 % 2
        watts = 391.0 if busy else (74.0 if number < 600 else 61.0)
        rows.append((at, GPU, "gpu_watts", round(watts + generator.normal(0, 1.5), 2)))
        rows.append((at, GPU, "gpu_busy_fraction", float(busy)))
        rows.append((at, GPU, "gpu_limit_watts", cap_watts))
    return rows


def test_idle_and_full_draw_are_found(fitting: Fitting) -> None:
    found = fitting(a_day(1))
    idle, full = found["idle_watts"].interval, found["full_utilisation_watts"].interval
    assert idle is not None
    assert full is not None
    assert idle.estimate == pytest.approx(61.0, abs=1.0)
    assert idle.low <= 61.0 <= idle.high
    assert full.estimate == pytest.approx(391.0, abs=1.0)
    assert found["idle_watts"].figure.path == ("devices", "A100", "idle")


def test_draw_under_a_cap_is_not_full_draw(fitting: Fitting) -> None:
    found = fitting(a_day(2, cap_watts=300.0))
    assert found["full_utilisation_watts"].outcome is Outcome.CANNOT_TELL
    assert "without a cap" in found["full_utilisation_watts"].reason


def test_a_low_draw_without_utilisation_is_not_called_idle(fitting: Fitting) -> None:
    found = fitting([row for row in a_day(3) if row[2] != "gpu_busy_fraction"])
    assert found["idle_watts"].reason == "no gpu_utilisation was given"


def test_utilisation_in_percent_is_told(fitting: Fitting) -> None:
    rows = [
        (at, subject, quantity, 100 * value if "busy" in quantity else value)
        for at, subject, quantity, value in a_day(4)
    ]
    assert "percent?" in fitting(rows)["idle_watts"].reason
