"""A cgroup is used only where this process may make its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wattline.engines.cgroups import candidates, cgroup_of, find_quota_parent
from wattline.engines.supervisor.throttle import Cgroup

VERSION_1 = "30 23 0:26 / {mount} rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
VERSION_1_MEMORY = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
VERSION_2 = "32 23 0:28 {root} {mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
PLAIN = "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"


def test_in_version_1_the_hierarchy_with_cpu_is_taken() -> None:
    mounts = PLAIN + VERSION_1_MEMORY + VERSION_1.format(mount="/sys/fs/cgroup/cpu")
    membership = "4:memory:/big\n2:cpu,cpuacct:/jobs/mine\n1:name=systemd:/init\n0::/\n"
    assert list(candidates(mounts, membership)) == [Path("/sys/fs/cgroup/cpu/jobs/mine")]


def test_in_version_2_a_parent_that_was_not_delegated_is_left_alone() -> None:
    mounts = PLAIN + VERSION_2.format(root="/", mount="/usr")  # which belongs to root, and bears no mark
    assert list(candidates(mounts, "0::/lib/service\n")) == [Path("/usr/lib/service")]


def test_in_version_2_a_parent_that_was_delegated_is_taken(tmp_path: Path) -> None:
    (tmp_path / "slice/service").mkdir(parents=True)
    if os.geteuid() == 0:  # to anyone else, what they own is theirs
        os.setxattr(tmp_path / "slice", "user.delegate", b"1")
    mounts = PLAIN + VERSION_2.format(root="/", mount=tmp_path)
    found = list(candidates(mounts, "0::/slice/service\n"))
    assert found == [tmp_path / "slice/service", tmp_path / "slice"]


def test_the_part_of_a_hierarchy_that_a_container_sees_is_found_by_its_root() -> None:
    mounts = VERSION_2.format(root="/docker/abc", mount="/sys/fs/cgroup")
    assert next(candidates(mounts, "0::/docker/abc/inner\n")) == Path("/sys/fs/cgroup/inner")
    assert list(candidates(mounts, "0::/elsewhere\n")) == []


def test_probing_leaves_nothing_behind() -> None:
    parent = find_quota_parent()
    if parent is None:
        pytest.skip("no cgroup can be made here")
    assert not list(parent.glob("wattline-probe-*"))


def test_every_attempt_has_a_cgroup_of_its_own_under_the_same_name_each_time() -> None:
    names = {cgroup_of(Path("/c"), Path("/attempts") / name) for name in ("1", "2", "1")}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("duty", "cpus", "expected"),
    [
        (0.25, 1.0, "25000 100000"),
        (0.5, 4.0, "200000 100000"),
        (0.0001, 1.0, "1000 100000"),
        (1.0, 8.0, "max 100000"),
    ],
)
def test_a_version_2_quota_is_the_duty_of_the_cpus_it_could_use(
    tmp_path: Path, duty: float, cpus: float, expected: str
) -> None:
    """A plain directory stands in for the kernel's: what counts is what is written."""
    (tmp_path / "cpu.max").touch()
    cgroup = Cgroup(str(tmp_path), cpus)
    cgroup.set_duty(duty)
    assert cgroup.name == "cgroup-v2"
    assert (tmp_path / "cpu.max").read_text() == expected
