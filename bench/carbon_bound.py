"""The least carbon that any schedule could have had: by someone who knew all hours and all arrivals.

Work may be split at will, between hours, widths and sites, and standing still costs nothing, so that no real
schedule reaches it; only the capacity of each site and the deadlines hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from bench.carbon_fleet import WORK_BY_WIDTH, FleetJob


def clairvoyant_grams(jobs: Sequence[FleetJob], series: Sequence[Sequence[float]], capacity: int) -> float:
    """One variable for each job, site, unit of width and hour of its window, solved by HiGHS."""
    first, last = min(job.arrives for job in jobs), max(job.deadline for job in jobs)
    hours = last - first
    cost, of_hour, of_job, work = [], [], [], []
    for number, job in enumerate(jobs):
        window = np.arange(job.arrives, job.deadline)
        for site, intensity in enumerate(series):
            for gained in WORK_BY_WIDTH:
                cost.append(np.asarray(intensity[job.arrives : job.deadline]))
                of_hour.append(site * hours + window - first)
                of_job.append(np.full(len(window), len(series) * hours + number))
                work.append(np.full(len(window), -gained))
    costs = np.concatenate(cost)
    columns = np.arange(len(costs))
    rows = np.concatenate([*of_hour, *of_job])
    values = np.concatenate([np.ones(len(costs)), *work])
    most = [float(capacity)] * (len(series) * hours) + [-job.work for job in jobs]
    matrix: Any = coo_array(
        (values, (rows, np.concatenate([columns, columns]))), shape=(len(most), len(costs))
    )
    found = linprog(costs, A_ub=matrix.tocsr(), b_ub=most, bounds=(0.0, 1.0), method="highs")
    if found.fun is None:
        raise RuntimeError(f"the bound was not found: {found.message}")
    return float(found.fun)
