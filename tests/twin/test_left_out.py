from __future__ import annotations

import pytest

from twin.recording import a_report
from wattline.twin.left_out import count_never_begun, say_never_begun
from wattline.twin.report import JobCounts, sizes_of


@pytest.mark.parametrize(
    ("begun", "never", "said"),
    [
        (8, 0, ""),
        (7, 1, "waits leave out a job that had not begun by the end"),
        (3, 5, "waits leave out 5 jobs that had not begun by the end"),
        (0, 8, ""),  # then no wait is told either
    ],
)
def test_who_had_not_begun_is_told_where_waits_leave_them_out(begun: int, never: int, said: str) -> None:
    report = a_report(
        jobs=JobCounts(submitted=10, completed=begun, refused=2, unfinished=never),
        sizes=sizes_of([1] * begun, [60.0] * begun),
    )
    assert count_never_begun(report) == never
    assert say_never_begun(report) == said
