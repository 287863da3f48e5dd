"""Sweeping: which jobs run for attempts that nobody holds any more, and how are they ended?

Each attempt's job is an allocation of its own. Whoever made it may have died and forgotten it; then it holds
GPUs and licenses for nobody. Jobs are known by their folders.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from wattline.engines.documents import read_document
from wattline.engines.files import LAUNCH, ORDERS
from wattline.engines.slurm.cluster import Cluster


class _Recorded(msgspec.Struct, frozen=True):
    at: float = 0.0


def sweep(cluster: Cluster, root: Path, known: Collection[Path], before: float) -> list[str]:
    """Cancel every job in a folder below `root` that is not one of these; say what was cancelled."""
    held = {str(directory.resolve()) for directory in known}
    root = root.resolve()
    swept = []
    for job, folder in cluster.living():
        directory = Path(folder)
        if not directory.is_relative_to(root) or ".." in directory.parts or folder in held:
            continue
        recorded = read_document(directory, LAUNCH, _Recorded)
        if recorded is None or recorded.at >= before or not cluster.cancel_in(job, directory):
            continue
        (directory / ORDERS).unlink(missing_ok=True)
        swept.append(f"Slurm job {job} ran in {directory} for an attempt that nobody holds: cancelled")
    return swept
