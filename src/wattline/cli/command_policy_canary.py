"""The policy canary command: let a candidate decide in shadow, and see what it would have done."""

from __future__ import annotations

import time

from rich.console import Console

from wattline.cli.canary_arms import is_apart, say_share_of, show_arms, with_share
from wattline.cli.command_explain_past import say_difference
from wattline.cli.policy_trial import REFUSES, STARTS_NOTHING, say_jobs
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.errors import UnavailableError, UsageError
from wattline.live import Home
from wattline.plane.explaining_past import describe_difference
from wattline.plane.moments import clock, iso
from wattline.plane.policy_shadow import CanaryFiles, Candidate, Seen
from wattline.plane.session import open_session, user
from wattline.twin.wording import say_count
from wattline.units import format_seconds

STATUS, STOP = "status", "stop"
_MOST_SHOWN = 10


def run_canary(asked: str, *, share: str | None = None, on: tuple[str, ...] = (), as_json: bool) -> int:
    """A file begins one, in place of another that may be under way."""
    if asked in (STATUS, STOP) and (share is not None or on):
        raise UsageError("--share, --site and --nodes belong to a policy that begins", hint="name a file")
    if asked == STATUS and is_apart(Home.find()):
        return show_arms(Home.find(), as_json=as_json)
    if asked == STATUS:
        return _status(as_json=as_json)
    if asked == STOP:
        return _stop(as_json=as_json)
    say_here()
    session = open_session()
    try:
        digest = session.keep_policy(asked)
        candidate = Candidate(
            policy=session.policy_of(digest).policy, sha256=digest, by=user(), at=time.time()
        )
        if share is not None or on:
            candidate = with_share(session, candidate, share, on)
        CanaryFiles(session.home).begin(candidate)
        conducted = session.store.lease.current() is not None
    finally:
        session.close()
    if as_json:
        told = {"policy": candidate.policy, "sha256": digest, "since": iso(candidate.at)}
        print_json({**told, "on": candidate.on, "share": candidate.share} if candidate.on else told)
        return 0
    console = stdout_console()
    if candidate.on:
        console.print(plain(f"{candidate.policy} decides for {say_share_of(candidate)} from here on"))
    else:
        console.print(plain(f"{candidate.policy} decides in shadow from here on; nothing of it is done"))
    when = "with its next turn" if conducted else "with the next run: nobody conducts here now"
    shows = "how both sides fare" if candidate.on else "what it would have done"
    console.print(f"it begins {when}; `wattline policy canary status` shows {shows}", style="dim")
    return 0


def _stop(*, as_json: bool) -> int:
    candidate = CanaryFiles(Home.find()).stop()
    if as_json:
        print_json({"stopped": candidate is not None, "policy": candidate.policy if candidate else None})
    else:
        where = f"for {say_share_of(candidate)}" if candidate and candidate.on else "in shadow"
        told = f"{candidate.policy} no longer decides {where}" if candidate else "no candidate was in shadow"
        stdout_console().print(plain(told))
    return 0


def _status(*, as_json: bool) -> int:
    """1 where the candidate would start nothing, or cannot be evaluated."""
    files = CanaryFiles(Home.find())
    candidate, seen = files.candidate(), files.seen()
    if candidate is None and seen is None:
        raise UnavailableError(
            f"no candidate was ever in shadow in {Home.find().root}",
            hint="`wattline policy canary FILE` begins",
        )
    if candidate is not None and seen is not None and seen.candidate != candidate:
        seen = None  # of an earlier one
    complaints = _complaints(seen)
    if as_json:
        print_json(_describe(candidate, seen, complaints))
    else:
        _show(stdout_console(), candidate, seen, complaints)
    return 1 if complaints else 0


def _complaints(seen: Seen | None) -> list[str]:
    if seen is None:
        return []
    sighting, found = seen.sighting, []
    if sighting.starts_nothing:
        word = REFUSES if sighting.done.get("refused", 0) >= sighting.waited else STARTS_NOTHING
        found.append(f"it would {word}: not one of {say_jobs(sighting.waited)} would have started")
    found += [
        f"rule {rule} cannot be evaluated: {failure}" for rule, failure in sighting.failed_rules.items()
    ]
    if sighting.errors:
        found.append(f"it failed {say_count(sighting.errors)} times, first: {sighting.first_errors[0]}")
    return found


def _describe(candidate: Candidate | None, seen: Seen | None, complaints: list[str]) -> dict[str, object]:
    told = candidate or (seen.candidate if seen is not None else None)
    sighting = seen.sighting if seen is not None else None
    return {
        "policy": told.policy if told else None,
        "sha256": told.sha256 if told else None,
        "by": told.by if told else None,
        "since": iso(told.at) if told else None,
        "active": candidate is not None,
        "as_of": iso(seen.at) if seen is not None else None,
        "complaints": complaints,
        "turns": sighting.turns if sighting else 0,
        "seconds_per_turn": sighting.seconds / sighting.turns if sighting and sighting.turns else None,
        "would": sighting.done if sighting else {},
        "jobs": sighting.waited if sighting else 0,
        "differences": {
            "count": sum(sighting.by_kind.values()) if sighting else 0,
            "by_kind": sighting.by_kind if sighting else {},
            "by_rule": sighting.by_rule if sighting else {},
            "first": [describe_difference(each) for each in sighting.first] if sighting else [],
        },
        "errors": sighting.errors if sighting else 0,
        "first_errors": sighting.first_errors if sighting else (),
        "not_estimated": ["seconds_per_turn"] if not (sighting and sighting.turns) else [],
    }


def _show(console: Console, candidate: Candidate | None, seen: Seen | None, complaints: list[str]) -> None:
    for complaint in complaints:
        console.print(plain(f"✗ {complaint}"), style="bold red")
    told = candidate or (seen.candidate if seen is not None else None)
    assert told is not None
    state = "decides in shadow" if candidate is not None else "decided in shadow, and was stopped"
    console.print(
        plain(f"{told.policy} {state}, since {clock(told.at)} at the word of {told.by}"), style="bold"
    )
    if seen is None:
        console.print("nobody has conducted since, so nothing was seen of it yet")
        return
    sighting = seen.sighting
    count = sum(sighting.by_kind.values())
    pace = f", {format_seconds(sighting.seconds / sighting.turns)} each" if sighting.turns else ""
    differences = "1 difference" if count == 1 else f"{say_count(count)} differences"
    console.print(f"{say_count(sighting.turns)} turns up to {clock(seen.at)}{pace}; {differences}")
    if not count:
        return
    table = columns("what", "how often", last_ratio=False)
    for kind, often in sorted(sighting.by_kind.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(kind, say_count(often))
    console.print(table)
    console.print()
    for difference in sighting.first[:_MOST_SHOWN]:
        console.print(plain(say_difference(difference)))
