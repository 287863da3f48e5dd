"""What did each project use in weeks that are over? The state's accounts know the present one alone."""

from __future__ import annotations

from collections.abc import Iterable

from wattline.control.record import StepRecord
from wattline.state import AttemptEnded, State, Usage

Used = tuple[int, str, Usage]  # number of the week, project, what it used


class PastWeeks:
    """Fed with steps as objectives are; an account's last word in a week is that week's sum."""

    def __init__(self, known: Iterable[Used] = ()) -> None:
        self._used = {(week, project): usage for week, project, usage in known}

    def note(self, state: State, record: StepRecord) -> None:
        for event in record.events:
            job = state.jobs.get(event.job) if isinstance(event, AttemptEnded) else None
            if job is not None:
                project = job.request.project
                account = state.accounts.get(project)
                if account is not None:
                    self._used[account.week, project] = account.used

    def used(self, week: int, project: str) -> Usage:
        return self._used.get((week, project), Usage())

    def projects(self, week: int) -> list[str]:
        return sorted({project for known, project in self._used if known == week})

    def memory(self) -> list[Used]:
        return [(week, project, usage) for (week, project), usage in self._used.items()]
