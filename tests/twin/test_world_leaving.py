"""A job that leaves, or is on its way to another site, whatever happens around it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wattline.facility import TrafficClass
from wattline.spec import Fault, read_facility
from wattline.state import (
    Acknowledged,
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Ending,
    Event,
    JobRequest,
    Place,
    Plant,
)
from wattline.twin.meters import Meters
from wattline.twin.run import metered
from wattline.twin.transfers import Transfers
from wattline.twin.truth import Truth
from wattline.twin.workload import SAVED_EVERY_SECONDS, Arrival
from wattline.twin.world import TwinWorld

JOB = "r1/train"
ZURICH = Place("zurich", (("zurich/r1-n1", 8),))
FRANKFURT = Place("frankfurt", (("frankfurt/r1-n1", 8),))


def a_fault(**fields: object) -> Fault:
    return Fault.model_validate({"name": "f"} | fields)


class Hall:
    """The lab with one job, exactly as its document says, and no policy."""

    def __init__(self, *faults: Fault) -> None:
        plant = Plant(metered(read_facility("lab")))
        truth = Truth(plant, seed=0, exact=True, at=0.0, faults=faults)
        request = JobRequest(job=JOB, run="r1", gpus=8, checkpoints=True)
        arrival = Arrival(at=1.0, request=request, work_seconds=36_000.0, utilisation=0.9)
        meters = Meters(truth, plant, 0, exact=True)
        self.world = TwinWorld(plant, iter([arrival]), truth, meters, begins_at=0.0)
        self.told: list[Event] = []
        self.until(2.0)

    def until(self, at: float) -> None:
        while self.world.now() < at:
            self.world.sleep_until(at)
            self.told += self.world.events()
        self.told += self.world.events()

    def ask(self, kind: ActionKind, attempt: int, place: Place | None = None, *, lost: bool = False) -> None:
        self.world.apply(
            Action(id=f"{kind}-{attempt}", kind=kind, job=JOB, attempt=attempt, place=place, lost=lost)
        )

    def endings(self) -> Sequence[tuple[Ending, float]]:
        return [(event.ending, event.at) for event in self.told if isinstance(event, AttemptEnded)]


def test_a_job_that_saves_leaves_in_time_however_hot_it_gets_meanwhile() -> None:
    warm = a_fault(at={"after": "3601s"}, loop="zurich/crah", supply_temperature="47C")
    hall = Hall(warm)
    hall.ask(ActionKind.START, 1, ZURICH)
    hall.until(3600.0)
    hall.ask(ActionKind.PAUSE, 1)
    hall.until(3609.0)
    assert hall.world.truth.pace(JOB) < 1.0  # it throttles while it saves
    hall.until(3700.0)
    assert hall.endings() == [(Ending.PAUSED, 3610.0)]


def test_a_checkpoint_on_its_way_is_answered_for_each_time_it_is_asked_about() -> None:
    slow = a_fault(at={"after": "0s"}, link="zrh-fra", bandwidth="2%")
    hall = Hall(slow)
    hall.ask(ActionKind.START, 1, ZURICH)
    hall.until(3600.0)
    hall.ask(ActionKind.PAUSE, 1)
    for asked_at in (3611.0, 3671.0, 3731.0):
        hall.until(asked_at)
        hall.ask(ActionKind.MIGRATE, 2, FRANKFURT)
    hall.until(3740.0)
    answered = [event.at for event in hall.told if isinstance(event, Acknowledged)]
    assert answered == [3611.0, 3671.0, 3731.0]
    # 64 GB over 2 % of the 3.5 Gbit/s that checkpoints have of this link.
    hall.until(3611.0 + 64e9 * 8 / (0.02 * 3.5e9) + 10.0)
    assert [event.attempt for event in hall.told if isinstance(event, AttemptStarted)] == [1, 2]
    assert hall.world.tally.migrations == 1


def test_an_attempt_that_is_given_up_for_lost_may_begin_again() -> None:
    hall = Hall()
    hall.ask(ActionKind.START, 1, ZURICH)
    hall.until(3600.0)
    hall.ask(ActionKind.STOP, 1, lost=True)
    hall.until(3601.0)
    hall.ask(ActionKind.START, 2, ZURICH)
    hall.until(3700.0)
    assert [ending for ending, _ in hall.endings()] == [Ending.LOST]
    assert (hall.world.tally.running, hall.world.tally.failed) == (1, 0)


def test_a_checkpoint_of_an_attempt_that_is_cut_is_of_the_time_it_was_saved_at() -> None:
    hall = Hall()
    hall.ask(ActionKind.START, 1, ZURICH)
    hall.until(5000.0)
    hall.ask(ActionKind.STOP, 1, lost=True)
    hall.until(5001.0)
    (saved,) = [event for event in hall.told if isinstance(event, CheckpointSaved)]
    (started,) = [event.at for event in hall.told if isinstance(event, AttemptStarted)]
    assert started + 2 * SAVED_EVERY_SECONDS <= saved.at < 5000.0 - 1000.0
    hall.ask(ActionKind.START, 2, FRANKFURT)
    hall.until(5400.0)
    hall.ask(ActionKind.STOP, 2, lost=True)
    hall.until(5401.0)
    again = [event.at for event in hall.told if isinstance(event, CheckpointSaved)]
    assert again[1:] in ([], [saved.at]), "the second attempt saved nothing"


@pytest.mark.parametrize(("left", "arrives_at"), [(1.0, 100.0), (0.5, 150.0), (2.0, 75.0)])
def test_a_transfer_goes_on_at_the_new_rate_when_its_link_changes(left: float, arrives_at: float) -> None:
    (link,) = read_facility("lab").links
    fraction = {link.name: 1.0}
    transfers = Transfers({frozenset(link.between): link}, fraction.__getitem__)
    rate = link.bits_per_second * link.shares[TrafficClass.CHECKPOINT]
    size_bytes = (100.0 - link.latency_seconds) * rate / 8
    assert transfers.begin(JOB, "zurich", "frankfurt", size_bytes, 0.0)
    assert transfers.next_end_at() == pytest.approx(100.0)
    fraction[link.name] = left
    transfers.change(50.0)
    assert transfers.next_end_at() == pytest.approx(arrives_at)


def test_a_job_that_moves_over_a_link_with_a_price_pays_for_its_checkpoint() -> None:
    hall = Hall()
    hall.ask(ActionKind.START, 1, ZURICH)
    hall.until(3600.0)
    hall.ask(ActionKind.PAUSE, 1)
    hall.until(3611.0)
    hall.ask(ActionKind.MIGRATE, 2, FRANKFURT)
    hall.until(4600.0)
    hall.ask(ActionKind.STOP, 2)
    hall.until(4601.0)
    _, moved = [event for event in hall.told if isinstance(event, AttemptEnded)]
    site = read_facility("lab").sites[1]
    device = site.racks[0].nodes[0].device
    assert device is not None
    gpus_and_energy = moved.usage.gpu_hours * device.usd_per_hour + moved.usage.kwh * site.usd_per_kwh
    assert moved.usage.usd == pytest.approx(gpus_and_energy + 64.0 * 0.02)  # 8 GB for each of 8 GPUs
    assert hall.world.tally.egress_usd == pytest.approx(64.0 * 0.02)
