from __future__ import annotations

from pathlib import Path

from cli.looking import Writing
from wattline.control import replay
from wattline.live import Home
from wattline.plane.session import Session
from wattline.plane.telling import tell
from wattline.state import Released
from wattline.store.steps import read_steps

_RELEASED = Released(at=1.0, name="small", channel="staging", run="run", manifest="sha256:00", number=1)


def test_while_nobody_writes_an_event_is_journaled_at_once(writing: Writing, home: Path) -> None:
    writing.session.close()
    session = Session(Home(home))
    assert tell(session, _RELEASED)
    session.close()
    again = Session(Home(home))
    assert again.state is not None
    assert again.state.releases["small:staging"]["number"] == 1
    assert again.store.inbox.take(10) == []
    assert again.store.lease.current() is None
    assert list(replay(read_steps(again.store.journal), again.documents)) == []
    again.close()


def test_while_another_writes_the_event_waits_for_it(writing: Writing, home: Path) -> None:
    session = Session(Home(home))
    assert not tell(session, _RELEASED)
    session.close()
    assert writing.session.requests() == [_RELEASED]
