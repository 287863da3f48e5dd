"""The hours ahead in the live facility: read from files, told as events, and acted on by the embedded run."""

from __future__ import annotations

import dataclasses
import threading
import time as real_time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from building import a_facility, a_policy, a_site
from cli.running import Desk, assert_nothing_is_left
from wattline.cli.narrator import Narrator
from wattline.cli.running import Asking, carry, submit
from wattline.control import replay
from wattline.live import Home, world
from wattline.plane.grid_outlooks import GridOutlooks
from wattline.state import JobState, Noticed, Outlooked, State
from wattline.store.steps import read_steps

HOUR = 3600.0
TIMES_FASTER = 900.0  # an hour passes in four seconds
MOST_SECONDS_BETWEEN_LOOKS = 0.5  # of who is not held up: a stall of seconds must not skip the cheap hour
SHIFTS = a_policy(shifting={"by": "price"})


def hours_from(at: float, prices: list[float]) -> str:
    begins = at // HOUR * HOUR
    lines = [
        f"{datetime.fromtimestamp(begins + n * HOUR, UTC).isoformat()},{price}"
        for n, price in enumerate(prices)
    ]
    return "\n".join(["hour,price", *lines]) + "\n"


class Clocked:
    """Outlooks of one site, with a clock by hand."""

    def __init__(self, folder: Path) -> None:
        self.file, self.seconds, self.at = folder / "grid" / "zurich.csv", 0.0, 1_700_000_000.0
        self.file.parent.mkdir()
        site = dataclasses.replace(a_site(), outlook_file="grid/zurich.csv")
        self.state = State(a_facility(site))
        self.outlooks = GridOutlooks(self.state.plant.facility, folder, lambda: self.seconds)

    def look(self) -> list[object]:
        return list(self.outlooks.look(self.state, SHIFTS, self.at))

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self.at += seconds


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    return Clocked(tmp_path)


