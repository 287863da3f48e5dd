"""A candidate that decides for a share of nodes: when does it begin and end, and what is seen of both sides?

    policies/canary.json          the candidate and its share; written by who asks for it
    policies/canary-arms.json     how both sides fare, and why it was stopped; written by who conducts

It comes and goes in the journal as `Adopted`, with the step that first decides so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from wattline.control import Deciders
from wattline.control.arms import ArmsSeen
from wattline.errors import WattlineError
from wattline.live import Home
from wattline.plane.policy_shadow import CanaryFiles, Candidate, read_told
from wattline.plane.session import Session
from wattline.policy.apart import nodes_of
from wattline.spec import Policy
from wattline.state import Decision, Event, Noticed, Plant, State

_WRITE_EVERY_SECONDS = 2.0


class ArmsTold(msgspec.Struct, frozen=True, kw_only=True):
    candidate: Candidate
    at: float
    seen: ArmsSeen
    stopped: str = ""  # why it ended by itself


def told_of(home: Home) -> ArmsTold | None:
    return read_told(home.root / "policies" / "canary-arms.json", ArmsTold)


def why_not_apart(in_force: Policy, candidate: Policy, plant: Plant, on: Sequence[str]) -> str:
    """Why two policies cannot decide side by side; empty where they can."""
    for policy in (in_force, candidate):
        for what, is_on in (
            ("power_sharing", policy.power_sharing.is_on),
            ("shifting", policy.shifting.is_on),
            ("scaling", policy.scaling is not None),
        ):
            if is_on:
                return f"policy {policy.policy} has {what}, which looks at all nodes at once"
    known = {name for spot in plant.spots for name in (spot.site.name, spot.rack.name, spot.node.name)}
    unknown = [name for name in on if name not in known]
    if unknown:
        return f"the facility has no {unknown[0]}"
    if len(nodes_of(plant, on)) in (0, len(plant.spots)):
        return "a share is some of the nodes: at least one, and not all"
    return ""


class Arms:
    """What a conductor keeps of it."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._files, self._deciders = CanaryFiles(session.home), Deciders(session.documents)
        self._path = session.home.root / "policies" / "canary-arms.json"
        self._stamp: object = ()
        self._candidate: Candidate | None = None
        self._seen = ArmsSeen()
        self._write_at = 0.0
        self._stop = ""

    def look(self, state: State, at: float) -> list[Event]:
        """What to journal where a candidate begins to decide for its share, or no longer does."""
        found: list[Event] = []
        if self._stop and self._candidate is not None:
            found.append(
                Noticed(at=at, subject="policy", say=f"canary {self._candidate.policy} stopped: {self._stop}")
            )
            self._write(self._stop)
            self._files.stop()
        stamp = self._files.stamp()
        if stamp != self._stamp:
            self._stamp, self._stop = stamp, ""
            self._take_up(state)
            if self._stop:
                found.append(Noticed(at=at, subject="policy", say=f"canary passed over: {self._stop}"))
                self._write(self._stop)
                self._files.stop()
                self._candidate, self._stop, self._stamp = None, "", self._files.stamp()
        wanted = self._candidate.sha256 if self._candidate is not None else ""
        adopted = state.adopted
        if adopted and adopted.get("canary_sha256", "") != wanted:
            found.append(self._adopting(state, at))
        return found

    def _take_up(self, state: State) -> None:
        self._candidate, self._seen = None, ArmsSeen()
        try:
            candidate = self._files.candidate()
            if candidate is None or not candidate.on:
                return
            self._candidate = candidate
            told = told_of(self._session.home)
            if told is not None and told.candidate == candidate:
                self._seen = told.seen  # an earlier process saw it
            policy = self._session.policy_of(candidate.sha256)
            self._stop = why_not_apart(self._session.policy(), policy, state.plant, candidate.on)
        except WattlineError as error:
            self._stop = error.message

    def _adopting(self, state: State, at: float) -> Event:
        adopted = self._session.adopt(state.adopted["facility_sha256"], state.adopted["policy_sha256"], at)
        one = self._candidate
        if one is None:
            return msgspec.structs.replace(adopted, source="policy canary")
        return msgspec.structs.replace(
            adopted,
            actor=one.by,
            source="policy canary",
            canary=one.policy,
            canary_sha256=one.sha256,
            canary_on=one.on,
            canary_share=one.share,
        )

    def decide(self, state: State, at: float) -> Decision:
        """Both sides; a candidate that fails is stopped, and the policy in force decides for all."""
        decision = self._deciders.decide(state, at)
        if self._deciders.failure:
            self._stop = self._deciders.failure
        return decision

    def note(self, state: State, events: Sequence[Event], decision: Decision) -> None:
        """Count a step, and see whether it should go on."""
        if "canary_sha256" not in state.adopted or self._candidate is None:
            return
        self._seen.note(state, self._deciders.split(state), events, decision)
        self._stop = self._stop or self._seen.why_stop()
        if self._clock() >= self._write_at:
            self._write("")

    def close(self) -> None:
        if self._candidate is not None:
            self._write(self._stop)

    def _write(self, stopped: str) -> None:
        self._write_at = self._clock() + _WRITE_EVERY_SECONDS
        if self._candidate is None:
            return
        told = ArmsTold(candidate=self._candidate, at=time.time(), seen=self._seen, stopped=stopped)
        beside = self._path.with_name(f".{self._path.name}.new")
        with suppress(OSError):  # a full disk must not end what trains
            beside.write_bytes(msgspec.json.encode(told))
            beside.replace(self._path)
