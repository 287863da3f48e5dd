"""The snapshot command: what stands here or on a server, in a file that builds can read."""

from __future__ import annotations

from pathlib import Path

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import SNAPSHOT, find_server
from wattline.plane.finding import open_view
from wattline.plane.moments import iso
from wattline.plane.snapshots import decode_snapshot, write_snapshot
from wattline.plane.writing import write_atomically
from wattline.units import format_bytes


def snapshot_to(file: Path, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        data = server.get(SNAPSHOT).body
        standing = decode_snapshot(data, source=server.url)
        write_atomically(file, data)
        at, jobs, size_bytes = standing.at, len(standing.state.jobs), len(data)
    else:
        with open_view() as view:
            size_bytes = write_snapshot(view, file)
            at, jobs = view.at, len(view.state.jobs)
    if as_json:
        print_json({"file": str(file), "at": iso(at), "jobs": jobs, "size_bytes": size_bytes})
    else:
        said = f"{file}: {jobs} jobs as of {iso(at)}, {format_bytes(size_bytes)}"
        stdout_console().print(plain(said), soft_wrap=True)
    return 0
