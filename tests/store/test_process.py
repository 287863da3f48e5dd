from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from wattline.store.process import identify_this_process, is_provably_dead


def test_this_process_is_alive() -> None:
    here = identify_this_process()
    assert here.pid == os.getpid()
    assert here.can_see(here)
    assert not is_provably_dead(here)


def test_a_process_that_ended_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert is_provably_dead(replace(identify_this_process(), pid=ended.pid))


def test_a_reused_pid_is_another_process() -> None:
    here = identify_this_process()
    assert is_provably_dead(replace(here, started_ticks=here.started_ticks - 1))


def test_a_process_of_another_user_is_alive_and_told_by_its_start() -> None:
    init = replace(identify_this_process(), pid=1, started_ticks=-1)
    assert is_provably_dead(init), "pid 1 runs, but it did not start then"


def test_pids_of_another_boot_host_or_container_mean_nothing_here() -> None:
    here = identify_this_process()
    assert not here.can_see(replace(here, boot_id="another"))
    assert not here.can_see(replace(here, hostname="another"))
    assert not here.can_see(replace(here, pid_namespace="pid:[1]"))
    assert here.can_see(replace(here, pid=1))
