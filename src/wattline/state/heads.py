"""Heads: of everybody who waits, who is first in each line, and which line comes before which?

A line is of jobs that ask for the same. Lines are kept in order by class, and by project where a policy has
teams, so that a decision goes through them without putting thousands in order anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from wattline.state.job import Job
from wattline.state.request import Kind, compared_hours

Shape = tuple[object, ...]
Key = tuple[float, float, str]  # how urgent, since when, which job
# So many that have left may stand before the first, if those behind are fewer.
_MANY_GONE = 256
# How urgent the first of a line is, since when it waits, how much it asks for, who it is. Of those who came
# at once, whoever asks for most goes first: it has most to lose by a dear place.
Order = tuple[float, float, float, str]


class Queue:
    """Keys in order. Most who leave go first: that costs nothing, however many wait behind them."""

    __slots__ = ("_first", "_keys")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys, self._first = list(keys), 0

    def __len__(self) -> int:
        return len(self._keys) - self._first

    def __getitem__(self, number: int) -> Key:
        return self._keys[self._first + number]

    def __iter__(self) -> Iterator[Key]:
        return islice(self._keys, self._first, None)

    def enter(self, key: Key) -> None:
        insort(self._keys, key, self._first)

    def leave(self, key: Key) -> None:
        keys, first = self._keys, self._first
        if keys[first] != key:
            del keys[bisect_left(keys, key, first)]
            return
        self._first = first = first + 1
        if first >= _MANY_GONE and 2 * first > len(keys):
            del keys[:first]
            self._first = 0


class Line:
    """Waiting jobs of one shape, the first first."""

    __slots__ = ("kind", "order", "queue", "shape", "watts")

    def __init__(self, shape: Shape, job: Job, queue: Queue) -> None:
        self.shape, self.queue = shape, queue
        self.kind: Kind = job.request.kind
        self.watts = job.request.each_watts
        self.order: Order = (0.0, 0.0, 0.0, "")  # that of its first


Group = list[tuple[Order, Line]]


class Heads:
    """All lines, in order within each class: of each project, or of all projects together."""

    __slots__ = ("_by_project", "groups", "lines")

    def __init__(self, *, by_project: bool) -> None:
        self._by_project = by_project
        self.lines: dict[tuple[Shape, str], Line] = {}  # by shape and project
        self.groups: dict[tuple[str, str], Group] = {}  # by class and project

    def enter(self, job: Job, key: Key, shape: Shape, queue: Queue, jobs: Mapping[str, Job]) -> None:
        """Somebody has come to the queue of its shape."""
        project = job.request.project if self._by_project else ""
        line = self.lines.get((shape, project))
        is_new = line is None
        if line is None:
            line = self.lines[shape, project] = Line(shape, job, Queue() if self._by_project else queue)
        if self._by_project:
            line.queue.enter(key)
        if line.queue[0] is not key:
            return
        group = self.groups.setdefault((job.request.scheduling_class, project), [])
        if not is_new:
            del group[bisect_left(group, (line.order,))]
        self._put_in(group, line, jobs)

    def leave(self, job: Job, key: Key, shape: Shape, jobs: Mapping[str, Job]) -> None:
        """Somebody has left the queue of its shape."""
        request = job.request
        project = request.project if self._by_project else ""
        line = self.lines[shape, project]
        if self._by_project:
            line.queue.leave(key)
        if line.order[3] != key[2]:
            return
        group = self.groups[request.scheduling_class, project]
        del group[bisect_left(group, (line.order,))]
        if line.queue:
            self._put_in(group, line, jobs)
            return
        del self.lines[shape, project]
        if not group:
            del self.groups[request.scheduling_class, project]

    def _put_in(self, group: Group, line: Line, jobs: Mapping[str, Job]) -> None:
        urgent, since, job_id = line.queue[0]
        remainder = jobs[job_id].remainder
        line.order = (urgent, since, -remainder.gpus * compared_hours(remainder), job_id)
        insort(group, (line.order, line))
