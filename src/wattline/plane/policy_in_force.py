"""Which policy goes, where several could? One rule for every command.

What `--policy` names, for as long as that process conducts. Else what was promoted in this state folder. Else
what a resumed run went by; else the default that ships. Whoever joins a queue goes by its conductor's policy.
"""

from __future__ import annotations

import time

import msgspec

from wattline.errors import WattlineError
from wattline.live import Home
from wattline.plane.finding import View
from wattline.plane.session import Session
from wattline.release.policy_shelf import Placing, PolicyShelf
from wattline.spec import Policy, parse_document
from wattline.state import Adopted, Decision, Event, Noticed, State
from wattline.store import ObjectStore
from wattline.store.steps import StepJournal


def choose_policy(session: Session, named: str | None, otherwise: str | None = None) -> str:
    """The digest of the policy that a run goes by."""
    if named is not None:
        return session.keep_policy(named)
    promoted = PolicyShelf(session.home).current()
    if promoted is not None:
        return promoted.sha256
    return otherwise or session.keep_policy("default")


def promoted_policy(home: Home) -> Policy | None:
    """What is promoted in a state folder, whether anything ever ran there or not."""
    placing = PolicyShelf(home).current()
    if placing is None:
        return None
    with ObjectStore(home.objects).open(placing.sha256) as file:
        return parse_document(file.read(), Policy, file="policy.yaml")


def policy_in_force(view: View) -> Policy:
    """By which the next decision here is made."""
    if view.writer is None:
        promoted = promoted_policy(view.session.home)
        if promoted is not None:
            return promoted
    return view.session.policy()


def adopt_now(session: Session, placing: Placing) -> bool:
    """Journal that this is in force, unless somebody conducts: who does takes it up with the next turn."""
    if session.state is None or not session.become_writer():
        return False
    lease = session.store.lease
    try:
        state = session.state
        at = max(time.time(), state.at)
        digest = placing.sha256 or session.keep_policy("default")
        events = adopting(session, state, digest, placing, at)
        state.fold(events)
        journal = StepJournal(session.store.journal)
        journal.append(events, state.digest, Decision(at=at), decided=False)
    finally:
        if lease.held is not None:
            lease.release(lease.held)
    return True


def adopting(session: Session, state: State, digest: str, placing: Placing | None, at: float) -> list[Event]:
    """What the journal is told when another policy comes into force: which, by whom, and why."""
    adopted = session.adopt(state.adopted["facility_sha256"], digest, at)
    if placing is None:
        return [adopted]
    event: Adopted = msgspec.structs.replace(adopted, actor=placing.by, source="policy promote")
    return [event, Noticed(at=at, actor=placing.by, subject="policy", say=say_placing(placing))]


def say_placing(placing: Placing) -> str:
    """One line of the history in words."""
    because = f": {placing.because}" if placing.because else ""
    if placing.rolled_back:
        if not placing.number:
            return f"taken back by {placing.by}, nothing is promoted any more{because}"
        return f"rolled back to {placing.policy} (number {placing.number}) by {placing.by}{because}"
    who = f"promoted by {placing.by}, approved by {placing.approved_by}"
    return f"{placing.policy} (number {placing.number}) {who}{because}"


class Following:
    """A conductor without `--policy` goes by what is promoted, also where that changes under it."""

    def __init__(self, session: Session, digest: str) -> None:
        self._session, self._shelf = session, PolicyShelf(session.home)
        self._digest = digest  # of what it goes by
        self._stamp: tuple[int, int] | None = None

    def look(self, state: State, at: float) -> list[Event]:
        """What to journal where another policy was put in force since; one that cannot be read is told."""
        stamp = self._shelf.stamp()
        if stamp == self._stamp or not state.adopted:
            return []
        self._stamp = stamp
        try:
            placing = self._news()
            if placing is None:
                return []
            digest = placing.sha256 or self._session.keep_policy("default")
            events = adopting(self._session, state, digest, placing, at)
        except WattlineError as error:
            say = f"what was promoted cannot be taken up: {error.message}"
            return [Noticed(at=at, subject="policy", say=say)]
        self._digest = digest
        return events

    def _news(self) -> Placing | None:
        """The last placing, unless it is what counts already."""
        history = self._shelf.history()
        if not history or history[-1].sha256 == self._digest:
            return None
        if not history[-1].number and self._digest not in [each.sha256 for each in history]:
            return None  # what was taken back was not in force here
        return history[-1]
