from __future__ import annotations

import numpy as np
import pytest

from twin.calibrate.conftest import Fitting
from twin.calibrate.synthesis import NODE, Row
from wattline.twin.calibrate import Fit, Outcome

SPEEDS = {400.0: 1.0, 300.0: 0.95, 200.0: 0.8}


def a_sweep(seed: int, subject: str, limit_of: str, caps: dict[float, float] = SPEEDS) -> list[Row]:
    """Fifty readings at each cap, twice over."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    for number, cap in enumerate(cap for _ in range(2) for cap in caps for _ in range(50)):
        at = 1e9 + 10.0 * number
        rows.append((at, limit_of, "gpu_limit_watts", cap))
        rows.append(
            (at, subject, "throughput", 1234.0 * caps[cap] * float(np.exp(generator.normal(0, 0.02))))
        )
    return rows


def points(fits: tuple[Fit, ...]) -> dict[float | None, Fit]:
    return {fit.figure.cap_fraction: fit for fit in fits if fit.figure.parameter == "speed_under_cap"}


@pytest.mark.parametrize(
    ("subject", "limit_of"),
    [(f"{NODE}/gpu1", f"{NODE}/gpu1"), (NODE, f"{NODE}/gpu0"), ("bert-large", "bert-large")],
    ids=["gpu", "node", "job"],
)
def test_each_cap_that_was_set_gives_a_point(subject: str, limit_of: str, fitting: Fitting) -> None:
    found = points(fitting(a_sweep(1, subject, limit_of)).calibration.fits)
    assert list(found) == [0.75, 0.5]
    for cap_fraction, truth in ((0.75, 0.95), (0.5, 0.8)):
        interval = found[cap_fraction].interval
        assert interval is not None
        assert interval.low <= truth <= interval.high
        assert interval.estimate == pytest.approx(truth, rel=0.02)
    assert found[0.5].figure.present == pytest.approx(
        0.631, abs=1e-3
    )  # at full draw: a V100's, above its own idle watts


def test_a_cap_that_never_changed_tells_nothing(fitting: Fitting) -> None:
    (point,) = points(fitting(a_sweep(2, NODE, f"{NODE}/gpu0", {300.0: 0.9})).calibration.fits).values()
    assert point.outcome is Outcome.CANNOT_TELL
    assert "did not run both with and without a cap" in point.reason


def test_throughput_of_a_hot_gpu_is_not_laid_at_the_caps_door(fitting: Fitting) -> None:
    gpu = f"{NODE}/gpu0"
    rows = a_sweep(3, gpu, gpu)
    hot = [(at, gpu, "gpu_celsius", 88.0) for at, _, quantity, _ in rows if quantity == "throughput"]
    (point,) = points(fitting([*rows, *hot]).calibration.fits).values()
    assert point.outcome is Outcome.CANNOT_TELL
