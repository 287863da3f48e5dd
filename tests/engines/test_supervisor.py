"""Nothing outlives its lease, whoever is killed and however."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from wattline.engines import Ended, Launch, LocalEngine, Result, Usage
from wattline.engines.supervisor import __file__ as supervisor_file

Eventually = Callable[[Callable[[], bool]], None]

# A child in the foreground, and a daemon: orphaned, in a session of its own, deaf, without our pipes.
FAMILY = """
(setsid sh -c 'trap "" TERM HUP; while :; do sleep 0.1; done' {mark} </dev/null >/dev/null 2>&1 &)
sh -c 'while :; do sleep 0.1; done' {mark}; true
"""

CONTROL = """
import os, sys, time
from pathlib import Path
from wattline.engines import Ended, Launch, LocalEngine, Result, Usage

throttle, place, command, fork = sys.argv[1:]
engine = LocalEngine(throttle=throttle)
engine.start(Launch(attempt="a", epoch=1, directory=Path(place), working_directory=Path("/"),
                    command=command, environment={"PATH": os.defpath}))
if fork == "fork" and os.fork() == 0:
    time.sleep(600)
while True:
    engine.wait(1)
    engine.poll()
"""


class Mark(Protocol):
    text: str

    def pids(self) -> list[int]: ...


def read(path: Path) -> dict[str, object]:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    assert isinstance(document, dict)
    return document


def a_launch(directory: Path, command: str, attempt: str = "a") -> Launch:
    return Launch(
        attempt=attempt,
        epoch=1,
        directory=directory,
        working_directory=directory.parent,
        command=command,
        environment={"PATH": os.defpath},
        grace_seconds=0.2,
    )


def supervisor_pid(directory: Path) -> int:
    pid = read(directory / "started.json").get("supervisor_pid", 0)
    assert isinstance(pid, int)
    return pid


@pytest.mark.parametrize("throttle", ["auto", "duty-cycle"])
def test_killing_the_control_process_ends_the_child_and_its_daemon(
    throttle: str, tmp_path: Path, mark: Mark, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    arguments = [throttle, str(place), FAMILY.format(mark=mark.text), "alone"]
    control = subprocess.Popen([sys.executable, "-c", CONTROL, *arguments])
    eventually(lambda: len(mark.pids()) >= 3)  # the shell, its child, its daemon
    control.kill()
    control.wait()
    eventually(lambda: read(place / "result.json").get("reason") == "lease-lost")
    assert mark.pids() == []
    cgroup = read(place / "launch.json")["cgroup"]
    eventually(lambda: cgroup is None or not Path(str(cgroup)).exists())


def test_a_fork_of_the_control_process_does_not_keep_the_lease(
    tmp_path: Path, mark: Mark, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    arguments = ["duty-cycle", str(place), f"sh -c 'while :; do sleep 0.1; done' {mark.text}", "fork"]
    control = subprocess.Popen([sys.executable, "-c", CONTROL, *arguments], start_new_session=True)
    try:
        eventually(lambda: (place / "started.json").exists())
        os.kill(control.pid, signal.SIGKILL)
        control.wait()
        eventually(lambda: read(place / "result.json").get("reason") == "lease-lost")
    finally:
        os.killpg(control.pid, signal.SIGKILL)


def test_killing_the_supervisor_ends_all_and_the_attempt_is_lost(
    engine: LocalEngine, tmp_path: Path, mark: Mark, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    engine.start(a_launch(place, FAMILY.format(mark=mark.text)))
    eventually(lambda: len(mark.pids()) >= 3 and supervisor_pid(place) > 0)
    os.kill(supervisor_pid(place), signal.SIGKILL)
    results: list[Result] = []

    def ended() -> bool:
        engine.wait(0.05)
        results.extend(event.result for event in engine.poll() if isinstance(event, Ended))
        return bool(results)

    eventually(ended)
    assert mark.pids() == []
    assert [result.reason for result in results] == ["lost"]
    cgroup = read(place / "launch.json")["cgroup"]
    assert cgroup is None or not Path(str(cgroup)).exists()


def test_terminating_the_supervisor_stops_the_attempt(
    engine: LocalEngine, tmp_path: Path, mark: Mark, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    engine.start(a_launch(place, FAMILY.format(mark=mark.text)))
    eventually(lambda: len(mark.pids()) >= 3 and supervisor_pid(place) > 0)
    os.kill(supervisor_pid(place), signal.SIGTERM)
    eventually(lambda: read(place / "result.json").get("reason") == "stopped")
    assert mark.pids() == []


def test_no_pipe_of_one_attempt_is_open_in_another(
    engine: LocalEngine, tmp_path: Path, eventually: Eventually
) -> None:
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        engine.start(a_launch(place, "exec sleep 600", attempt=place.name))
    eventually(lambda: all((place / "started.json").exists() for place in places))

    def pipes(pid: object) -> set[str]:
        links = set()
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # a supervisor opens and closes files all the time
                links.add(str(entry.readlink()))
        return {link for link in links if link.startswith("pipe:")}

    supervisors = [pipes(read(place / "started.json")["supervisor_pid"]) for place in places]
    children = [pipes(read(place / "started.json")["pid"]) for place in places]
    assert supervisors[0].isdisjoint(supervisors[1])
    assert [len(held) for held in children] == [1, 1]  # the output, and neither lease nor events
    assert children[0] <= supervisors[0]
    assert children[1] <= supervisors[1]


def test_the_attempt_runs_in_a_session_of_its_own(
    engine: LocalEngine, tmp_path: Path, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    engine.start(a_launch(place, "exec sleep 600"))
    eventually(lambda: (place / "started.json").exists())
    started = read(place / "started.json")
    pids = [int(str(started[name])) for name in ("pid", "supervisor_pid")]
    assert [os.getsid(pid) for pid in pids] == pids


def test_a_supervisor_rests_while_its_throttled_attempt_is_frozen(
    tmp_path: Path, eventually: Eventually
) -> None:
    engine = LocalEngine(throttle="duty-cycle")
    engine.start(a_launch(tmp_path / "attempt", "while :; do :; done"))
    engine.throttle("a", 0.5)
    engine.freeze("a")
    eventually(lambda: supervisor_pid(tmp_path / "attempt") > 0)
    walls: list[float] = []

    def has_run_for_a_second() -> bool:
        engine.wait(0.1)
        events = [event for event in engine.poll() if isinstance(event, Usage)]
        walls.extend(event.wall_seconds for event in events)
        return bool(walls) and walls[-1] > 1.0

    eventually(has_run_for_a_second)
    stat = Path(f"/proc/{supervisor_pid(tmp_path / 'attempt')}/stat").read_text().rpartition(")")[2].split()
    assert (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK") < 0.5
    engine.close()


def test_the_throttle_in_use_is_recorded(tmp_path: Path, eventually: Eventually) -> None:
    engine = LocalEngine(throttle="duty-cycle")
    engine.start(a_launch(tmp_path / "attempt", "exec sleep 600"))
    eventually(lambda: read(tmp_path / "attempt/started.json").get("throttle") == "duty-cycle")
    engine.close()


@pytest.fixture
def spoken_to(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor without an engine, with a sleeping command."""
    orders = {
        "epoch": 1,
        "directory": str(tmp_path),
        "working_directory": "/",
        "command": "exec sleep 600",
        "environment": {"PATH": os.defpath},
        "max_duration_seconds": None,
        "grace_seconds": 0.2,
        "checkpoint_signal": None,
        "finish_signal": 15,
        "output_limit_bytes": 1000,
        "cpus": 1.0,
        "cgroup": str(tmp_path / "no-such-cgroup"),
        "control_pid": os.getpid(),
    }
    with (tmp_path / "lock").open("wb") as lock:
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(supervisor_file).parent), str(lock.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=[lock.fileno()],
        )
    with supervisor:
        assert supervisor.stdin is not None
        supervisor.stdin.write(json.dumps(orders).encode() + b"\n")
        yield supervisor


