"""What the hub says to agents, and when it believes what of a site."""

from __future__ import annotations

import pytest

from building import MONDAY, a_facility, a_job, a_policy, a_site
from wattline.control import step
from wattline.control.sites import PROTOCOL, SyncReply, SyncRequest, Timing
from wattline.control.sites.messages import Held
from wattline.live.fleet import FleetWorld
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    CheckpointCopied,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    JobRequest,
    JobState,
    RunSubmitted,
    Standing,
    State,
)

TIMING = Timing(lease_seconds=60.0, grace_seconds=15.0, sync_seconds=3.0, drift=0.01, fence_seconds=5.0)


class Hub:
    """A hub with a clock that a test moves."""

    def __init__(self) -> None:
        self.at = MONDAY
        self.state = State(a_facility(a_site("zurich"), a_site("oslo")))
        self._pending: list[Event] = []
        self.records: list[tuple[tuple[Event, ...], Decision]] = []
        self.fleet = FleetWorld(
            state=self.state, timing=TIMING, clock=lambda: self.at, requests=self._requests
        )
        self._numbers = 0

    def append(self, events: tuple[Event, ...], _digest: object, decision: Decision) -> None:
        self.records.append((tuple(events), decision))

    def _requests(self) -> list[Event]:
        pending, self._pending = self._pending, []
        return pending

    def submit(self, **changes: object) -> JobRequest:
        request = a_job("r1/train", checkpoints=True, replicate_to=("oslo", "zurich"), **changes)
        self._pending.append(RunSubmitted(at=self.at, run="r1", pipeline="p", jobs=(request,)))
        return request

    def turn(self) -> Decision:
        return step(self.fleet, self.state, a_policy(), self)  # type: ignore[arg-type]

    def ask(self, site: str = "zurich", **changes: object) -> SyncReply:
        self._numbers += 1
        fields: dict[str, object] = {
            "site": site,
            "agent": f"agent-{site}",
            "number": self._numbers,
            "clock": self.at,
        }
        future = self.fleet.submit(SyncRequest(**(fields | changes)))  # type: ignore[arg-type]
        self.turn()
        return future.result(0)

    def attach(self, site: str) -> None:
        assert self.ask(site).soon
        assert self.ask(site).lease is not None

    def wait(self, seconds: float, *others: str) -> None:
        """Time passes; the other sites go on asking."""
        for _ in range(int(seconds)):
            self.at += 1.0
            for site in others:
                self.ask(site)
            self.turn()

    def standing(self, site: str = "zurich") -> Standing:
        return self.state.sites[site].standing

    def run_at(self, site: str, *, copied: bool = True, **changes: object) -> None:
        """The one job runs at a site; a copy of its checkpoint is at the other."""
        self.submit(**changes)
        self.turn()
        place = self.state.jobs["r1/train"].place
        assert place is not None
        assert place.site == site
        other = "oslo" if site == "zurich" else "zurich"
        told: list[Event] = [
            AttemptStarted(at=self.at, job="r1/train", attempt=1),
            CheckpointSaved(at=self.at, job="r1/train", attempt=1, step=10, site=site),
        ]
        if copied:
            told.append(CheckpointCopied(at=self.at, job="r1/train", attempt=1, step=10, site=other))
        self.ask(site, after=0, through=len(told), events=tuple(told), holds=(Held("r1/train", 1),))


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def fleet(hub: Hub) -> Hub:
    hub.attach("zurich")
    hub.attach("oslo")
    return hub


def test_a_lease_is_given_only_after_it_was_written_down(hub: Hub) -> None:
    first = hub.ask()
    assert first.lease is None
    assert first.soon
    second = hub.ask()
    assert second.lease is not None
    assert second.lease.epoch == 1
    assert dict(second.lease.envelope)["zurich/feed-a"] == 1e9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent": "somebody"}, "belongs to agent agent-zurich"),
        ({"site": "paris"}, "is not in the facility"),
        ({"clock": MONDAY + 61.0}, "its clock is +61 s from the server's"),
        ({"clock": float("nan")}, "its clock is"),
        ({"protocol": PROTOCOL + 1}, "speaks protocol"),
    ],
)
def test_who_may_not_ask_is_told_why(fleet: Hub, changes: dict[str, object], words: str) -> None:
    reply = fleet.ask(**changes)  # type: ignore[arg-type]
    assert reply.lease is None
    assert reply.refusal is not None
    assert words in reply.refusal.say


