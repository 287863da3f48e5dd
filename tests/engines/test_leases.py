"""An attempt with a time to live outlives whoever started it, is found again, and ends by itself in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wattline.engines import Ended, EngineEvent, Launch, LocalEngine, Reported, Result, Started, leases

Eventually = Callable[[Callable[[], bool]], None]

CONTROL = """
import os, sys, time
from pathlib import Path
from wattline.engines import Launch, LocalEngine, leases

place, command, seconds = sys.argv[1:]
engine = LocalEngine()
engine.start(Launch(attempt="a/b/1", epoch=1, directory=Path(place), working_directory=Path("/"),
                    command=command, environment={"PATH": os.defpath},
                    lease_until=leases.now() + float(seconds)))
while True:
    engine.wait(1)
    engine.poll()
"""


def started_elsewhere(place: Path, command: str, seconds: float) -> subprocess.Popen[bytes]:
    """By a control process that is then killed. Where its time was over before it began there is a result."""
    process = subprocess.Popen([sys.executable, "-c", CONTROL, str(place), command, str(seconds)])
    until_one_is_there(place / "started.json", place / "result.json")
    process.send_signal(signal.SIGKILL)
    process.wait()
    return process


def until_one_is_there(*files: Path) -> None:
    deadline = time.monotonic() + 30.0
    while not any(file.exists() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until(engine: LocalEngine, kind: type, events: list[EngineEvent]) -> EngineEvent:
    deadline = time.monotonic() + 30.0
    while True:
        for event in events:
            if isinstance(event, kind):
                return event
        assert time.monotonic() < deadline, events
        engine.wait(0.1)
        events += engine.poll()


def result_of(engine: LocalEngine, events: list[EngineEvent]) -> Result:
    ended = until(engine, Ended, events)
    assert isinstance(ended, Ended)
    return ended.result


def test_what_outlives_its_control_process_is_adopted_and_ends_once(tmp_path: Path) -> None:
    place, gate = tmp_path / "attempt", tmp_path / "gate"
    started_elsewhere(place, f"while [ ! -e {gate} ]; do sleep 0.05; done; exit 3", 60.0)
    engine, events = LocalEngine(), list[EngineEvent]()
    assert engine.recover([place]) == {}
    until(engine, Started, events)
    gate.touch()
    result = result_of(engine, events)
    assert (result.reason, result.code, result.epoch) == ("exited", 3, 1)
    assert sum(isinstance(event, Ended) for event in events) == 1
    engine.close()
    assert LocalEngine().recover([place])[place] == result


def test_who_adopts_commands(tmp_path: Path) -> None:
    place = tmp_path / ("deep" * 30) / "attempt"  # longer than a socket's name may be
    place.parent.mkdir(parents=True)
    started_elsewhere(place, "trap 'exit 7' TERM; while :; do sleep 0.05; done", 60.0)
    engine, events = LocalEngine(), list[EngineEvent]()
    engine.recover([place])
    until(engine, Started, events)
    engine.stop("a/b/1")
    result = result_of(engine, events)
    assert (result.reason, result.code) == ("stopped", 7)
    engine.close()


def test_what_was_reported_while_nobody_listened_is_heard(tmp_path: Path) -> None:
    place, gate, said = tmp_path / "attempt", tmp_path / "gate", tmp_path / "said"
    report = '{\\"kind\\":\\"step\\",\\"step\\":5}'
    hold = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    say = f'echo "{report}" >> {place}/reports.jsonl; touch {said}'
    started_elsewhere(place, f"{hold}; {say}; sleep 60", 60.0)
    gate.touch()
    until_one_is_there(said)
    engine, events = LocalEngine(), list[EngineEvent]()
    engine.recover([place])
    heard = until(engine, Reported, events)
    assert isinstance(heard, Reported)
    assert heard.report["step"] == 5
    engine.close()


def test_without_anybody_to_renew_it_the_attempt_ends_with_its_lease(
    tmp_path: Path, eventually: Eventually
) -> None:
    place = tmp_path / "attempt"
    began = time.monotonic()
    started_elsewhere(place, "sleep 600", 2.0)
    eventually(lambda: (place / "result.json").exists())
    assert time.monotonic() - began >= 1.9
    result = LocalEngine().recover([place])[place]
    assert (result.reason, result.message) == ("lease-lost", "its lease ended")


def test_a_lease_is_renewed_and_never_shortened(tmp_path: Path) -> None:
    place, gate = tmp_path / "attempt", tmp_path / "gate"
    engine, events = LocalEngine(), list[EngineEvent]()
    first_until = leases.now() + 2.8  # nearly all of what this test takes is for it to begin in
    engine.start(
        Launch(
            attempt="a/b/1",
            epoch=1,
            directory=place,
            working_directory=tmp_path,
            command=f"while [ ! -e {gate} ]; do sleep 0.05; done",
            environment={"PATH": os.defpath},
            lease_until=first_until,
        )
    )
    until(engine, Started, events)
    engine.renew("a/b/1", leases.now() + 60.0)
    engine.renew("a/b/1", leases.now() - 60.0)
    while leases.now() < first_until + 0.2:
        engine.wait(0.05)
        events += engine.poll()
    gate.touch()
    assert result_of(engine, events).reason == "exited"
    engine.close()


def test_leaving_lets_it_run_and_closing_ends_it(tmp_path: Path) -> None:
    place = tmp_path / "attempt"
    launch = Launch(
        attempt="a/b/1",
        epoch=1,
        directory=place,
        working_directory=tmp_path,
        command="sleep 600",
        environment={"PATH": os.defpath},
        lease_until=leases.now() + 60.0,
    )
    first, events = LocalEngine(), list[EngineEvent]()
    first.start(launch)
    until(first, Started, events)
    first.leave()
    second = LocalEngine()
    assert second.recover([place]) == {}
    second.close()
    assert LocalEngine().recover([place])[place].reason == "lease-lost"


@pytest.mark.parametrize("seconds", [-1.0, 0.0])
def test_what_has_no_time_left_does_not_live(tmp_path: Path, seconds: float) -> None:
    engine, events = LocalEngine(), list[EngineEvent]()
    engine.start(
        Launch(
            attempt="a/b/1",
            epoch=1,
            directory=tmp_path / "attempt",
            working_directory=tmp_path,
            command="sleep 600",
            environment={"PATH": os.defpath},
            lease_until=leases.now() + seconds,
        )
    )
    assert result_of(engine, events).reason == "lease-lost"
    engine.close()
