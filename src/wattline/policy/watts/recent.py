"""Recent: which of the jobs that run have begun, or were raised, so lately that it still counts?

Kept with the state, so that a decision costs what has changed since the last one.
"""

from __future__ import annotations

from wattline.state import Job, Snapshot

_FORGOTTEN = 1024  # entries of jobs that are gone, before all is looked through anew


class Recent:
    """Jobs by when they last began or were raised."""

    __slots__ = ("_eased", "_lately", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, Job] = {}
        self._lately: dict[str, float] = {}
        self._eased: dict[str, None] = {}

    @staticmethod
    def of(snapshot: Snapshot) -> Recent:
        found = snapshot.lasting.get(Recent)
        if not isinstance(found, Recent):
            found = snapshot.lasting[Recent] = Recent()
        return found

    def since(self, snapshot: Snapshot, earliest_at: float) -> list[Job]:
        """Those who hold a place and have begun or were raised after a time."""
        self._catch_up(snapshot)
        lately = self._lately
        for job_id in [one for one, at in lately.items() if at <= earliest_at or not _holds(snapshot, one)]:
            del lately[job_id]
        return [snapshot.jobs[job_id] for job_id in sorted(lately)]

    def held_below(self, snapshot: Snapshot) -> list[Job]:
        """Those who run under a cap that no rung asked for."""
        self._catch_up(snapshot)
        for job_id in [one for one in self._eased if not _holds(snapshot, one)]:
            del self._eased[job_id]
        return [snapshot.jobs[job_id] for job_id in sorted(self._eased)]

    def _catch_up(self, snapshot: Snapshot) -> None:
        """Whoever changes comes last among those who hold: the first that did not change ends the search."""
        holding = list(snapshot.holding)
        if len(self._seen) > len(holding) + _FORGOTTEN:
            self._seen.clear()
        for job_id in reversed(holding):
            job = snapshot.jobs[job_id]
            if self._seen.get(job_id) is job:
                break
            self._seen[job_id] = job
            self._lately[job_id] = max(job.started_at or 0.0, job.lifted_at or 0.0)
            if job.power_fraction < 1.0 and job.rung < 0:
                self._eased[job_id] = None
            else:
                self._eased.pop(job_id, None)


def _holds(snapshot: Snapshot, job_id: str) -> bool:
    return snapshot.claim(job_id) is not None
