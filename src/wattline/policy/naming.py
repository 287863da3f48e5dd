"""Action ids: derived from what an action is for, so that deciding twice asks once."""

from __future__ import annotations

from wattline.state import BEGINNINGS, Action, ActionKind, Job, Place, Rest


def next_action(
    job: Job,
    kind: ActionKind,
    *,
    place: Place | None = None,
    fraction: float = 1.0,
    rung: int | None = None,
    lost_gpu_seconds: float = 0.0,
    because: str = "",
    yields: bool = False,
    returns_to: Place | None = None,
    lost: bool = False,
) -> Action:
    """The next action for a job. Beginning again is a new attempt; all else concerns the present one."""
    attempt = job.attempt + 1 if kind in BEGINNINGS else job.attempt
    return Action(
        id=f"{job.id}#{attempt}.{kind}.{job.actions}",
        kind=kind,
        job=job.id,
        attempt=attempt,
        place=place,
        returns_to=returns_to,
        from_site=job.saved.site if kind in BEGINNINGS and job.saved is not None else "",
        fraction=fraction,
        rung=rung,
        lost_gpu_seconds=lost_gpu_seconds,
        because=because,
        mode=job.mode if kind in BEGINNINGS else "",
        yields=yields,
        lost=lost,
    )


def turn_action(node: str, rest: Rest | None, kind: ActionKind, because: str) -> Action:
    """The next that a node is asked: to sleep or to wake."""
    turns = 0 if rest is None else rest.turns
    return Action(id=f"{node}#{turns + 1}.{kind}", kind=kind, node=node, because=because)
