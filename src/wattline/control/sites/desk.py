"""The desk: the hub's side of every site's lease. Who holds which, who is silent, and what is told to whom?

What it says rests on the journal: a lease, an epoch or a number is given out only after it was written down.
What it keeps beside that is when it last answered each agent; a hub that starts takes that to be now, and so
waits too long rather than too short. Transitions are events, given to the next step and true once that is
journaled:

    (nothing)         → primary            an agent asks for the first time
    primary           → local_only         silent for the grace: it acts by itself, nothing begins there
    local_only        → primary            heard again before its lease was surely over
    local_only        → regional_fallback  its lease is surely over: what may move is lost, and runs elsewhere
    regional_fallback → primary            back, and nothing runs there that runs elsewhere: a new epoch
    regional_fallback → held_for_review    back with what should have ended: stopped, and a person looks
    any               → regional_fallback  a person gives the site up: all it held may run elsewhere
    held_for_review   → primary            a person has looked
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from wattline.control.sites.messages import (
    PROTOCOL,
    TOLD,
    Held,
    Lease,
    Order,
    Refusal,
    SyncReply,
    SyncRequest,
    Told,
)
from wattline.control.sites.timing import Timing
from wattline.policy import is_own
from wattline.state import (
    BEGINNINGS,
    ENDED,
    HOLDING,
    Acted,
    AttemptEnded,
    CheckpointLost,
    Ending,
    Event,
    Job,
    ResourceKind,
    SiteHeard,
    SiteRecord,
    SiteStood,
    Standing,
    State,
    is_reached,
)
from wattline.state.measuring import LEASED

replace = msgspec.structs.replace
# What a person may ask of a site, and how it may stand for that.
MAY_BE = {
    "give_up": frozenset(Standing),
    "reviewed": frozenset({Standing.HELD_FOR_REVIEW}),
}
_ENVELOPE = frozenset({ResourceKind.SUPPLY, ResourceKind.LOOP})


class Desk:
    """For the thread of the loop alone, or behind a lock; `now` is a clock that only goes forward."""

    def __init__(self, timing: Timing, now: float) -> None:
        self._timing = timing
        self._began_at = now
        self._answered_at: dict[str, float] = {}
        self.receivers: dict[str, str] = {}  # by site, where its agent takes and hands over checkpoints
        self.own_receiver: Callable[[str], str] = lambda _: ""  # the same, of what this server saved of one
        self._refused: dict[str, tuple[str, str]] = {}  # by site: the agent that asked last in vain, and why
        self._numbers: dict[str, int] = {}  # of the last request of each site
        self._through: dict[str, int] = {}  # what is queued and not journaled yet
        self._queue: list[Event] = []
        # Sites whose next standing is queued, and those where it is on its way to the journal.
        self._turning: dict[str, Standing] = {}
        self._turned: dict[str, Standing] = {}

    def drain(self) -> list[Event]:
        """For the next step: what agents told, and how sites stand from here on."""
        found, self._queue = self._queue, []
        self._turned |= self._turning
        self._turning.clear()
        return found

    def journaled(self) -> None:
        """The step that had them is written down and folded."""
        self._turned.clear()

    def _turns_to(self, site: str) -> Standing | None:
        return self._turning.get(site) or self._turned.get(site)

    def look(self, state: State, now: float) -> None:
        """Who has been silent for how long."""
        for record in state.sites.values():
            silent_seconds = now - self._answered_at.get(record.site, self._began_at)
            if self._turns_to(record.site) is not None:
                continue
            if record.standing is Standing.PRIMARY and silent_seconds > self._timing.grace_seconds:
                say = f"{self._silence(record, silent_seconds)}: it acts by itself, and nothing begins there"
                self._turn(record, Standing.LOCAL_ONLY, say, now)
            elif record.standing is Standing.LOCAL_ONLY and silent_seconds > self._timing.surely_over_seconds:
                say = f"{self._silence(record, silent_seconds)}: its lease has surely ended"
                self._turn(record, Standing.REGIONAL_FALLBACK, say, now)
                self._queue += _lose(state, record.site, say, now)

    def _silence(self, record: SiteRecord, seconds: float) -> str:
        """An agent that asks and is refused is not away: whoever looks for it should look at that."""
        by, why = self._refused.get(record.site, ("", ""))
        return (
            f"refused for {seconds:.0f} s ({why})" if by == record.agent else f"not heard for {seconds:.0f} s"
        )

    def next_look_at(self, state: State) -> float | None:
        """When silence next means something."""
        waits = {
            Standing.PRIMARY: self._timing.grace_seconds,
            Standing.LOCAL_ONLY: self._timing.surely_over_seconds,
        }
        times = [
            self._answered_at.get(record.site, self._began_at) + waits[record.standing]
            for record in state.sites.values()
            if record.standing in waits
        ]
        return min(times, default=None)

    def answer(self, state: State, request: SyncRequest, now: float) -> SyncReply:
        """Take a request in. The caller has made sure, after it arrived, that it is still the one writer:
        one that was replaced must not renew a lease that its successor waits for."""
        refusal = self._judge(state, request, now)
        if refusal is not None:
            self._refused[request.site] = (request.agent, refusal.say)
            return SyncReply(number=request.number, refusal=refusal)
        site = request.site
        self._refused.pop(site, None)
        record = state.sites.get(site)
        if record is None or not record.agent:
            if self._turns_to(site) is None:
                self._attach(record, request, now)
            return SyncReply(number=request.number, adopted=state.adopted, soon=True)
        if request.number <= self._numbers.get(site, -1):  # overtaken by a later one of its own
            return SyncReply(number=request.number, heard=record.heard)
        self._numbers[site] = request.number
        disowned = tuple(held for held in request.holds if not _is_current(state, held, site))
        self._take(state, record, request, now)
        self.receivers[site] = request.receives_at
        known = {other: url for other in state.plant.sites if (url := self._receiver_of(state, other, site))}
        reply = SyncReply(number=request.number, heard=record.heard, adopted=state.adopted, receivers=known)
        if record.standing is Standing.REGIONAL_FALLBACK and request.accepts != record.epoch + 1:
            # It may have been sent long ago: only what it says after this answer counts.
            return replace(reply, offer=record.epoch + 1, soon=True)
        reply = replace(reply, disowned=disowned)
        if record.standing is Standing.REGIONAL_FALLBACK:
            self._come_back(record, disowned, now)
            return replace(reply, offer=record.epoch + 1, soon=True)
        if (
            record.standing is Standing.HELD_FOR_REVIEW
            or self._turns_to(site) is Standing.REGIONAL_FALLBACK  # found to be over: too late to renew it
        ):
            return reply
        self._answered_at[site] = now
        if record.standing is Standing.LOCAL_ONLY:
            if self._turns_to(site) is None:
                self._turn(record, Standing.PRIMARY, "heard again before its lease had ended", now)
            return replace(reply, lease=self._lease(state, record), soon=True)
        orders = tuple(_orders(state, site))
        return replace(reply, lease=self._lease(state, record), orders=orders)

    def _receiver_of(self, state: State, site: str, asks: str) -> str:
        """Who asks for its own wants what was saved before the site had an agent."""
        has_agent = site in state.sites and site != asks
        return self.receivers.get(site, "") if has_agent else self.own_receiver(site)

    def hands_over(self, state: State, origin: str, to: str | None) -> bool:
        """Whether what is saved at a site can be fetched at another, or at any; True where not known."""
        if origin in state.sites:
            return self.receivers.get(origin, "unheard") != ""
        others = [to] if to is not None else [site for site in state.plant.sites if site != origin]
        return self.own_receiver(origin) != "" or any(site not in state.sites for site in others)

    def give_up(self, state: State, site: str, *, actor: str, now: float) -> None:
        """A person's word that nothing runs at a site any more, whatever its agent thinks."""
        say = f"given up by {actor}"
        self._turn(replace(state.sites[site], agent=""), Standing.REGIONAL_FALLBACK, say, now, actor)
        self._queue += _lose(state, site, say, now, all_of_it=True)

    def reviewed(self, state: State, site: str, *, actor: str, now: float) -> None:
        """A person has looked: the site takes work again."""
        record = state.sites[site]
        self._answered_at[site] = now
        back = replace(record, epoch=record.epoch + 1)
        self._turn(back, Standing.PRIMARY, f"reviewed by {actor}", now, actor)

    def _judge(self, state: State, request: SyncRequest, now: float) -> Refusal | None:
        if request.protocol != PROTOCOL:
            return Refusal(
                f"agent {request.agent}: speaks protocol {request.protocol}, this server {PROTOCOL}",
                "upgrade the older of the two",
            )
        if request.site not in state.plant.sites:
            known = ", ".join(sorted(state.plant.sites)[:10])
            return Refusal(f"site {request.site}: is not in the facility", f"known: {known}")
        skew_seconds = request.clock - now
        if not abs(skew_seconds) <= self._timing.skew_seconds:
            return Refusal(
                f"agent {request.agent}: its clock is {skew_seconds:+.0f} s from the server's, at most "
                f"{self._timing.skew_seconds:.0f} s are allowed",
                "set the clock, for example by NTP",
            )
        record = state.sites.get(request.site)
        if record is not None and record.agent and record.agent != request.agent:
            return Refusal(
                f"site {request.site}: belongs to agent {record.agent}, not to {request.agent}",
                "start the agent with the home it had; if that is gone for good, give the site up first",
            )
        if request.through < request.after or not all(isinstance(event, TOLD) for event in request.events):
            return Refusal(f"agent {request.agent}: tells events {request.after} to {request.through}")
        return None

    def _attach(self, record: SiteRecord | None, request: SyncRequest, now: float) -> None:
        epoch = 1 if record is None else record.epoch + 1
        say = f"agent {request.agent} attached"
        site = request.site
        fresh = SiteRecord(site=site, standing=Standing.PRIMARY, since=now, epoch=epoch, agent=request.agent)
        self._answered_at[site] = now
        self._numbers.pop(site, None)
        self._through.pop(site, None)
        self._turn(fresh, Standing.PRIMARY, say, now)

    def _come_back(self, record: SiteRecord, disowned: tuple[Held, ...], now: float) -> None:
        """With nothing that runs elsewhere, or for a person to look at."""
        if self._turns_to(record.site) is not None:
            return
        if disowned:
            names = ", ".join(f"{held.job}/{held.attempt}" for held in disowned[:3])
            self._turn(record, Standing.HELD_FOR_REVIEW, f"{names} ran on after its lease had ended", now)
        else:
            self._answered_at[record.site] = now
            back = replace(record, epoch=record.epoch + 1)
            self._turn(back, Standing.PRIMARY, "back: nothing runs there that runs elsewhere", now)

    def _take(self, state: State, record: SiteRecord, request: SyncRequest, now: float) -> None:
        """Queue what follows on what is written down or queued; the rest will be told again."""
        heard = max(record.heard, self._through.get(record.site, 0))
        if request.after == heard and request.through > heard:
            self._queue += _heed(state, record.site, request.events, now)
            self._queue.append(SiteHeard(at=now, site=record.site, through=request.through))
            self._through[record.site] = request.through
        if record.takes_work:
            self._queue += [replace(reading, at=min(reading.at, now)) for reading in request.readings]

    def _turn(
        self, record: SiteRecord, standing: Standing, say: str, now: float, actor: str = "wattline"
    ) -> None:
        self._turning[record.site] = standing
        self._queue.append(
            SiteStood(
                at=now,
                actor=actor,
                site=record.site,
                standing=standing,
                epoch=record.epoch,
                agent=record.agent,
                say=say,
            )
        )

    def _lease(self, state: State, record: SiteRecord) -> Lease:
        """What its feeds and loops may carry as far as people have said, not as its own meters tell."""
        plant, said = state.plant, state.readings
        number = plant.site_numbers[record.site]
        envelope = tuple(
            (resource.name, min(float(resource.cap), said.get((resource.name, LEASED), (math.inf,))[0]))
            for position, resource in enumerate(plant.resources)
            if resource.kind in _ENVELOPE and plant.site_number_of_resource[position] == number
        )
        timing = self._timing
        return Lease(
            epoch=record.epoch,
            seconds=timing.lease_seconds,
            grace_seconds=timing.grace_seconds,
            sync_seconds=timing.sync_seconds,
            supervisor_seconds=timing.supervisor_seconds,
            envelope=envelope,
        )


