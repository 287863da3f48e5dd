"""Turns: of all lines of waiting jobs, whose first is next?

Each team has lines of its own, in order; teams take turns by their standing, which changes only for the one
that was just given something. Lines are kept in order with the state: whoever cannot be helped is passed over
without being put in line, so a turn costs what it looks at.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec

from wattline.spec.policy import Policy
from wattline.state import Group, Line, Snapshot, compared_hours

# How urgent its class is, then the job: how urgent, since when, how much it asks for, who it is.
_Order = tuple[float, float, float, float, str]
_Bounds = tuple[frozenset[str] | None, tuple[str, ...] | None]  # models, regions


class Head(msgspec.Struct):
    """A line whose turn it is, by its next job; behind one that does not fit nobody is tried."""

    line: Line
    is_stuck: bool  # its shape is known to have fitted nowhere
    pools: list[int] | None = None  # all that needs to be looked at; None: all there is
    next: int = 0
    # By project, the shortest it has no budget for.
    broke: dict[str, float] = msgspec.field(default_factory=dict)
    # Models and regions that a team is bound to, none to be had.
    without: set[_Bounds] = msgspec.field(default_factory=set)

    @property
    def job_id(self) -> str:
        return self.line.queue[self.next][2]


class _Cursor:
    """How far a group was gone through."""

    __slots__ = ("group", "next", "rank")

    def __init__(self, group: Group, rank: float) -> None:
        self.group, self.rank, self.next = group, rank, 0


# Its order; its head, a line until its turn comes; from where the next of its group comes.
_Entry = tuple[_Order, Head | Line, _Cursor | None]


class _Party:
    """All lines among which a team's standing makes no difference."""

    __slots__ = ("before_all", "entries", "project")

    def __init__(self, before_all: float, project: str) -> None:
        self.before_all, self.project = before_all, project
        self.entries: list[_Entry] = []


class Turns:
    """Good for one decision; `standing` says where a team stands by now, `may_go` whom to put in line."""

    def __init__(
        self,
        draft: Snapshot,
        policy: Policy,
        standing: Callable[[str], float] | None,
        may_go: Callable[[Line], bool],
    ) -> None:
        self._draft, self._policy = draft, policy
        self._standing, self._may_go, self._stuck = standing, may_go, draft.stuck
        self._heap: list[tuple[float, float, _Order, _Party]] = []
        self._current: _Party | None = None
        if standing is None:  # without teams there is one party, and it is always its turn
            only = self._current = _Party(0.0, "")
            for (scheduling_class, _), group in draft.groups(by_project=False).items():
                self._advance(only, _Cursor(group, self._rank(scheduling_class)[0]))
            return
        parties: dict[tuple[float, str], _Party] = {}
        for (scheduling_class, project), group in draft.groups(by_project=True).items():
            rank, before_all = self._rank(scheduling_class)
            party = parties.get((before_all, project))
            if party is None:
                party = parties[before_all, project] = _Party(before_all, project)
            self._advance(party, _Cursor(group, rank))
        for party in parties.values():
            self._push(party)

    def next(self) -> Head | None:
        """Who is next; None where nobody is left."""
        if self._standing is not None:
            if self._current is not None:
                self._push(self._current)
            self._current = heapq.heappop(self._heap)[3] if self._heap else None
        party = self._current
        if party is None or not party.entries:
            return None
        _, head, cursor = heapq.heappop(party.entries)
        if cursor is not None:
            self._advance(party, cursor)
        return head if isinstance(head, Head) else Head(head, head.shape in self._stuck)

    def put_back(self, head: Head) -> bool:
        """Put the line whose turn it was in line again, by its next job; False where there is none."""
        head.next += 1
        if head.next >= len(head.line.queue):
            return False
        assert self._current is not None
        urgent, since, job_id = head.line.queue[head.next]
        job = self._draft.jobs[job_id]
        asks = job.request.gpus * compared_hours(job.remainder)
        rank, _ = self._rank(job.request.scheduling_class)
        entry = ((rank, urgent, since, -asks, job_id), head, None)
        heapq.heappush(self._current.entries, entry)
        return True

    def _rank(self, scheduling_class: str) -> tuple[float, float]:
        """What a class puts before since when one waits, and before its team's standing.

        Among teams, classes that may preempt go before all others.
        """
        known = self._policy.classes.get(scheduling_class)
        rank = -known.priority if known is not None else 0.0
        goes_first = self._standing is not None and known is not None and known.preempts
        return rank, rank if goes_first else 0.0

    def _advance(self, party: _Party, cursor: _Cursor) -> None:
        """Put the next of a group in line that may go."""
        group, may_go = cursor.group, self._may_go
        for number in range(cursor.next, len(group)):
            order, line = group[number]
            if may_go(line):
                cursor.next = number + 1
                heapq.heappush(party.entries, ((cursor.rank, *order), line, cursor))
                return

    def _push(self, party: _Party) -> None:
        if party.entries:
            standing = 0.0 if self._standing is None else self._standing(party.project)
            heapq.heappush(self._heap, (party.before_all, standing, party.entries[0][0], party))
