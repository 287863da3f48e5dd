"""The serve command: the control plane for many, in one process; or standing by until it is its turn."""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from wattline.api.agents import agents_sync
from wattline.api.app import make_app
from wattline.api.call import Limits, Served
from wattline.api.door import Door
from wattline.api.listening import Listener, open_socket
from wattline.cli.printing import plain
from wattline.cli.running import Interrupts
from wattline.cli.words import words_of
from wattline.live import Home
from wattline.live.site_stores import make_receiver
from wattline.plane.intake import Intake
from wattline.plane.reader import Reader
from wattline.plane.serving import Serving, Shift
from wattline.plane.submitting import Receiving
from wattline.spec import read_facility, read_faults, read_policy
from wattline.store import ObjectStore

# A call changes threads a few times, and each time waits this long for the loop while that computes.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeAsked:
    listen: str
    facility: str | None
    policy: str | None
    faults: Path | None
    seed: int
    pass_secrets: Sequence[str]
    calls_per_second: float
    object_gigabytes: float
    receive: str | None


def serve(asked: ServeAsked) -> int:
    """Until it is asked to leave; what runs is saved first."""
    faulthandler.enable()  # should native code end it, its log says where
    serving = _check(asked)
    home, database = Home.find().ensure(), os.environ.get("WATTLINE_DATABASE")
    receiver = None if asked.receive is None else make_receiver(asked.receive, home.root / "sites")
    if receiver is not None:
        serving = replace(serving, receives_at=receiver.url)
    where = database or str(home.root)
    shift = Shift(home, database, serving, _say)
    door = Door(where, calls_per_second=asked.calls_per_second)
    has_tokens = door.has_tokens()
    sock = open_socket(asked.listen, has_tokens=has_tokens)
    objects = ObjectStore(home.objects)
    served = Served(
        home=home,
        objects=objects,
        reader=Reader(home, database),
        intake=Intake(where),
        receiving=Receiving(home, objects, asked.pass_secrets),
        door=door,
        words=words_of(home),
        is_conducting=lambda: shift.is_conducting,
        hands_over=shift.hands_over,
        limits=Limits(object_bytes=int(asked.object_gigabytes * (1 << 30))),
    )
    listener = Listener(make_app(served, sync=agents_sync(lambda: shift.fleet)), sock)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with Interrupts() as interrupts, receiver or nullcontext():
        listener.start()
        host, port = sock.getsockname()[:2]
        _say(f"listens on http://{f'[{host}]' if ':' in host else host}:{port}")
        if not has_tokens:
            _say("asks for no token, so only this machine is let in: `wattline token create` makes one")
        try:
            shift.work(lambda: _asked_to_leave(interrupts, listener, served))
        finally:
            served.leaving.set()
            listener.stop()
            served.intake.close()
            served.reader.close()
            door.close()
    _say("has left")
    return 0


def _asked_to_leave(interrupts: Interrupts, listener: Listener, served: Served) -> int:
    """The first time, no more calls are taken; then what runs may save."""
    if interrupts.count:
        served.leaving.set()
        listener.stop()
    return interrupts.count


def _check(asked: ServeAsked) -> Serving:
    """Documents that are wrong are told before anything listens."""
    if asked.facility is not None:
        read_facility(asked.facility)
    if asked.policy is not None:
        read_policy(asked.policy)
    faults = () if asked.faults is None else read_faults(asked.faults).faults
    return Serving(facility=asked.facility, policy=asked.policy, faults=faults, seed=asked.seed)


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} wattline serve {plain(text)}\n")
    sys.stderr.flush()
