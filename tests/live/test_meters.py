from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from building import a_facility, a_site
from wattline.engines import LocalEngine
from wattline.errors import UnavailableError
from wattline.live import Meters
from wattline.live.meters import read_meter, write_meter
from wattline.spec import Faults
from wattline.state import Measured, Noticed
from wattline.telemetry import EmulatedFacility, Listeners, Reading
from wattline.telemetry.remarks import Remarks

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


class Scripted:
    """A source that says what a test wants it to say."""

    kind, site, every_seconds = "prometheus", "zurich", 0.01

    def __init__(self, read: Callable[[float], list[Reading]]) -> None:
        self.remarks, self._read = Remarks(), read

    def read(self, now: float) -> list[Reading]:
        return self._read(now)

    def close(self) -> None: ...


def until(meters: Meters, holds: Callable[[list[Measured | Noticed]], object]) -> list[Measured | Noticed]:
    """Read until what was told suffices."""
    found: list[Measured | Noticed] = []
    deadline = time.monotonic() + 30
    while not holds(found):
        assert time.monotonic() < deadline, found
        found += meters.read(time.time())
        time.sleep(0.01)
    return found


def with_source(engine: Listening, read: Callable[[float], list[Reading]]) -> Meters:
    site = a_site(nodes=1, gpus=2, telemetry="nvml")
    return Meters(EmulatedFacility(a_facility(site), (), 0, time.time()), engine, Listeners([Scripted(read)]))


def test_a_meter_that_never_answers_does_not_keep_the_loop_waiting(engine: Listening) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def read(at: float) -> list[Reading]:
        asked.set()
        assert go_on.wait(60)
        return []

    meters = with_source(engine, read)
    meters.read(time.time())
    assert asked.wait(30)
    began = time.monotonic()
    for _ in range(100):
        meters.read(time.time())
    assert time.monotonic() - began < 20
    go_on.set()
    meters.close()


def test_a_real_reading_is_told_with_the_time_it_was_measured(engine: Listening) -> None:
    at = float(int(time.time())) - 5
    meters = with_source(
        engine, lambda _: [Reading(f"{_NODE}/gpu0", "gpu_watts", 123.4567, at, "prometheus")]
    )
    events = until(meters, lambda found: any(isinstance(one, Measured) and one.readings for one in found))
    (event,) = [one for one in events if isinstance(one, Measured) and one.readings]
    assert (event.at, event.source) == (at, "prometheus")
    assert event.readings == ((f"{_NODE}/gpu0", "gpu_watts", 123.457),)
    meters.close()


def test_a_source_that_fails_is_told_once_and_once_more_when_it_answers_again(engine: Listening) -> None:
    works = threading.Event()

    def read(at: float) -> list[Reading]:
        if not works.is_set():
            raise UnavailableError("prometheus: no answer")
        return [Reading(f"{_NODE}/gpu0", "gpu_watts", 100.0, at, "prometheus")]

    meters = with_source(engine, read)
    first = until(meters, lambda found: found)
    for _ in range(50):
        first += meters.read(time.time())
        time.sleep(0.005)
    works.set()
    later = until(meters, lambda found: any(isinstance(event, Measured) for event in found))
    noticed = [event.say for event in first + later if isinstance(event, Noticed)]
    assert noticed == [
        "prometheus: no answer; what it said last counts until it is too old",
        "prometheus answers again",
    ]
    meters.close()


def test_a_fault_in_a_reader_is_told_and_ends_nothing(engine: Listening) -> None:
    def read(at: float) -> list[Reading]:
        raise KeyError("a bug")

    meters = with_source(engine, read)
    (event,) = until(meters, lambda found: found)
    assert isinstance(event, Noticed)
    assert event.say == "prometheus: could not be read: KeyError: 'a bug'"
    meters.close()


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


def test_more_than_fits_into_one_record_is_told_over_several_turns(engine: Listening) -> None:
    many = [(f"{_NODE}/gpu{number}", "gpu_watts") for number in range(250_000)]

    def read(at: float) -> list[Reading]:
        return [Reading(subject, quantity, 1.0, 7.0, "prometheus") for subject, quantity in many]

    meters = with_source(engine, read)
    sizes: list[int] = []
    deadline = time.monotonic() + 60
    while sum(sizes) < len(many):
        assert time.monotonic() < deadline
        events = meters.read(time.time())
        sizes.append(sum(len(event.readings) for event in events if isinstance(event, Measured)))
        time.sleep(0.01)
    assert max(sizes) <= 120_000
    meters.close()


def test_an_answer_without_end_is_said_once_and_counts_if_it_comes_after_all(
    engine: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattline.telemetry.listening._STUCK_SECONDS", 0.05)
    go_on = threading.Event()

    def read(at: float) -> list[Reading]:
        assert go_on.wait(60)
        return [Reading(f"{_NODE}/gpu0", "gpu_watts", 100.0, at, "prometheus")]

    meters = with_source(engine, read)
    events = until(meters, lambda found: found)
    for _ in range(20):
        events += meters.read(time.time())
        time.sleep(0.01)
    assert [event.say for event in events if isinstance(event, Noticed)] == [
        "prometheus: asked 0.05 s ago, and the answer has no end"
    ]
    go_on.set()
    until(meters, lambda found: any(isinstance(event, Measured) and event.readings for event in found))
    meters.close()
