"""After a restart, every attempt that was believed to run is known to have ended, and how."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wattline.engines import AttemptHeldError, Ended, Launch, LocalEngine
from wattline.errors import UsageError

Eventually = Callable[[Callable[[], bool]], None]

# Holds an attempt's lock as its supervisor would, and does not end when it should.
HOLDER = """
import fcntl, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, f"{os.getpid()}\\n".encode())
print("held", flush=True)
until = time.monotonic() + 600
while not os.path.exists(sys.argv[2]) and time.monotonic() < until:
    time.sleep(0.02)
"""


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    """One is enough here: how an attempt was throttled does not matter once it is dead."""
    engine = LocalEngine()
    yield engine
    engine.close()


def a_launch(directory: Path, command: str) -> Launch:
    return Launch(
        attempt="a",
        epoch=3,
        directory=directory,
        working_directory=directory.parent,
        command=command,
        environment={"PATH": os.defpath},
    )


def hold(directory: Path, gate: Path) -> subprocess.Popen[bytes]:
    directory.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory / "lock"), str(gate)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.stdout.close()
    return holder


def test_recovery_waits_for_a_supervisor_that_is_still_cleaning_up(
    engine: LocalEngine, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    holder = hold(tmp_path / "attempt", gate)
    cleaned_up = threading.Timer(0.5, gate.touch)
    cleaned_up.start()
    assert engine.recover([tmp_path / "attempt"])[tmp_path / "attempt"].reason == "lost"
    assert gate.exists()
    assert holder.wait() == 0
    cleaned_up.join()


def test_recovery_kills_a_supervisor_that_does_not_end(engine: LocalEngine, tmp_path: Path) -> None:
    holder = hold(tmp_path / "attempt", tmp_path / "never")
    result = engine.recover([tmp_path / "attempt"], timeout_seconds=0.3)[tmp_path / "attempt"]
    assert result.reason == "lost"
    assert holder.wait() == -signal.SIGKILL


def test_recovery_after_the_control_process_closed_finds_the_lease_lost(
    engine: LocalEngine, tmp_path: Path, eventually: Eventually
) -> None:
    directory = tmp_path / "attempt"
    engine.start(a_launch(directory, "exec sleep 600"))
    eventually(lambda: (directory / "started.json").exists())
    engine.close()
    result = LocalEngine().recover([directory])[directory]
    assert (result.reason, result.signal, result.epoch) == ("lease-lost", signal.SIGKILL, 3)


def test_a_lost_attempt_keeps_its_epoch_and_can_never_be_started_again(
    engine: LocalEngine, tmp_path: Path
) -> None:
    directory = tmp_path / "attempt"
    directory.mkdir()
    (directory / "launch.json").write_text('{"epoch": 3, "at": 100.0}')
    result = engine.recover([directory])[directory]
    assert (result.reason, result.epoch, result.started_at) == ("lost", 3, 100.0)
    engine.start(a_launch(directory, "echo again"))
    assert engine.poll() == [Ended(attempt="a", result=result, at=result.ended_at)]
    assert not (directory / "output.log").exists()


@pytest.mark.parametrize("torn", [b"", b"{", b'{"reason": "exited"}', b"[" * 5000, b"\xff"])
def test_a_result_that_cannot_be_read_is_lost(engine: LocalEngine, tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "result.json").write_bytes(torn)
    (tmp_path / "launch.json").write_bytes(torn)
    assert engine.recover([tmp_path])[tmp_path].reason == "lost"


def test_an_attempt_without_a_directory_is_lost(engine: LocalEngine, tmp_path: Path) -> None:
    assert engine.recover([tmp_path / "gone"])[tmp_path / "gone"].reason == "lost"
    assert not (tmp_path / "gone").exists()


def test_processes_that_bear_the_mark_of_a_dead_attempt_are_killed(
    engine: LocalEngine, tmp_path: Path
) -> None:
    marked = {"PATH": os.defpath, "WATTLINE_ATTEMPT": str(tmp_path.resolve())}
    neighbour = marked | {"WATTLINE_ATTEMPT": f"{tmp_path.resolve()}0"}
    orphan = subprocess.Popen(["sleep", "600"], env=marked, start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], env=neighbour)
    engine.recover([tmp_path])
    assert orphan.wait(timeout=30) == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait()


def test_what_this_engine_runs_is_not_for_it_to_recover(engine: LocalEngine, tmp_path: Path) -> None:
    engine.start(a_launch(tmp_path / "attempt", "exec sleep 600"))
    with pytest.raises(UsageError, match="attempt a"):
        engine.recover([tmp_path / "attempt"])


def test_the_cgroup_of_a_dead_attempt_is_swept(tmp_path: Path, eventually: Eventually) -> None:
    engine = LocalEngine()
    directory = tmp_path / "attempt"
    engine.start(a_launch(directory, "true"))
    eventually(lambda: (directory / "result.json").exists())
    engine.close()
    recorded = json.loads((directory / "launch.json").read_text())["cgroup"]
    if recorded is None:
        pytest.skip("no cgroup can be made here")
    Path(recorded).mkdir(exist_ok=True)
    engine.recover([directory])
    assert not Path(recorded).exists()


def test_a_directory_that_another_supervisor_holds_is_not_started_in(
    engine: LocalEngine, tmp_path: Path
) -> None:
    holder = hold(tmp_path / "attempt", tmp_path / "never")
    with pytest.raises(AttemptHeldError, match="attempt a"):
        engine.start(a_launch(tmp_path / "attempt", "true"))
    holder.kill()
    holder.wait()
