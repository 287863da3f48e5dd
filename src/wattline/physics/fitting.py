"""Fitting: which parameters make a model miss its measurements least?

A simplex search (Nelder and Mead), begun anew from where it ends until that helps no more: no derivatives,
no chance, the same answer every time. It suits models of a handful of parameters with a start near the
answer, which is what a physical model has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

_FINEST = 1e-5  # of the first step: a simplex this small has found its place
_MOST_MOVES = 400
_MOST_RESTARTS = 20
_WORTH_A_RESTART = 1e-6

Loss = Callable[[tuple[float, ...]], float]
Corner = tuple[float, tuple[float, ...]]  # loss first, so that corners sort from best to worst


def minimise(loss: Loss, start: Sequence[float], steps: Sequence[float]) -> tuple[float, ...]:
    """The parameters near `start` with the least loss; a loss of infinity marks what cannot be.

    `steps` is how far each parameter is moved to build the first simplex.
    """
    value, best = _search(loss, tuple(start), steps)
    for _ in range(_MOST_RESTARTS):
        before = value
        value, best = _search(loss, best, steps)
        if before - value <= _WORTH_A_RESTART * before:
            break
    return best


def _search(loss: Loss, start: tuple[float, ...], steps: Sequence[float]) -> Corner:
    moved = [(*start[:i], start[i] + step, *start[i + 1 :]) for i, step in enumerate(steps)]
    corners = sorted((loss(place), place) for place in (start, *moved))
    for _ in range(_MOST_MOVES):
        if _is_small(corners, steps):
            break
        corners = sorted(_move(loss, corners))
    return corners[0]


def _is_small(corners: list[Corner], steps: Sequence[float]) -> bool:
    """Judged by place, not by loss: corners on two sides of the best place can have the same loss."""
    axes = zip(*(place for _, place in corners), strict=True)
    return all(max(axis) - min(axis) <= _FINEST * step for axis, step in zip(axes, steps, strict=True))


def _move(loss: Loss, corners: list[Corner]) -> list[Corner]:
    """One move: the worst corner goes through the middle of the others, or all draw in on the best."""
    *others, worst = corners
    middle = [sum(values) / len(others) for values in zip(*(place for _, place in others), strict=True)]

    def corner_at(way: float) -> Corner:
        """Beyond the middle as seen from the worst corner: 1 is its mirror image."""
        place = tuple(m + way * (m - w) for m, w in zip(middle, worst[1], strict=True))
        return loss(place), place

    mirrored = corner_at(1.0)
    if mirrored < corners[0]:
        return [*others, min(mirrored, corner_at(2.0))]
    if mirrored < others[-1]:
        return [*others, mirrored]
    nearer = corner_at(0.5 if mirrored < worst else -0.5)
    if nearer < min(mirrored, worst):
        return [*others, nearer]
    best = corners[0][1]
    drawn_in = [tuple((b + p) / 2 for b, p in zip(best, place, strict=True)) for _, place in corners[1:]]
    return [corners[0], *((loss(place), place) for place in drawn_in)]
