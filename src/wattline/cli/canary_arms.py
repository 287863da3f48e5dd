"""A canary for a share of nodes, on the command line: which nodes it gets, and how both sides fare."""

from __future__ import annotations

import msgspec

from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.control.arms import ArmFigures
from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live import Home
from wattline.plane.moments import clock, iso
from wattline.plane.policy_arms import ArmsTold, told_of, why_not_apart
from wattline.plane.policy_shadow import CanaryFiles, Candidate
from wattline.plane.session import Session
from wattline.policy.apart import choose_racks, nodes_of
from wattline.twin.wording import say_count, say_gpu_hours
from wattline.units import FRACTION, QuantityError, format_seconds, format_share


def with_share(session: Session, candidate: Candidate, share: str | None, on: tuple[str, ...]) -> Candidate:
    """The candidate with the nodes that it decides for, which are journaled by name."""
    if share is not None and on:
        raise UsageError(
            "--share chooses racks by lot, --site and --nodes name them", hint="give one of them"
        )
    if session.state is None:
        raise UnavailableError(
            "nothing ran here yet, so there is no facility to take a share of",
            hint="run something first; without --share a candidate decides in shadow",
        )
    plant = session.state.plant
    if share is not None:
        try:
            wanted = FRACTION.parse(share)
        except QuantityError as error:
            raise UsageError(f"--share: {error}", hint="such as 10%") from error
        if not 0.0 < wanted < 1.0:
            raise UsageError(f"--share: more than none and less than all, got {share}", hint="such as 10%")
        on = choose_racks(plant, wanted, candidate.sha256)
        if not on:
            raise RefusedError("a share takes whole racks, and here there is one alone", hint="name --nodes")
    why = why_not_apart(session.policy(), session.policy_of(candidate.sha256), plant, on)
    if why:
        raise RefusedError(
            f"{candidate.policy} cannot decide for a share of the nodes: {why}",
            hint="without --share it decides in shadow",
        )
    gpus = sum(spot.node.gpus for spot in plant.spots)
    theirs = sum(plant.spots[node].node.gpus for node in nodes_of(plant, on))
    return msgspec.structs.replace(candidate, on=on, share=theirs / gpus if gpus else 0.0)


def say_share_of(candidate: Candidate) -> str:
    names = ", ".join(candidate.on[:4]) + (
        f" and {len(candidate.on) - 4} more" if len(candidate.on) > 4 else ""
    )
    return f"{names} ({format_share(candidate.share)} of the GPUs)"


def is_apart(home: Home) -> bool:
    """Whether the last that was asked for, or seen, is a candidate for a share of nodes."""
    files = CanaryFiles(home)
    candidate, told, seen = files.candidate(), told_of(home), files.seen()
    if candidate is not None:
        return bool(candidate.on)
    return told is not None and (seen is None or told.at >= seen.at)


def show_arms(home: Home, *, as_json: bool) -> int:
    """1 where it stopped itself."""
    candidate, told = CanaryFiles(home).candidate(), told_of(home)
    if told is not None and candidate is not None and told.candidate != candidate:
        told = None  # of an earlier one
    shown = candidate or (told.candidate if told is not None else None)
    assert shown is not None
    if as_json:
        print_json(_describe(shown, told, active=candidate is not None))
    else:
        _show(shown, told, active=candidate is not None)
    return 1 if told is not None and told.stopped else 0


def _describe(candidate: Candidate, told: ArmsTold | None, *, active: bool) -> dict[str, object]:
    return {
        "policy": candidate.policy,
        "sha256": candidate.sha256,
        "by": candidate.by,
        "since": iso(candidate.at),
        "active": active,
        "on": candidate.on,
        "share": candidate.share,
        "stopped": told.stopped if told is not None else "",
        "as_of": iso(told.at) if told is not None else None,
        "in_force": _figures(told.seen.in_force) if told is not None else None,
        "candidate": _figures(told.seen.candidate) if told is not None else None,
    }


def _figures(side: ArmFigures) -> dict[str, object]:
    return {**msgspec.to_builtins(side), "mean_wait_seconds": side.mean_wait_seconds}


def _show(candidate: Candidate, told: ArmsTold | None, *, active: bool) -> None:
    console = stdout_console()
    if told is not None and told.stopped:
        console.print(plain(f"✗ it was stopped: {told.stopped}"), style="bold red")
    verb = "decides" if active else "decided"
    console.print(
        plain(f"{candidate.policy} {verb} for {say_share_of(candidate)}, since {clock(candidate.at)}"),
        style="bold",
    )
    if told is None:
        console.print("nobody has conducted since, so nothing was seen of it yet")
        return
    table = columns("", "in force", plain(candidate.policy), last_ratio=False)
    sides = (told.seen.in_force, told.seen.candidate)
    rows = {
        "GPUs": [say_count(side.gpus) for side in sides],
        "jobs started": [say_count(side.started) for side in sides],
        "jobs refused": [say_count(side.refused) for side in sides],
        "mean wait": [_seconds(side.mean_wait_seconds) for side in sides],
        "longest wait": [_seconds(side.longest_wait_seconds if side.started else None) for side in sides],
        "useful GPU-hours": [say_gpu_hours(side.useful_gpu_hours) for side in sides],
        "lost GPU-hours": [say_gpu_hours(side.lost_gpu_hours) for side in sides],
        "racks above their cap": [say_count(side.violations) for side in sides],
    }
    for name, cells in rows.items():
        table.add_row(name, *cells)
    console.print(table)
    console.print(f"up to {clock(told.at)}; shares of this size differ by chance too", style="dim")


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)
