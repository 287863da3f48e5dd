from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from building import a_facility, a_site
from wattline.engines import LocalEngine
from wattline.errors import UnavailableError
from wattline.live import Meters
from wattline.live.meters import read_meter, write_meter
from wattline.spec import Faults
from wattline.state import Measured, Noticed
from wattline.telemetry import EmulatedFacility, Reading

_NODE = "zurich/r1-n1"
_ATTEMPT = "r1/train/1"


class Listening(LocalEngine):
    """The local engine, with an ear for what pace it is asked for; nothing runs that could be slowed."""

    def __init__(self) -> None:
        super().__init__()
        self.duties: list[float] = []

    def throttle(self, attempt: str, duty: float) -> None:
        assert attempt == _ATTEMPT
        self.duties.append(duty)


@pytest.fixture
def engine() -> Iterator[Listening]:
    engine = Listening()
    yield engine
    engine.close()


def some_meters(engine: Listening, *faults: Mapping[str, object]) -> Meters:
    """One node of two GPUs at 400 W, idle at 0 W; time counts from zero."""
    site = a_site(nodes=1, gpus=2, telemetry="emulated")
    listed = Faults.model_validate({"faults": faults}).faults if faults else ()
    return Meters(EmulatedFacility(a_facility(site), listed, 0, 0.0), engine)


def told(meters: Meters, at: float) -> set[tuple[str, str]]:
    return {
        (subject, quantity)
        for event in meters.read(at)
        if isinstance(event, Measured)
        for subject, quantity, _ in event.readings
    }


def test_a_reading_is_told_when_it_moves_and_else_every_ten_seconds(engine: Listening) -> None:
    meters = some_meters(engine)
    everything = told(meters, 0.0)
    assert (f"{_NODE}/gpu0", "gpu_celsius") in everything
    assert told(meters, 0.5) == set()  # too soon to look again
    for second in range(1, 10):
        assert told(meters, float(second)) == set()
    assert told(meters, 10.0) == everything


def test_a_reading_that_moves_less_than_its_deadband_is_not_told(engine: Listening, tmp_path: Path) -> None:
    meters = some_meters(engine)
    told(meters, 0.0)
    meters.attach(_ATTEMPT, tmp_path, {_NODE: 2}, cpus=1.0, cap=1.0)
    meters.observe_cpu(_ATTEMPT, 0.002, 1.0)  # a fifth of a percent of 400 W
    moved = told(meters, 1.0)
    assert (_NODE, "node_watts") in moved
    assert (f"{_NODE}/gpu0", "gpu_watts") not in moved


def test_every_reading_says_when_to_look_next(engine: Listening) -> None:
    meters = some_meters(engine)
    meters.read(5.0)
    assert meters.next_at == 6.0


def test_real_meters_are_told_beside_the_emulated_ones(engine: Listening) -> None:
    def read(at: float) -> list[Reading]:
        return [Reading("host/gpu0", "gpu_watts", 123.4567, at, "nvml")]

    meters = Meters(EmulatedFacility(a_facility(a_site()), (), 0, 0.0), engine, read)
    (event,) = meters.read(0.0)
    assert isinstance(event, Measured)
    assert (event.source, event.readings) == ("nvml", (("host/gpu0", "gpu_watts", 123.457),))


def test_a_real_meter_that_falls_silent_is_told_once_and_one_that_never_spoke_is_an_error(
    engine: Listening,
) -> None:
    def read(at: float) -> list[Reading]:
        if 2.0 <= at < 4.0:
            raise UnavailableError("nvml: the driver does not answer")
        return [Reading("host/gpu0", "gpu_watts", 100.0 * at, at, "nvml")]

    meters = Meters(EmulatedFacility(a_facility(a_site()), (), 0, 0.0), engine, read)
    told = {at: [type(event).__name__ for event in meters.read(float(at))] for at in range(5)}
    assert told == {0: ["Measured"], 1: ["Measured"], 2: ["Noticed"], 3: [], 4: ["Measured"]}
    late = Meters(EmulatedFacility(a_facility(a_site()), (), 0, 0.0), engine, read)
    with pytest.raises(UnavailableError, match="does not answer"):
        late.read(2.0)


def test_a_cap_slows_the_real_process_and_is_told_to_it_once(engine: Listening, tmp_path: Path) -> None:
    meters = some_meters(engine)
    meters.attach(_ATTEMPT, tmp_path, {_NODE: 2}, cpus=1.0, cap=0.5)
    for second in range(5):
        meters.read(float(second))
    (duty,) = engine.duties
    assert 0.4 < duty < 1.0


def test_energy_is_counted_and_kept_for_whoever_comes_after_a_crash(
    engine: Listening, tmp_path: Path
) -> None:
    meters = some_meters(engine)
    meters.read(0.0)
    meters.attach(_ATTEMPT, tmp_path, {_NODE: 2}, cpus=1.0, cap=1.0)
    meters.observe_cpu(_ATTEMPT, 0.1, 0.1)  # flat out
    meters.read(10.0)
    kept = read_meter(tmp_path)
    assert kept == pytest.approx(2 * 400.0 * 10.0, rel=0.05)
    assert meters.detach(_ATTEMPT) == pytest.approx(kept)
    assert meters.detach(_ATTEMPT) == 0.0


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"joules": "1"}', '{"joules": Infinity}', "[" * 9999])
def test_a_meter_file_that_makes_no_sense_counts_nothing(tmp_path: Path, content: str) -> None:
    write_meter(tmp_path, 3.5)
    assert read_meter(tmp_path) == 3.5
    (tmp_path / "meter.json").write_text(content)
    assert read_meter(tmp_path) == 0.0
    assert read_meter(tmp_path / "nowhere") == 0.0


def test_a_folder_that_has_gone_is_told_once_and_ends_nothing(engine: Listening, tmp_path: Path) -> None:
    meters = some_meters(engine)
    meters.attach(_ATTEMPT, tmp_path / "gone", {_NODE: 2}, cpus=1.0, cap=1.0)
    noticed = [event for at in range(5) for event in meters.read(float(at)) if isinstance(event, Noticed)]
    assert [(event.subject, event.say.split(":")[0]) for event in noticed] == [
        (_ATTEMPT, "its energy could not be kept")
    ]


def test_a_fault_is_told_when_it_begins(engine: Listening) -> None:
    fault = {"name": "trip", "at": {"after": "2s"}, "loop": "zurich/loop", "flow": "50%"}
    meters = some_meters(engine, fault)
    noticed = {
        at: [event.say for event in meters.read(float(at)) if isinstance(event, Noticed)] for at in range(4)
    }
    assert noticed == {0: [], 1: [], 2: ["fault trip begins"], 3: []}


def test_what_was_never_attached_has_no_emulated_gpus_to_drive(engine: Listening) -> None:
    meters = some_meters(engine)
    meters.observe_cpu("elsewhere/1", 1.0, 1.0)
    assert told(meters, 1.0)
