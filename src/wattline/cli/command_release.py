"""The promote and rollback commands: make a run's artifacts current on a channel, and take that back."""

from __future__ import annotations

import time

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.cli.shelving import find_channel
from wattline.errors import RefusedError
from wattline.plane.finding import View, find_run, open_view
from wattline.plane.session import user
from wattline.plane.telling import tell
from wattline.release import load_manifest, promote_run, require_replicas
from wattline.state import Released

_DEFAULT_CHANNEL = "staging"


def promote(run: str, *, to: str | None, approved_by: str | None, note: str, as_json: bool) -> int:
    say_here()
    with open_view() as view:
        found = find_run(view.state, run)
        if not found.manifest:
            raise RefusedError(
                f"run {found.run} has no manifest yet: it is {found.status}",
                hint="only a run that has ended and passed its gates is released",
            )
        session = view.session
        require_replicas(session.home, view.state, found)
        asked = session.goods.source(found.documents).pipeline.release
        event = promote_run(
            found,
            objects=session.objects,
            shelf=session.shelf,
            channel=to or (asked.to if asked else _DEFAULT_CHANNEL),
            by=user(),
            at=time.time(),
            approved_by=approved_by,
            note=note,
        )
        _finish(view, event, as_json=as_json)
    return 0


def rollback(name: str, *, channel: str | None, to: int | None, note: str, as_json: bool) -> int:
    say_here()
    with open_view() as view:
        session = view.session
        name, channel = find_channel(session, name, channel)
        at = time.time()
        placed = session.shelf.rollback(name, channel, by=user(), at=at, to=to, note=note)
        statement = load_manifest(placed.manifest, session.objects)
        event = Released(
            at=at,
            actor=user(),
            project=statement.predicate.build_definition.external_parameters.project,
            name=name,
            channel=channel,
            run=statement.predicate.run_details.metadata.invocation_id,
            manifest=placed.manifest,
            number=placed.number,
            rolled_back=True,
            note=note,
        )
        _finish(view, event, as_json=as_json)
    return 0


def _finish(view: View, event: Released, *, as_json: bool) -> None:
    journaled = tell(view.session, event)
    release = view.session.shelf.current(event.name, event.channel)
    path = view.session.shelf.path(release) if release is not None else None
    if as_json:
        print_json(
            {
                "name": event.name,
                "channel": event.channel,
                "number": event.number,
                "run_id": event.run,
                "manifest": event.manifest,
                "rolled_back": event.rolled_back,
                "path": str(path),
                "journaled": journaled,
            }
        )
        return
    console = stdout_console()
    verb = "is back at" if event.rolled_back else "is now"
    console.print(plain(f"{event.name}:{event.channel} {verb} number {event.number}, from run {event.run}"))
    console.print(str(path), style="dim", soft_wrap=True)
    if not journaled:
        console.print("the process that conducts here writes it into the journal", style="dim")
