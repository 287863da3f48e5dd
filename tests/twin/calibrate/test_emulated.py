from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from twin.calibrate.synthesis import Row, write_csv
from wattline.spec import read_facility
from wattline.state import Decision, Measured
from wattline.store import open_store
from wattline.store.steps import StepJournal
from wattline.telemetry import EmulatedFacility
from wattline.twin.calibrate import Telemetry, calibrate, read_telemetry


def loads(seconds: int) -> list[Row]:
    """What the meters of the emulated lab say while jobs come and go on its nodes."""
    facility = read_facility("lab")
    emulated = EmulatedFacility(facility, [], seed=0, began_at=1.7e9)
    generator = np.random.default_rng(1)
    nodes = [node.name for site in facility.sites for rack in site.racks for node in rack.nodes]
    rows: list[Row] = []
    used: dict[str, tuple[str, float, float]] = {}
    for second in range(seconds):
        at = 1.7e9 + second
        for node in nodes if second % 20 == 0 else ():
            if node in used and generator.random() < 0.5:
                emulated.release(used.pop(node)[0])
            elif node not in used:
                used[node] = (f"{node}-{second}", 0.0, float(generator.uniform(1.0, 4.0)))
                emulated.occupy(used[node][0], {node: 8}, 4.0)
        for node, (attempt, total, busy) in used.items():
            used[node] = (attempt, total + busy, busy)
            emulated.observe_cpu(attempt, total + busy, at)
        rows += [(one.at, one.subject, one.quantity, float(one.value)) for one in emulated.readings(at)]
    return rows


@pytest.fixture(scope="module")
def lab() -> list[Row]:
    return loads(240)


def test_times_that_were_multiplied_are_said_to_be_and_no_other_figure(
    lab: list[Row], tmp_path: Path
) -> None:
    telemetry = read_telemetry(write_csv(tmp_path / "lab.csv", lab))
    notes = {
        fit.figure.parameter: fit.note
        for fit in calibrate(read_facility("lab"), telemetry).fitted
        if fit.figure.subject in ("A100 on air", "zurich/crah")
    }
    for parameter in ("die_time_constant_seconds", "time_constant_seconds"):
        assert "times are 20 times those measured: time_scale" in notes[parameter]
    assert "time_scale" not in notes["kelvin_per_watt"] + notes["approach_kelvin"]


def assert_as_documented(telemetry: Telemetry, rel: float) -> None:
    found = {
        (fit.figure.subject, fit.figure.parameter): fit
        for fit in calibrate(read_facility("lab"), telemetry).fitted
    }
    for known in (
        ("A100 on air", "kelvin_per_watt"),
        ("A100 on air", "die_time_constant_seconds"),
        ("A100 on direct-to-chip", "kelvin_per_watt"),
        ("zurich/crah", "approach_kelvin"),
        ("zurich/crah", "time_constant_seconds"),
        ("frankfurt/cdu", "approach_kelvin"),
    ):
        interval = found[known].interval
        assert interval is not None
        assert interval.estimate == pytest.approx(found[known].figure.present, rel=rel), known


def test_the_emulated_lab_is_as_its_document_says_in_its_own_faster_time(
    lab: list[Row], tmp_path: Path
) -> None:
    assert_as_documented(read_telemetry(write_csv(tmp_path / "lab.csv", lab)), rel=0.02)


def test_a_journal_that_keeps_only_what_changed_says_the_same(lab: list[Row], tmp_path: Path) -> None:
    told: dict[tuple[str, str], tuple[float, float]] = {}
    moments: dict[float, list[tuple[str, str, float | None]]] = {}
    for at, subject, quantity, value in lab:
        before = told.get((subject, quantity))
        band = 0.1 if quantity.endswith("celsius") else 1.0
        if before is None or abs(value - before[0]) > band or at - before[1] >= 10.0:
            told[subject, quantity] = (value, at)
            moments.setdefault(at, []).append((subject, quantity, round(value, 3)))
    events = [Measured(at=at, readings=tuple(readings)) for at, readings in moments.items()]
    with open_store(tmp_path) as store:
        assert store.lease.try_acquire("test", 60.0) is not None
        StepJournal(store.journal).append(events, str, Decision(at=events[-1].at))
    telemetry = read_telemetry(tmp_path)
    assert telemetry.readings < len(lab) / 3
    assert_as_documented(telemetry, rel=0.03)