def heard(supervisor: subprocess.Popen[bytes]) -> dict[str, object]:
    """The next event that is not about usage."""
    assert supervisor.stdout is not None
    while True:
        event = json.loads(supervisor.stdout.readline())
        if event["event"] != "usage":
            assert isinstance(event, dict)
            return event


@pytest.mark.parametrize(
    "nonsense",
    [
        b"rubbish",
        b'{"do": "dance"}',
        b'{"do": "throttle", "duty": 0}',
        b'{"do": "throttle", "duty": "all"}',
        b"[" * 30_000,
        b"17",
        b"\xff\xfe",
    ],
    ids=lambda line: textwrap.shorten(repr(line), 30),
)
def test_a_malformed_command_is_told_and_ignored(
    nonsense: bytes, spoken_to: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert spoken_to.stdin is not None
    spoken_to.stdin.write(nonsense + b"\n")
    events = [heard(spoken_to) for _ in range(3)]  # the missing cgroup, the start, the nonsense
    assert [event["event"] for event in events] == ["noted", "started", "noted"]
    assert "command ignored" in str(events[2]["message"])
    spoken_to.stdin.write(b'{"do": "stop"}\n')
    spoken_to.wait(timeout=30)
    assert read(tmp_path / "result.json")["reason"] == "stopped"


def test_the_command_dies_with_its_supervisor_without_anybodys_help(
    spoken_to: subprocess.Popen[bytes], eventually: Eventually
) -> None:
    command = next(
        event["pid"] for event in iter(lambda: heard(spoken_to), None) if event["event"] == "started"
    )
    spoken_to.kill()
    spoken_to.wait()

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{command}/cmdline").read_bytes() == b""
        except (FileNotFoundError, ProcessLookupError):
            return True

    eventually(is_gone)


def test_without_its_cgroup_an_attempt_runs_under_a_duty_cycle(spoken_to: subprocess.Popen[bytes]) -> None:
    assert "a duty cycle instead" in str(heard(spoken_to)["message"])
    assert heard(spoken_to)["throttle"] == "duty-cycle"


def test_a_supervisor_whose_events_nobody_reads_goes_on(
    spoken_to: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The pipe is filled with complaints about more nonsense than it can hold."""
    assert spoken_to.stdin is not None
    for _ in range(40):
        spoken_to.stdin.write(b"nonsense\n" * 100)
    spoken_to.stdin.write(b'{"do": "stop"}\n')
    spoken_to.wait(timeout=30)
    assert read(tmp_path / "result.json")["reason"] == "stopped"