def _is_current(state: State, held: Held, site: str) -> bool:
    job = state.jobs.get(held.job)
    return job is not None and job.attempt == held.attempt and job.state in HOLDING and _is_at(job, site)


def _is_at(job: Job, site: str) -> bool:
    return job.place is not None and job.place.site == site


def _lose(state: State, site: str, say: str, at: float, *, all_of_it: bool = False) -> Iterator[Event]:
    """Let go on elsewhere what can: not who goes on alone, nor whose work lies there alone."""
    for job in state.jobs.values():
        held = job.state in HOLDING and _is_at(job, site)
        if job.state in ENDED or (held and job.request.on_isolation == "continue" and not all_of_it):
            continue
        saved_there = job.saved is not None and job.saved.site == site
        if saved_there and not all_of_it and not _has_fresh_copy(state, job, site):
            continue
        if held:
            yield AttemptEnded(at=at, job=job.id, attempt=job.attempt, ending=Ending.LOST, say=say)
        if saved_there or (all_of_it and any(copy == site for copy, _ in job.copies)):
            yield CheckpointLost(at=at, job=job.id, site=site)


def _has_fresh_copy(state: State, job: Job, lost_site: str) -> bool:
    """The newest copy to be had may lag by one checkpoint: who has an older one loses less by waiting."""
    least = 0 if job.saved is None else job.saved.before
    reached = [
        (site, step) for site, step in job.copies if site != lost_site and is_reached(state.sites, site)
    ]
    return any(step >= least for _, step in reached)


def _orders(state: State, site: str) -> Iterator[Order]:
    """All that was decided for a site and has no answer yet, in the order in which it was."""
    for flight in state.flights.values():
        action = flight.action
        if is_own(action, site):
            continue
        if action.node:
            spot = state.plant.spots[state.plant.node_number[action.node]]
            if spot.site.name == site:
                yield Order(action=action)
            continue
        job = state.jobs[action.job]
        if not _is_at(job, site) or job.attempt != action.attempt:
            continue
        if action.kind in BEGINNINGS:
            earlier = [state.jobs[name] for name in job.request.after if name in state.jobs]
            yield Order(action=action, jobs=(*earlier, job), run=state.runs[job.request.run])
        else:
            yield Order(action=action)


def _heed(state: State, site: str, events: tuple[Told, ...], now: float) -> Iterator[Event]:
    """What an agent tells of its own jobs, never from the future; of others' jobs it has nothing to say."""
    for event in events:
        job_id = event.action.job if isinstance(event, Acted) else getattr(event, "job", "")
        if job_id and not (job_id in state.jobs and _is_at(state.jobs[job_id], site)):
            continue
        yield replace(event, at=min(event.at, now))
