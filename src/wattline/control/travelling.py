"""Travelling: how did things stand at an earlier time, and what would another policy have decided since?

What was recorded is folded again, never decided again: the state is the one that was. Another policy is asked
about it step by step, and nothing of what it answers is carried on. From the first difference on it therefore
answers about a history that its own decisions would not have led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from wattline.control.record import StepRecord
from wattline.control.replay import Documents, fold_step
from wattline.spec.policy import Policy
from wattline.state import State

Steps = Iterable[tuple[int, StepRecord]]


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded step before its decision is settled: look at the state now, it goes on from here."""

    seq: int
    record: StepRecord
    state: State
    in_force: Policy


def until(steps: Steps, at: float) -> Iterator[tuple[int, StepRecord]]:
    """The steps up to a time; the first that is later ends it, also where a clock jumped back after that."""
    return takewhile(lambda step: step[1].decision.at <= at, steps)


def turns(state: State | None, steps: Steps, documents: Documents) -> Iterator[Turn]:
    """Every step in which something was decided, as it was; all others are folded on the way."""
    digest, policy = "", None
    for seq, record in steps:
        state = fold_step(state, seq, record, documents)
        if not record.decided:
            continue
        if policy is None or digest != state.adopted["policy_sha256"]:
            digest = state.adopted["policy_sha256"]
            policy = documents.policy(digest)
        yield Turn(seq, record, state, policy)
        state.settle(record.decision)
