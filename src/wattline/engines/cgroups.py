"""CPU quotas: is there a cgroup here in which this process may make one for each attempt?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2s
from pathlib import Path

_QUOTA_FILES = ("cpu.max", "cpu.cfs_quota_us")  # version 2, version 1


def find_quota_parent() -> Path | None:
    """The first cgroup in which a child with a CPU quota can really be made."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    membership = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    return next((parent for parent in candidates(mounts, membership) if _allows_quota(parent)), None)


def candidates(mountinfo: str, membership: str) -> Iterator[Path]:
    """This process's own cgroup per hierarchy with CPU control; in version 2 also its parent if delegated.

    Version 2 forbids processes beside children with controllers, so a service that was given a subtree sits
    in a leaf of it, and its attempts belong beside it. A parent that was not delegated is someone else's.
    """
    groups = {
        frozenset(controllers.split(",")): path
        for _, controllers, path in (line.split(":", 2) for line in membership.splitlines())
    }
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, mount_point = before.split()[3:5]
        kind, _, options = [*after.split(maxsplit=2), "", ""][:3]
        for controllers, path in groups.items():
            version_2 = kind == "cgroup2" and controllers == {""}
            version_1 = kind == "cgroup" and "cpu" in controllers and "cpu" in options.split(",")
            inside = Path("/") / path
            if not (version_1 or version_2) or not inside.is_relative_to(root):
                continue
            own = Path(mount_point) / inside.relative_to(root)
            yield own
            if version_2 and own != Path(mount_point) and _is_delegated(own.parent):
                yield own.parent


def cgroup_of(parent: Path, directory: Path) -> Path:
    """Where an attempt's cgroup is: by name, so that it is found again after a crash."""
    return parent / f"wattline-{blake2s(os.fsencode(directory), digest_size=10).hexdigest()}"


def make_cgroup(cgroup: Path) -> bool:
    """Make it; False where that is no longer possible, which costs precision and nothing else."""
    try:
        cgroup.mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def processes_in(cgroup: Path) -> list[int]:
    """Who is in it; nobody where there is none."""
    try:
        return [int(line) for line in (cgroup / "cgroup.procs").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return []


def _is_delegated(group: Path) -> bool:
    """By ownership; root owns everything, so for root by the mark that systemd leaves on what it gives."""
    try:
        if os.geteuid() != 0:
            return group.stat().st_uid == os.geteuid()
        return os.getxattr(group, "user.delegate") == b"1"
    except OSError:  # no mark, or no such group in this namespace
        return False


def _allows_quota(parent: Path) -> bool:
    probe = parent / f"wattline-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return any(os.access(probe / name, os.W_OK) for name in _QUOTA_FILES)
    finally:
        probe.rmdir()
