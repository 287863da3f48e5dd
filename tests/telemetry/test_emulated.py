"""Emulated facility: real work heats it, faults break it, and throttles come back as speed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.errors import DocumentError, UsageError, WattlineError
from wattline.facility import DEVICES, Facility
from wattline.physics import LimitedBy
from wattline.spec.faults import Fault
from wattline.telemetry import EmulatedFacility

BEGAN_AT = 1_760_000_000.0
A100 = DEVICES["A100"]


def a_fault(**words: object) -> Fault:
    return Fault.model_validate({"name": "broken", "at": {"after": "20s"}, **words})


def emulate(facility: Facility, *faults: Fault, seed: int = 7) -> EmulatedFacility:
    return EmulatedFacility(facility, faults, seed, BEGAN_AT)


class Worker:
    """An attempt that keeps its CPUs busy at the duty it is given, as a real process would."""

    def __init__(
        self, facility: EmulatedFacility, placement: dict[str, int], attempt: str = "job.1", busy: float = 1.0
    ) -> None:
        self.facility, self.attempt, self.busy = facility, attempt, busy
        self.cpu_seconds, self.elapsed = 0.0, 0.0
        facility.occupy(attempt, placement, cpus=2.0)

    def run(self, seconds: float, tick: float = 0.5) -> Worker:
        end = self.elapsed + seconds
        while self.elapsed < end - 1e-9:
            self.elapsed += tick
            self.cpu_seconds += 2.0 * tick * self.busy * self.facility.speed(self.attempt)
            self.facility.advance(BEGAN_AT + self.elapsed)
            self.facility.observe_cpu(self.attempt, self.cpu_seconds, BEGAN_AT + self.elapsed)
        return self

    def read(self, subject: str, quantity: str) -> float:
        return read(self.facility, subject, quantity, self.elapsed)


def read(facility: EmulatedFacility, subject: str, quantity: str, elapsed: float = 0.0) -> float:
    (value,) = (
        reading.value
        for reading in facility.readings(BEGAN_AT + elapsed)
        if (reading.subject, reading.quantity) == (subject, quantity)
    )
    return value


def test_an_idle_facility_begins_at_rest_and_stays_there(lab: Facility) -> None:
    facility = emulate(lab)
    before = facility.readings(BEGAN_AT)
    after = facility.readings(BEGAN_AT + 3600.0)
    assert [reading.value for reading in after] == pytest.approx([reading.value for reading in before])
    assert {reading.source for reading in after} == {"emulated"}
    assert {reading.at for reading in after} == {BEGAN_AT + 3600.0}
    assert read(facility, "zurich/r1-n1/gpu0", "gpu_watts", 3600.0) == A100.idle_watts


def test_a_healthy_site_keeps_a_busy_a100_well_under_its_throttle(lab: Facility) -> None:
    worker = Worker(emulate(lab), {"zurich/r1-n1": 8}).run(60.0)
    assert worker.read("zurich/r1-n1/gpu0", "gpu_watts") == pytest.approx(400.0, rel=0.01)
    hottest = max(worker.read(f"zurich/r1-n1/gpu{number}", "gpu_celsius") for number in range(8))
    assert 60.0 < hottest < 75.0
    assert worker.facility.speed("job.1") == 1.0
    assert worker.facility.limited_by("job.1") is LimitedBy.NONE


def test_a_failing_pump_drives_a_busy_a100_over_its_throttle_within_seconds(lab: Facility) -> None:
    worker = Worker(emulate(lab, a_fault(loop="crah", flow="20%")), {"zurich/r1-n1": 8}).run(20.0)
    assert worker.facility.speed("job.1") == 1.0
    worker.run(15.0)
    assert worker.read("zurich/crah", "flow_fraction") == 0.2
    assert worker.read("zurich/r1-n1/gpu0", "gpu_celsius") > A100.throttle_celsius
    assert worker.facility.speed("job.1") < 1.0
    assert worker.facility.limited_by("job.1") is LimitedBy.HEAT


def test_a_power_cap_taken_in_time_keeps_the_same_failure_below_the_throttle(lab: Facility) -> None:
    worker = Worker(emulate(lab, a_fault(loop="crah", flow="20%")), {"zurich/r1-n1": 8}).run(20.0)
    worker.facility.set_power_cap("job.1", 0.7)
    worker.run(60.0)
    assert worker.read("zurich/r1-n1/gpu0", "gpu_watts") == pytest.approx(280.0)
    assert worker.read("zurich/r1-n1/gpu0", "gpu_celsius") < A100.throttle_celsius
    assert worker.facility.speed("job.1") == pytest.approx(0.941)
    assert worker.facility.limited_by("job.1") is LimitedBy.POWER


def test_a_stopped_pump_throttles_before_any_device_shuts_down_and_flow_brings_it_back(lab: Facility) -> None:
    fault = a_fault(loop="frankfurt/cdu", flow="0%", lasts="2s")
    worker = Worker(emulate(lab, fault), {"r1-n9": 8}).run(20.0)
    slowest = 1.0
    for _ in range(40):
        slowest = min(slowest, worker.run(0.1, tick=0.1).facility.speed("job.1"))
    assert 0.0 < slowest <= 0.5
    assert worker.run(60.0).facility.speed("job.1") == 1.0


def test_a_pump_that_stays_stopped_ends_in_shutdown_without_draw(lab: Facility) -> None:
    worker = Worker(emulate(lab, a_fault(loop="cdu", flow="0%")), {"r1-n9": 8}).run(200.0)
    assert worker.facility.speed("job.1") == 0.0
    watts = [worker.read(f"frankfurt/r1-n9/gpu{number}", "gpu_watts") for number in range(8)]
    assert min(watts) == 0.0


def test_warmer_supply_raises_every_die_by_as_much_in_the_end(lab: Facility) -> None:
    fault = a_fault(loop="crah", supply_temperature="27C", lasts="300s")
    facility = emulate(lab, fault)
    before = read(facility, "zurich/r1-n1/gpu3", "gpu_celsius", 10.0)
    assert read(facility, "zurich/r1-n1/gpu3", "gpu_celsius", 300.0) == pytest.approx(before + 5.0, abs=0.1)
    assert read(facility, "zurich/r1-n1/gpu3", "gpu_celsius", 600.0) == pytest.approx(before, abs=0.1)


@pytest.mark.parametrize(
    ("words", "subject", "quantity", "before", "during"),
    [
        ({"supply": "zurich/a", "rating": "50%"}, "zurich/a", "cap_watts", 16_000.0, 8_000.0),
        ({"rack": "zurich/r1", "rating": "60%"}, "zurich/r1", "cap_watts", 15_000.0, 9_000.0),
        ({"link": "zrh-fra", "bandwidth": "10%"}, "zrh-fra", "cap_bits_per_second", 10e9, 1e9),
        ({"link": "zrh-fra", "bandwidth": "10%"}, "zrh-fra:training", "cap_bits_per_second", 9e9, 0.9e9),
    ],
)
def test_a_fault_changes_what_its_subject_can_carry_until_it_ends(
    lab: Facility, words: dict[str, object], subject: str, quantity: str, before: float, during: float
) -> None:
    facility = emulate(lab, a_fault(lasts="10s", **words))
    values = [read(facility, subject, quantity, elapsed) for elapsed in (19.9, 20.0, 29.9, 30.0)]
    assert values == pytest.approx([before, during, during, before])


def test_a_fault_at_a_step_begins_when_its_phase_gets_there(lab: Facility) -> None:
    facility = emulate(lab, a_fault(at={"phase": "train", "step": 40}, loop="crah", flow="20%"))
    facility.advance(BEGAN_AT + 5.0)
    facility.observe_step("prepare", 100)
    facility.observe_step("train", 39)
    assert facility.active_faults() == []
    facility.observe_step("train", 41)
    facility.observe_step("train", 42)
    assert [fault.name for fault in facility.active_faults()] == ["broken"]
    assert [(fault.name, at) for fault, at in facility.faults_fired] == [("broken", BEGAN_AT + 5.0)]


def test_a_timed_fault_is_journaled_at_its_own_moment_however_late_it_is_noticed(lab: Facility) -> None:
    facility = emulate(lab, a_fault(supply="zurich/a", rating="50%", lasts="10s"))
    facility.advance(BEGAN_AT + 1000.0)
    assert [at for _, at in facility.faults_fired] == [BEGAN_AT + 20.0]
    assert facility.active_faults() == []


def test_of_two_faults_on_one_loop_the_worse_counts(lab: Facility) -> None:
    facility = emulate(lab, a_fault(loop="crah", flow="50%"), a_fault(loop="crah", flow="30%", lasts="5s"))
    flows = [read(facility, "zurich/crah", "flow_fraction", elapsed) for elapsed in (19.0, 21.0, 26.0)]
    assert flows == [1.0, 0.3, 0.5]


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ({"loop": "crab", "flow": "50%"}, "zurich/crah"),
        ({"rack": "r1", "rating": "50%"}, "zurich/r1"),  # two sites have one: which?
    ],
)
def test_a_fault_that_does_not_name_one_thing_is_refused_with_what_exists(
    lab: Facility, words: dict[str, object], known: str
) -> None:
    with pytest.raises(DocumentError, match=known):
        emulate(lab, a_fault(**words))


def test_watts_add_up_from_gpus_to_the_feed(lab: Facility) -> None:
    worker = Worker(emulate(lab), {"zurich/r1-n1": 8}).run(10.0)
    gpus = sum(worker.read(f"zurich/r1-n1/gpu{number}", "gpu_watts") for number in range(8))
    assert worker.read("zurich/r1-n1", "node_watts") == pytest.approx(gpus + 800.0, rel=0.01)
    nodes = sum(worker.read(f"zurich/{name}", "node_watts") for name in ("r1-n1", "r1-n2", "r1-c1"))
    rack_watts = worker.read("zurich/r1", "rack_watts")
    assert rack_watts == pytest.approx(nodes)
    assert worker.read("zurich/a", "supply_watts") == pytest.approx(rack_watts / 2)
    assert worker.read("zurich/feed", "supply_watts") == pytest.approx(rack_watts)
    assert worker.read("zurich/crah", "loop_heat_watts") == pytest.approx(rack_watts)


def test_a_box_without_gpus_draws_by_how_busy_its_cpus_are(lab: Facility) -> None:
    facility = emulate(lab)
    idle_watts = read(facility, "zurich/r1-c1", "node_watts")
    facility.occupy("prepare.1", {"r1-c1": 0}, cpus=64.0)
    facility.advance(BEGAN_AT + 10.0)
    facility.observe_cpu("prepare.1", 640.0, BEGAN_AT + 10.0)
    assert idle_watts == pytest.approx(280.0)
    assert read(facility, "zurich/r1-c1", "node_watts", 10.0) == pytest.approx(800.0)
    assert facility.speed("prepare.1") == 1.0


def test_an_attempt_pays_for_its_gpus_and_its_part_of_the_box(lab: Facility) -> None:
    worker = Worker(emulate(lab), {"zurich/r1-n1": 4})
    worker.run(1.0)
    start = worker.facility.energy_joules("job.1")
    worker.run(100.0)
    box_watts = 800.0 * (0.35 + 0.65 * 0.5)
    spent = worker.facility.energy_joules("job.1") - start
    assert spent == pytest.approx(100.0 * (4 * 400.0 + box_watts / 2), rel=1e-3)
    worker.facility.release("job.1")
    worker.facility.advance(BEGAN_AT + 500.0)
    assert worker.facility.energy_joules("job.1") == pytest.approx(start + spent)


def test_half_the_cpu_time_is_half_the_way_from_idle_to_limit(lab: Facility) -> None:
    worker = Worker(emulate(lab), {"zurich/r1-n1": 1}, busy=0.5).run(10.0)
    assert worker.read("zurich/r1-n1/gpu0", "gpu_watts") == pytest.approx(68.0 + 166.0)


def test_a_released_gpu_cools_down_over_time_not_at_once(lab: Facility) -> None:
    worker = Worker(emulate(lab), {"zurich/r1-n1": 1}).run(60.0)
    busy_celsius = worker.read("zurich/r1-n1/gpu0", "gpu_celsius")
    worker.facility.release("job.1")
    after = [
        read(worker.facility, "zurich/r1-n1/gpu0", "gpu_celsius", 60.0 + wait) for wait in (0.0, 2.0, 120.0)
    ]
    assert after[0] == pytest.approx(busy_celsius)
    assert busy_celsius > after[1] > after[2]
    assert after[2] == pytest.approx(read(emulate(lab), "zurich/r1-n1/gpu0", "gpu_celsius"), abs=0.1)


def test_two_attempts_share_a_node_and_each_has_its_own_cap(lab: Facility) -> None:
    facility = emulate(lab)
    Worker(facility, {"zurich/r1-n1": 3}, "one.1").run(5.0)
    facility.occupy("two.1", {"r1-n1": 5}, cpus=1.0)
    facility.set_power_cap("two.1", 0.5)
    assert facility.speed("one.1") == 1.0
    assert facility.speed("two.1") == pytest.approx(0.853)
    limits = [read(facility, f"zurich/r1-n1/gpu{number}", "gpu_limit_watts", 5.0) for number in (2, 3)]
    assert limits == [400.0, 200.0]
    with pytest.raises(UsageError, match="0 are free"):
        facility.occupy("three.1", {"r1-n1": 1}, cpus=1.0)


def test_a_counter_that_starts_again_is_not_taken_for_negative_work(lab: Facility) -> None:
    facility = emulate(lab)
    facility.occupy("job.1", {"r1-n1": 1}, cpus=1.0)
    for elapsed, cpu_seconds in ((1.0, 1.0), (2.0, 0.2), (3.0, 1.2)):
        facility.advance(BEGAN_AT + elapsed)
        facility.observe_cpu("job.1", cpu_seconds, BEGAN_AT + elapsed)
        assert read(facility, "zurich/r1-n1/gpu0", "gpu_watts", elapsed) == pytest.approx(400.0)


def test_misuse_is_told_and_changes_nothing(lab: Facility) -> None:
    facility = emulate(lab)
    facility.occupy("job.1", {"r1-n1": 1}, cpus=1.0)
    with pytest.raises(UsageError, match="placed already"):
        facility.occupy("job.1", {"r1-n1": 1}, cpus=1.0)
    with pytest.raises(UsageError, match="names 0 nodes"):
        facility.occupy("job.2", {"r9-n9": 1}, cpus=1.0)
    with pytest.raises(UsageError, match="more than 0 CPUs"):
        facility.occupy("job.2", {"r1-n1": 1}, cpus=0.0)
    with pytest.raises(UsageError, match=r"got 1\.5"):
        facility.set_power_cap("job.1", 1.5)
    with pytest.raises(UsageError, match="never placed"):
        facility.energy_joules("job.2")
    facility.advance(BEGAN_AT + 2.0)
    with pytest.raises(WattlineError, match="time goes on only"):
        facility.advance(BEGAN_AT + 1.0)
    facility.release("job.1")
    with pytest.raises(UsageError, match="not placed"):
        facility.speed("job.1")


def test_the_same_inputs_give_the_same_readings_and_another_seed_gives_other_chips(lab: Facility) -> None:
    def told(seed: int) -> list[float]:
        worker = Worker(emulate(lab, a_fault(loop="crah", flow="20%"), seed=seed), {"zurich/r1-n1": 8})
        worker.run(40.0)
        return [reading.value for reading in worker.facility.readings(BEGAN_AT + 40.0)]

    assert told(1) == told(1)
    assert told(1) != told(2)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.floats(0.0, 40.0), max_size=12).map(sorted))
def test_how_often_the_facility_is_advanced_changes_nothing(lab: Facility, stops: list[float]) -> None:
    def told(stops: list[float]) -> list[float]:
        facility = emulate(lab, a_fault(loop="crah", flow="15%", lasts="10s"))
        facility.occupy("job.1", {"zurich/r1-n1": 8}, cpus=1.0)
        facility.observe_cpu("job.1", 1.0, BEGAN_AT + 1.0)
        for stop in stops:
            facility.advance(BEGAN_AT + stop)
        readings = facility.readings(BEGAN_AT + 40.0)
        return [*(reading.value for reading in readings), facility.energy_joules("job.1")]

    assert told(stops) == pytest.approx(told([]), rel=1e-5)