def test_orders_are_all_that_is_in_flight_until_it_is_answered(fleet: Hub) -> None:
    fleet.submit()
    fleet.turn()
    for _ in range(2):
        (order,) = fleet.ask().orders
        assert order.action.job == "r1/train"
        assert order.jobs[-1].id == "r1/train"
    assert not fleet.ask("oslo").orders
    fleet.ask(after=0, through=1, events=(AttemptStarted(at=fleet.at, job="r1/train", attempt=1),))
    assert not fleet.ask().orders


def test_an_event_counts_once_however_often_it_is_told(fleet: Hub) -> None:
    fleet.run_at("zurich")
    ended = AttemptEnded(at=fleet.at, job="r1/train", attempt=1, ending=Ending.PAUSED)
    for _ in range(3):
        fleet.ask(after=3, through=4, events=(ended,))
    journaled = [event for events, _ in fleet.records for event in events if event == ended]
    assert len(journaled) == 1
    assert fleet.ask().heard == 4


def test_a_site_tells_of_its_own_jobs_alone(fleet: Hub) -> None:
    fleet.run_at("zurich")
    fleet.ask(
        "oslo",
        after=0,
        through=1,
        events=(AttemptEnded(at=fleet.at, job="r1/train", attempt=1, ending=Ending.SUCCEEDED),),
    )
    assert fleet.state.jobs["r1/train"].state is JobState.RUNNING


def test_nothing_moves_before_the_lease_is_surely_over(fleet: Hub) -> None:
    fleet.run_at("zurich")
    fleet.wait(TIMING.grace_seconds + 1, "oslo")
    assert fleet.standing() is Standing.LOCAL_ONLY
    fleet.wait(TIMING.surely_over_seconds - TIMING.grace_seconds - 3, "oslo")
    assert fleet.state.jobs["r1/train"].state is JobState.RUNNING
    fleet.wait(4, "oslo")
    assert fleet.standing() is Standing.REGIONAL_FALLBACK
    job = fleet.state.jobs["r1/train"]
    assert job.attempt == 2
    assert job.place is not None
    assert job.place.site == "oslo"
    assert job.saved is not None
    assert job.saved.site == "oslo"


def test_a_job_that_goes_on_alone_stays_with_its_site(fleet: Hub) -> None:
    fleet.run_at("zurich", on_isolation="continue")
    fleet.wait(TIMING.surely_over_seconds + 5, "oslo")
    assert fleet.standing() is Standing.REGIONAL_FALLBACK
    job = fleet.state.jobs["r1/train"]
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    reply = fleet.ask(accepts=2, holds=(Held("r1/train", 1),))
    assert not reply.disowned
    assert fleet.standing() is Standing.PRIMARY


def test_a_site_that_is_heard_in_time_goes_on_as_it_was(fleet: Hub) -> None:
    fleet.run_at("zurich")
    fleet.wait(TIMING.grace_seconds + 5, "oslo")
    reply = fleet.ask(holds=(Held("r1/train", 1),), after=3, through=3)
    assert reply.lease is not None
    assert reply.lease.epoch == 1
    assert fleet.standing() is Standing.PRIMARY


def test_a_site_comes_back_with_a_new_epoch_once_it_answers_the_offer(fleet: Hub) -> None:
    fleet.wait(TIMING.surely_over_seconds + 5, "oslo")
    assert fleet.ask().offer == 2
    assert fleet.standing() is Standing.REGIONAL_FALLBACK  # it may have been sent long ago
    fleet.ask(accepts=2)
    assert fleet.standing() is Standing.PRIMARY
    reply = fleet.ask()
    assert reply.lease is not None
    assert reply.lease.epoch == 2


def test_what_ran_on_after_its_lease_is_disowned_and_a_person_looks(fleet: Hub) -> None:
    fleet.run_at("zurich")
    fleet.wait(TIMING.surely_over_seconds + 5, "oslo")
    reply = fleet.ask(accepts=2, holds=(Held("r1/train", 1),))
    assert reply.disowned == (Held("r1/train", 1),)
    assert fleet.standing() is Standing.HELD_FOR_REVIEW
    assert fleet.ask().lease is None
    fleet.fleet.desk.reviewed(fleet.state, "zurich", actor="ada", now=fleet.at)
    fleet.turn()
    assert fleet.standing() is Standing.PRIMARY