def test_an_outlook_is_told_once_an_hour_and_when_its_file_has_changed(clocked: Clocked) -> None:
    clocked.file.write_text(hours_from(clocked.at, [0.5, 0.1, 0.3]))
    (told,) = clocked.look()
    assert isinstance(told, Outlooked)
    assert (told.site, told.begins_at) == ("zurich", clocked.at // HOUR * HOUR)
    assert [hour.usd_per_kwh for hour in told.hours] == [0.5, 0.1, 0.3]
    clocked.wait(6)
    assert clocked.look() == []
    clocked.file.write_text(hours_from(clocked.at, [0.5, 0.1, 0.3, -0.2]))
    assert clocked.look() == [], "it is looked at every few seconds"
    clocked.wait(6)
    (told,) = clocked.look()
    assert isinstance(told, Outlooked)
    assert told.hours[-1].usd_per_kwh == -0.2
    clocked.wait(HOUR)
    (told,) = clocked.look()
    assert isinstance(told, Outlooked)
    assert [hour.usd_per_kwh for hour in told.hours] == [0.1, 0.3, -0.2]


def test_a_file_that_is_wrong_or_gone_is_noticed_once_and_what_it_said_stands(clocked: Clocked) -> None:
    clocked.file.write_text(hours_from(clocked.at, [0.5, 0.1, 0.3]))
    clocked.look()
    for breaks in (lambda: clocked.file.write_text("hour,price\nsoon,1\n"), clocked.file.unlink):
        breaks()
        clocked.wait(6)
        (noticed,) = clocked.look()
        assert isinstance(noticed, Noticed)
        assert noticed.say.startswith("its outlook is passed over: ")
        clocked.wait(6)
        assert clocked.look() == []
    clocked.wait(HOUR)
    (told,) = clocked.look()
    assert isinstance(told, Outlooked)
    assert [hour.usd_per_kwh for hour in told.hours] == [0.1, 0.3]


def test_nothing_is_read_where_nobody_shifts(clocked: Clocked) -> None:
    assert clocked.outlooks.look(clocked.state, a_policy(), clocked.at) == []


def test_a_clock_that_goes_back_tells_no_outlook_of_hours_that_are_over(clocked: Clocked) -> None:
    clocked.file.write_text(hours_from(clocked.at, [0.5, 0.1]))
    clocked.look()
    clocked.at += 10 * HOUR
    clocked.seconds += 10
    assert clocked.look() == [], "all that is known is over"
    clocked.at -= 10 * HOUR
    clocked.seconds += 10
    assert clocked.look() == [], "what was told stands"


class Fast:
    """A clock on which hours pass in seconds; begins now. While the machine stalls it stands still."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked_at, self._passed_seconds = real_time.monotonic(), 0.0

    def monotonic(self) -> float:
        with self._lock:
            now = real_time.monotonic()
            self._passed_seconds += min(now - self._looked_at, MOST_SECONDS_BETWEEN_LOOKS)
            self._looked_at = now
            return self._passed_seconds * TIMES_FASTER

    def time(self) -> float:
        return real_time.time()

    def sleep(self, seconds: float) -> None:
        real_time.sleep(min(seconds, 0.05))


ONE_NODE = """\
facility: one-node
sites:
  here:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    outlook: {file: grid/here.csv}
    feeds: {wall: {rating: 20kW}}
    loops: {room: {kind: air, capacity: 20kW, supply: 22C}}
    racks: {r1: {cap: 10kW, power: [wall], loop: room, nodes: {gpu: A100, gpus: 8, cpus: 8, other: 100W}}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
"""


def test_a_job_with_slack_is_held_for_a_cheaper_hour_and_its_deadline_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_at = real_time.time()
    deadline_at = began_at + 4 * HOUR
    phase = {
        "run": "python train.py",
        "resources": {"gpus": 1},
        "constraints": {"max_duration": "30min"},  # with what is kept in hand it fits into one hour
        "deadline": datetime.fromtimestamp(deadline_at, UTC).isoformat(),
    }
    desk.write("train.py", "print('trained')")
    desk.pipeline({"train": phase})
    thresholds = {"acknowledge_within": "10h", "restart_backoff": "0s"}
    desk.write("policy.yaml", {"policy": "shifts", "shifting": {"by": "price"}, "thresholds": thresholds})
    desk.write("one-node.yaml", ONE_NODE)
    (desk.home / "grid").mkdir(parents=True)
    (desk.home / "grid" / "here.csv").write_text(hours_from(began_at, [0.5, 0.4, -0.02, 0.4, 0.5, 0.5]))
    monkeypatch.setattr(world, "time", Fast())
    asking = Asking(
        pipeline=desk.folder / "wattline.yaml",
        facility=str(desk.folder / "one-node.yaml"),
        policy=str(desk.folder / "policy.yaml"),
        faults=None,
        seed=0,
    )
    with desk.session() as session, Narrator(Home(desk.home)) as narrator:
        event = submit(session, asking, narrator)
        assert carry(session, event.run, event, asking, narrator) == 0
    job = desk.state().jobs[f"{event.run}/train"]
    assert job.state is JobState.SUCCEEDED
    assert job.first_started_at is not None
    assert int(job.first_started_at // HOUR) == int(began_at // HOUR) + 2, "the hour with a negative price"
    assert job.ended_at is not None
    assert job.ended_at <= deadline_at
    steps = desk.steps()
    told = [
        verdict for record in steps for verdict in record.decision.verdicts if verdict.rule == "shift.price"
    ]
    assert told[0].say.startswith("0.500 USD/kWh now, ")
    outlooked = [event for event in desk.events() if isinstance(event, Outlooked)]
    assert {outlook.site for outlook in outlooked} == {"here"}
    with desk.session() as session:
        assert list(replay(read_steps(session.store.journal), session.documents)) == []
    assert_nothing_is_left(desk)
