"""`wattline agent`: one site's part of the control plane, for as long as it runs."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

from wattline.cli.printing import plain
from wattline.errors import RefusedError
from wattline.live import Home
from wattline.live.uplink import Uplink
from wattline.plane.agent_process import AgentProcess, Asked
from wattline.plane.session import Session


def run_agent(site: str, server: str, *, receive: str | None) -> int:
    """Until it is asked to leave; what runs goes on without it until its lease ends."""
    faulthandler.enable()  # should native code end it, its log says where
    session = Session(Home.find())
    try:
        if not session.become_writer("wattline agent"):
            raise RefusedError(
                f"home {session.home.root}: another process works with it",
                hint="one agent for each home: set WATTLINE_HOME",
            )
        uplink = Uplink(server, os.environ.get("WATTLINE_TOKEN", ""))

        def tell(what: str) -> None:  # some of it is a server's own words
            sys.stderr.write(f"wattline agent {site}: {plain(what)}\n")
            sys.stderr.flush()

        process = AgentProcess(Asked(site=site, receive=receive), session, uplink, tell)
        leaving: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _: leaving.append(got))
        try:
            process.work(lambda: bool(leaving))
        finally:
            process.leave()
    finally:
        token = session.store.lease.held
        if token is not None:
            session.store.lease.release(token)
        session.close()
    return 0
