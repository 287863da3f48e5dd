"""The explain command: why does a job wait, why did it move, and what would change that, at what price?

With a time it answers as of then; with another policy it says where that one would have decided otherwise.
"""

from __future__ import annotations

import sys

from wattline.cli.explain_text import show_explained
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import find_server
from wattline.plane.explaining import describe_answer, explain_jobs, look_ahead_for
from wattline.plane.finding import find_jobs, open_view


def explain_job(name: str | None, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        server.show(server.place_of(name) + "/explain", as_json=as_json)
        return 0
    with open_view() as view:
        _, jobs = find_jobs(view.state, name)
        trouble = look_ahead_for(view, jobs)
        if trouble:
            sys.stderr.write(f"wattline: {plain(trouble)}\n")
        answer = explain_jobs(view, name)
        if as_json:
            print_json(describe_answer(view, answer))
        else:
            show_explained(stdout_console(), view, answer.run, answer.jobs, answer.explained, answer.story)
    return 0
