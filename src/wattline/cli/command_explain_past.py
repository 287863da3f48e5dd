"""The explain command with a time: what was decided for a job then, and what would another policy have?"""

from __future__ import annotations

from rich.console import Console

from wattline.cli.explain_text import show_explained
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import find_server
from wattline.control import Difference
from wattline.errors import UsageError
from wattline.plane.explaining_past import Otherwise, PastAnswer, describe_past_answer, explain_jobs_then
from wattline.plane.finding import open_view
from wattline.plane.moments import clock
from wattline.plane.past import read_moment
from wattline.spec import find_policy, read_policy

_IF = "policy="


def explain_past(name: str | None, *, at: str | None, otherwise: str | None, as_json: bool) -> int:
    """Without a time: as of the last word of the journal."""
    file = None if otherwise is None else _file_of(otherwise)
    policy = None if file is None else read_policy(file)
    server = find_server()
    if server is not None:
        asked = {
            "at": None if at is None else read_moment(at),
            "policy": None if file is None else find_policy(file).read_text(),
        }
        server.show_posted(server.place_of(name) + "/explain", asked, as_json=as_json)
        return 0
    with open_view() as view:
        answer = explain_jobs_then(view, name, view.at if at is None else read_moment(at), policy)
        if as_json:
            print_json(describe_past_answer(answer))
        else:
            show_past(stdout_console(), answer)
    return 0


def show_past(console: Console, answer: PastAnswer) -> None:
    past = answer.past
    console.print(f"as of {clock(past.at)} (record {past.seq}), by policy {past.policy.policy}", style="dim")
    show_explained(
        console, answer.then, answer.run, answer.jobs, answer.explained, answer.story, is_past=True
    )
    if answer.otherwise is not None:
        _show_otherwise(console, answer.otherwise)


def _file_of(text: str) -> str:
    if not text.startswith(_IF) or text == _IF:
        raise UsageError(f"--if {text[:100]!r} is not known", hint="write it as --if policy=FILE")
    return text.removeprefix(_IF)


def _show_otherwise(console: Console, changed: Otherwise) -> None:
    console.print()
    console.print(plain(f"under policy {changed.policy.policy}"), style="bold")
    if not changed.tally.count:
        console.print("every decision up to then would have been the same")
        return
    if changed.own is not None:
        console.print(plain(f"first differs at {say_difference(changed.own)}"))
    else:
        console.print("every decision about it up to then would have been the same")
    first = changed.tally.first[0]
    if changed.own is None or first.seq < changed.own.seq:
        console.print(plain(f"of all jobs, first at {say_difference(first)}"))
    console.print(
        "asked about what was recorded: from the first difference on, history would have gone another way",
        style="dim",
    )


def say_difference(difference: Difference) -> str:
    """A difference on a line."""
    record = f" (record {difference.seq})" if difference.seq else ""
    rule = f" [{difference.rule}]" if difference.rule and difference.rule not in difference.say else ""
    return f"{clock(difference.at)}{record}: {difference.say}{rule}"
