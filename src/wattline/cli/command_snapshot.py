"""The snapshot command: what stands here, in a file that builds can read."""

from __future__ import annotations

from pathlib import Path

from wattline.cli.finding import open_view
from wattline.cli.printing import iso, plain, print_json, stdout_console
from wattline.cli.snapshots import write_snapshot
from wattline.units import format_bytes


def snapshot_to(file: Path, *, as_json: bool) -> int:
    with open_view() as view:
        size_bytes = write_snapshot(view, file)
        at, jobs = view.at, len(view.state.jobs)
    if as_json:
        print_json({"file": str(file), "at": iso(at), "jobs": jobs, "size_bytes": size_bytes})
    else:
        said = f"{file}: {jobs} jobs as of {iso(at)}, {format_bytes(size_bytes)}"
        stdout_console().print(plain(said), soft_wrap=True)
    return 0
