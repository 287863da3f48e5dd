"""What Wattline may do: a closed set. Pumps, valves and set points are not in it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from wattline.enums import plain_members
from wattline.state.verdict import Verdict


@plain_members
class ActionKind(StrEnum):
    START = "start"
    REFUSE = "refuse"
    CAP_POWER = "cap_power"  # lifting a cap is the same action at 100 %
    SHRINK_BATCH = "shrink_batch"
    PAUSE = "pause"  # at a checkpoint, where the job has one
    RESUME = "resume"  # start again at the same site
    MIGRATE = "migrate"  # start again at another
    STOP = "stop"
    WAKE = "wake"  # of a node, as the next
    SLEEP = "sleep"


BEGINNINGS = frozenset({ActionKind.START, ActionKind.RESUME, ActionKind.MIGRATE})


class Place(msgspec.Struct, frozen=True):
    """Where a job runs: nodes of one site, with how many of each one's GPUs."""

    site: str
    nodes: tuple[tuple[str, int], ...]

    @property
    def gpus(self) -> int:
        return sum([gpus for _, gpus in self.nodes])

    def __str__(self) -> str:
        return ", ".join(f"{node}×{gpus}" if gpus else node for node, gpus in self.nodes)


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to do. Its id is derived from what it is for, so a repeat is the same action."""

    id: str
    kind: ActionKind
    job: str = ""
    node: str = ""  # for wake and sleep, which concern no job
    attempt: int = 0  # the attempt it begins or concerns
    place: Place | None = None
    returns_to: Place | None = None  # of a pause that makes it narrower or wider: where it goes on
    from_site: str = ""  # where the newest checkpoint is, for resume and migrate
    fraction: float = 1.0  # for cap_power and shrink_batch
    rung: int | None = None  # where on its ladder the job stands after this; None: unchanged
    lost_gpu_seconds: float = 0.0  # its price in useful work
    because: str = ""
    mode: str = ""  # of a beginning: canonical or approximate, where that was chosen
    yields: bool = False  # a pause that makes way for another job: it waits in line again
    lost: bool = False  # a stop for want of an answer: the attempt counts as lost, and the job goes on
    by: str = ""  # the candidate policy that decided it, for its share of nodes; empty: the one in force


class Reservation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place that is kept for a job that waits: as those who hold it leave, nobody else takes it."""

    job: str
    place: Place
    made_at: float
    # By when all who hold it will have left; None: one of them has set no end.
    starts_at: float | None = None
    because: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, why, and when to look again at the latest."""

    at: float
    actions: tuple[Action, ...] = ()
    verdicts: tuple[Verdict, ...] = ()  # those that changed
    stuck: tuple[str, ...] = ()  # for each shape that was found to fit nowhere, one of its jobs
    unsure: tuple[str, ...] = ()  # … and where that is not known any more, though none of them was tried
    reservations: tuple[Reservation, ...] = ()  # that were made
    given_up: tuple[str, ...] = ()  # jobs whose reservation cannot be kept any more
    eased: tuple[str, ...] = ()  # jobs whose pressure has just gone
    pressed: tuple[str, ...] = ()  # … and has just come back
    restless: tuple[str, ...] = ()  # jobs to look at next time, even if nothing near them changes
    revisit_at: float | None = None
    answer_by: float | None = None  # when to look again where one of the actions has no answer by then
    unread_at: float | None = None  # when readings that are believed now will be too old, if none come

    @property
    def is_idle(self) -> bool:
        """Nothing was decided: where nothing had happened either, such a turn leaves no trace."""
        noted = (self.eased, self.pressed, self.stuck, self.unsure, self.reservations, self.given_up)
        return not (self.actions or self.verdicts or any(noted))

    @property
    def due_at(self) -> float | None:
        """When to look again at the latest, also where nobody answers or reads a meter until then."""
        times = [at for at in (self.revisit_at, self.answer_by, self.unread_at) if at is not None]
        return min(times, default=None)
