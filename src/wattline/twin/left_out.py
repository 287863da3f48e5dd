"""Left out: whom do waits not count? They are of jobs that began."""

from __future__ import annotations

from wattline.twin.report import Report
from wattline.twin.wording import say_count


def count_never_begun(report: Report) -> int:
    """Of those that were not refused."""
    begun = sum(size.started for size in report.sizes.values())
    return report.jobs.submitted - report.jobs.refused - begun


def say_never_begun(report: Report) -> str:
    """Empty where all began, or where none did and no wait is told."""
    never = count_never_begun(report)
    if not 0 < never < report.jobs.submitted - report.jobs.refused:
        return ""
    jobs = "a job" if never == 1 else f"{say_count(never)} jobs"
    return f"waits leave out {jobs} that had not begun by the end"
