"""The commands that put a policy in force, take it back, and show what is: each step with who and why."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from rich.console import Console

from wattline.cli.canary_arms import say_share_of
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.cli.remote import say_here
from wattline.live import Home
from wattline.plane.finding import open_if_any
from wattline.plane.moments import clock, iso
from wattline.plane.policy_in_force import adopt_now, say_placing
from wattline.plane.policy_shadow import CanaryFiles, Candidate
from wattline.plane.session import open_session, user
from wattline.release.policy_shelf import Placing, PolicyShelf


def promote_policy(file: str, *, approved_by: str, because: str, as_json: bool) -> int:
    """From here on runs without `--policy` go by it; who conducts takes it up with the next turn."""
    say_here()
    session = open_session()
    try:
        digest = session.keep_policy(file)
        shelf, at = PolicyShelf(session.home), time.time()
        before = shelf.current()
        placing = shelf.promote(
            session.policy_of(digest).policy,
            digest,
            by=user(),
            at=at,
            approved_by=approved_by,
            because=because,
        )
        is_new = placing != before
        journaled = adopt_now(session, placing) if is_new else False
    finally:
        session.close()
    _tell(placing, is_new=is_new, journaled=journaled, as_json=as_json)
    return 0


def rollback_policy(*, because: str, as_json: bool) -> int:
    say_here()
    session = open_session(must_exist=True)
    try:
        placing = PolicyShelf(session.home).rollback(by=user(), at=time.time(), because=because)
        journaled = adopt_now(session, placing)
    finally:
        session.close()
    _tell(placing, is_new=True, journaled=journaled, as_json=as_json)
    return 0


def show_policy(*, as_json: bool) -> int:
    """Nothing is written, and no lease is needed."""
    home = Home.find()
    shelf, files = PolicyShelf(home), CanaryFiles(home)
    history, candidate = shelf.history(), files.candidate()
    with open_if_any() as view:
        adopted = view.state.adopted if view is not None else {}
        conducted = view is not None and view.writer is not None
    if as_json:
        print_json(_describe(shelf.current(), history, adopted, candidate, conducted=conducted))
    else:
        _show(stdout_console(), shelf.current(), history, adopted, candidate, conducted=conducted)
    return 0


def _tell(placing: Placing, *, is_new: bool, journaled: bool, as_json: bool) -> None:
    if as_json:
        print_json({**_describe_placing(placing), "changed": is_new, "journaled": journaled})
        return
    console = stdout_console()
    if not is_new:
        console.print(plain(f"{placing.policy} is in force already, as number {placing.number}"))
        return
    console.print(plain(say_placing(placing)))
    if not journaled:
        told = "who conducts here without --policy takes it up with the next turn, else the next run does"
        console.print(told, style="dim")


def _describe_placing(placing: Placing) -> dict[str, object]:
    return {**msgspec.structs.asdict(placing), "at": iso(placing.at)}


def _describe(
    current: Placing | None,
    history: Sequence[Placing],
    adopted: dict[str, str],
    candidate: Candidate | None,
    *,
    conducted: bool,
) -> dict[str, object]:
    return {
        "promoted": None if current is None else _describe_placing(current),
        "adopted": {"policy": adopted["policy"], "sha256": adopted["policy_sha256"]} if adopted else None,
        "conducted": conducted,
        "canary": None if candidate is None else _describe_candidate(candidate),
        "history": [_describe_placing(placing) for placing in history],
    }


def _describe_candidate(candidate: Candidate) -> dict[str, object]:
    return {
        "policy": candidate.policy,
        "sha256": candidate.sha256,
        "on": candidate.on,
        "share": candidate.share,
    }


def _show(
    console: Console,
    current: Placing | None,
    history: Sequence[Placing],
    adopted: dict[str, str],
    candidate: Candidate | None,
    *,
    conducted: bool,
) -> None:
    if current is None:
        console.print("no policy is promoted here: runs without --policy go by the default that ships")
    else:
        console.print(plain(f"promoted: {current.policy}, {current.sha256[:19]}…"), style="bold")
    if adopted and conducted:
        console.print(
            plain(f"the queue is conducted by {adopted['policy']}, {adopted['policy_sha256'][:19]}…")
        )
    if candidate is not None:
        tried = f"in shadow: {candidate.policy}"
        if candidate.on:
            tried = f"{candidate.policy} decides for {say_share_of(candidate)}"
        console.print(plain(f"{tried}; `wattline policy canary status` tells more"))
    if not history:
        return
    table = columns("when", "what")
    for placing in reversed(history):
        table.add_row(clock(placing.at), plain(say_placing(placing)))
    console.print()
    console.print(table)
