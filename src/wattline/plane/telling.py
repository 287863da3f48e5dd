"""How does a command that is not the conductor get its event into the journal?"""

from __future__ import annotations

import time

from wattline.plane.session import Session
from wattline.state import Asked, Decision, ExceptionAnswered, ExceptionAsked, Released
from wattline.store.steps import StepJournal


def tell(session: Session, event: Asked | Released | ExceptionAsked | ExceptionAnswered) -> bool:
    """Hand an event over and, while nobody else writes, journal it here; False: the writer will.

    The step takes in all that waits in the inbox and decides nothing: whoever conducts next does that.
    """
    session.tell(event)
    if not session.become_writer():
        return False
    lease = session.store.lease
    try:
        state = session.state
        if state is None:  # nothing was adopted yet, so nobody could fold it either
            return False
        events = session.requests()
        state.fold(events)
        nothing = Decision(at=max(time.time(), state.at))
        journal = StepJournal(session.store.journal, session.answered)
        journal.append(events, state.digest, nothing, decided=False)
    finally:
        if lease.held is not None:
            lease.release(lease.held)
    return True