def test_a_job_whose_only_checkpoint_is_cut_off_waits_for_it(fleet: Hub) -> None:
    fleet.run_at("zurich", copied=False)
    fleet.wait(TIMING.surely_over_seconds + 5, "oslo")
    job = fleet.state.jobs["r1/train"]
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    ended = AttemptEnded(at=fleet.at, job="r1/train", attempt=1, ending=Ending.PAUSED)
    fleet.ask(after=2, through=3, events=(ended,))
    fleet.wait(5, "oslo")
    job = fleet.state.jobs["r1/train"]
    assert job.state is JobState.PAUSED
    assert [verdict.rule for verdict in job.verdicts] == ["sites.reach"]


def test_a_site_given_up_leaves_everything_to_others(fleet: Hub) -> None:
    fleet.run_at("zurich", on_isolation="continue")
    fleet.wait(TIMING.surely_over_seconds + 5, "oslo")
    fleet.fleet.desk.give_up(fleet.state, "zurich", actor="ada", now=fleet.at)
    fleet.turn()
    job = fleet.state.jobs["r1/train"]
    assert job.attempt == 2
    assert job.place is not None
    assert job.place.site == "oslo"


def test_a_server_that_was_replaced_renews_nothing(hub: Hub) -> None:
    hub.attach("zurich")
    stale = FleetWorld(state=hub.state, timing=TIMING, clock=lambda: hub.at, is_writer=lambda: False)
    future = stale.submit(SyncRequest(site="zurich", agent="agent-zurich", number=99, clock=hub.at))
    stale.events()
    with pytest.raises(Exception, match="not the active one"):
        future.result(0)


def test_an_agent_is_told_where_checkpoints_of_each_other_site_are_to_be_had() -> None:
    hub = Hub()
    hub.fleet.desk.own_receiver = lambda site: f"http://hub:1/{site}"
    hub.attach("zurich")
    before = {"zurich": "http://hub:1/zurich"}  # of what the hub saved of it while it ran it
    assert hub.ask("zurich").receivers == before | {"oslo": "http://hub:1/oslo"}
    hub.attach("oslo")
    assert hub.ask("zurich").receivers == before  # the hub does not run it any more, and its agent takes none
    hub.ask("oslo", receives_at="http://oslo:1")
    assert hub.ask("zurich").receivers == before | {"oslo": "http://oslo:1"}


def test_a_checkpoint_can_be_fetched_where_who_has_it_hands_it_over() -> None:
    hub = Hub()
    may = hub.fleet.desk.hands_over
    assert may(hub.state, "zurich", "oslo")  # both in one home
    hub.attach("oslo")
    assert not may(hub.state, "zurich", "oslo")
    assert not may(hub.state, "zurich", None)
    assert not may(hub.state, "oslo", "zurich")
    hub.ask("oslo", receives_at="http://oslo:1")
    assert may(hub.state, "oslo", "zurich")
    assert not may(hub.state, "zurich", "oslo")
    hub.fleet.desk.own_receiver = lambda site: f"http://hub:1/{site}"
    assert may(hub.state, "zurich", "oslo")
    hub.fleet.desk.receivers.clear()  # a hub that has just begun
    assert may(hub.state, "oslo", "zurich")


def test_a_site_whose_agent_is_refused_is_not_said_to_be_away() -> None:
    hub = Hub()
    hub.attach("zurich")
    hub.at += TIMING.grace_seconds
    hub.ask("zurich", agent="somebody-else")
    hub.at += 1.0
    hub.turn()
    assert hub.state.sites["zurich"].say.startswith("not heard for 16 s: it acts")
    hub.ask("zurich")
    hub.at += TIMING.grace_seconds
    hub.ask("zurich", clock=hub.at + 120.0)
    hub.at += 1.0
    hub.turn()
    said = hub.state.sites["zurich"].say
    assert said.startswith("refused for 16 s (agent agent-zurich: its clock is +120 s from the server's")
