"""The pause, resume, cancel and migrate commands: a person's word about a run or a job."""

from __future__ import annotations

import time

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import find_server
from wattline.plane.finding import open_view
from wattline.plane.session import user
from wattline.plane.steering import ask_of, asking, describe_steered, say_steered
from wattline.plane.telling import tell


def steer(name: str | None, want: str, *, to: str | None = None, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        told, heard = server.steer(name, want, to), True
    else:
        with open_view() as view:
            run, jobs = ask_of(view.state, name, want, to=to)
            for asked in asking(jobs, want, at=time.time(), actor=user(), to=to):
                tell(view.session, asked)
            told, heard = describe_steered(run, jobs, want, to), view.writer is not None
    if as_json:
        print_json(told)
        return 0
    console = stdout_console()
    console.print(plain(say_steered(told)))
    if not heard:
        console.print(
            "nobody conducts now; it counts once `wattline run --resume` or a server does", style="dim"
        )
    return 0
