"""What every engine does: one suite, run against each of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.engines import (
    Ended,
    Engine,
    EngineEvent,
    Launch,
    LocalEngine,
    Noted,
    Reported,
    Result,
    Started,
    UnknownAttemptError,
    Usage,
)
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions, SlurmRest
from wattline.errors import UsageError

ATTEMPT = "run-1/train/1"
PATIENCE_SECONDS = 30.0
SPIN = "while :; do :; done"

FACTORIES: dict[str, Callable[[], Engine]] = {
    "local": LocalEngine,
    "local-duty-cycle": lambda: LocalEngine(throttle="duty-cycle"),
}
ENGINES = [
    *FACTORIES,
    pytest.param("slurm", marks=ON_SLURM),
    pytest.param("slurmrestd", marks=ON_SLURM),
]


class Floor:
    """An engine, the attempts started on it, and everything it has told so far."""

    def __init__(
        self,
        engine: Engine,
        place: Path,
        nodes: dict[str, int] | None = None,
        cluster: SlurmCluster | None = None,
        remake: Callable[[], Engine] = LocalEngine,
    ) -> None:
        self.engine = engine
        self.nodes = nodes or {}
        self.cluster = cluster
        self.remake = remake
        self.events: list[EngineEvent] = []
        self._place = place

    def start(
        self,
        command: str,
        attempt: str = ATTEMPT,
        *,
        environment: dict[str, str] | None = None,
        working_directory: Path | None = None,
        max_duration_seconds: float | None = None,
        grace_seconds: float = 5.0,
        checkpoint_signal: int | None = None,
        output_limit_bytes: int = 1 << 20,
    ) -> None:
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        self.engine.start(
            Launch(
                attempt=attempt,
                epoch=7,
                directory=self.directory(attempt),
                working_directory=working_directory or self._place,
                command=command,
                environment={"PATH": path} | (environment or {}),
                max_duration_seconds=max_duration_seconds,
                grace_seconds=grace_seconds,
                checkpoint_signal=checkpoint_signal,
                output_limit_bytes=output_limit_bytes,
                site="hall",
                nodes=self.nodes,
                comment="because there is room",
            )
        )

    def directory(self, attempt: str = ATTEMPT) -> Path:
        return self._place / attempt

    def output(self, attempt: str = ATTEMPT) -> str:
        path = self.directory(attempt) / "output.log"
        return path.read_text() if path.exists() else ""

    def until(self, happened: Callable[[], bool], what: str = "it") -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, f"waited in vain for {what}; events: {self.events}"
            self.engine.wait(0.05)
            self.events += self.engine.poll()

    def until_output(self, text: str) -> None:
        self.until(lambda: text in self.output(), f"output {text!r}")

    def result(self, attempt: str = ATTEMPT) -> Result:
        def found() -> list[Result]:
            return [e.result for e in self.events if isinstance(e, Ended) and e.attempt == attempt]

        self.until(lambda: bool(found()), f"the end of {attempt}")
        (result,) = found()
        return result

    def cpu_seconds(self) -> float:
        return max((e.cpu_seconds for e in self.events if isinstance(e, Usage)), default=0.0)

    def cpu_seconds_used_in(self, seconds: float) -> float:
        """Between two usage events at least this far apart, scaled to exactly so far."""
        seen = len(self.events)

        def span() -> list[Usage]:
            return [event for event in self.events[seen:] if isinstance(event, Usage)]

        self.until(lambda: len(span()) > 1 and span()[-1].wall_seconds - span()[0].wall_seconds >= seconds)
        first, last = span()[0], span()[-1]
        return (last.cpu_seconds - first.cpu_seconds) * seconds / (last.wall_seconds - first.wall_seconds)


@pytest.fixture(params=ENGINES)
def floor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Floor]:
    if request.param in ("slurm", "slurmrestd"):
        cluster: SlurmCluster = request.getfixturevalue("slurm")
        make = partial(slurm_engine, cluster, request.param)
        engine: Engine = make()
        yield Floor(engine, tmp_path, {"hall/r1-n1": 1}, cluster, make)
    else:
        engine = FACTORIES[request.param]()
        yield Floor(engine, tmp_path)
    engine.close()


def slurm_engine(cluster: SlurmCluster, way: str) -> SlurmEngine:
    """By Slurm's commands, or by slurmrestd."""
    hosts = {f"hall/r1-{node}": node for node in cluster.nodes}
    options = SlurmOptions(hosts=hosts, license="kilowatts")
    if way == "slurmrestd":
        return SlurmEngine(options, SlurmRest(cluster.rest()))
    return SlurmEngine(options, SlurmClient(cluster.environment, timeout_seconds=5.0))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_an_attempt_starts_reports_and_ends_in_that_order(floor: Floor) -> None:
    floor.start("""echo '{"kind": "step", "loss": 0.5}' >> $WATTLINE_ATTEMPT/reports.jsonl""")
    result = floor.result()
    told = [event for event in floor.events if not isinstance(event, Usage)]
    assert [type(event) for event in told] == [Started, Reported, Ended]
    assert isinstance(told[1], Reported)
    assert told[1].report == {"kind": "step", "loss": 0.5}
    assert (result.reason, result.code, result.signal, result.epoch) == ("exited", 0, None, 7)
    assert result.started_at <= result.ended_at <= time.time()


def test_an_exit_code_is_told_as_a_code(floor: Floor) -> None:
    floor.start("exit 3")
    result = floor.result()
    assert (result.reason, result.code, result.signal) == ("exited", 3, None)


def test_a_signal_is_told_as_a_signal(floor: Floor) -> None:
    floor.start("kill -SEGV $$")
    result = floor.result()
    assert (result.reason, result.code, result.signal) == ("signaled", None, signal.SIGSEGV)


def test_a_code_above_128_stays_a_code(floor: Floor) -> None:
    floor.start("exit 137")
    assert floor.result().code == 137


def test_a_command_that_cannot_be_executed_is_not_started_and_says_why(floor: Floor, tmp_path: Path) -> None:
    floor.start("true", working_directory=tmp_path / "missing")
    result = floor.result()
    assert (result.reason, result.code, result.signal) == ("not-started", None, None)
    assert "missing" in result.message


def test_output_and_errors_are_captured_together(floor: Floor) -> None:
    floor.start("echo one; echo two >&2; echo three")
    floor.result()
    assert floor.output() == "one\ntwo\nthree\n"


def test_output_beyond_its_limit_is_dropped_with_one_line_and_does_no_harm(floor: Floor) -> None:
    floor.start("head -c 3000000 /dev/zero | tr '\\0' x; echo done > done", output_limit_bytes=1000)
    assert floor.result().code == 0
    kept, notice = floor.output()[:1000], floor.output()[1000:]
    assert kept == "x" * 1000
    assert notice.strip().splitlines() == ["[wattline: output is limited to 1000 bytes; the rest is dropped]"]


def test_the_environment_is_the_one_that_was_given(floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTROL_PLANE_SECRET", "hunter2")
    floor.start("env", environment={"GIVEN": "yes"})
    floor.result()
    names = {line.partition("=")[0] for line in floor.output().splitlines()}
    told = {name for name in names if name.startswith(("SLURM", "CUDA_", "ROCR_", "ZE_", "GPU_"))}
    assert names - told - {"PWD", "_", "SHLVL"} == {"PATH", "GIVEN", "WATTLINE_ATTEMPT"}
    assert bool(told) is (floor.cluster is not None)


def test_secrets_are_not_written_down(floor: Floor) -> None:
    floor.start("true", environment={"TOKEN": "hunter2"})
    floor.result()
    for file in floor.directory().iterdir():
        assert b"hunter2" not in file.read_bytes()
    assert "TOKEN" in json.loads((floor.directory() / "launch.json").read_text())["environment_names"]


def test_a_second_start_of_the_same_attempt_is_the_same_start(floor: Floor) -> None:
    for _ in range(2):
        floor.start("echo once; while [ ! -e go ]; do sleep 0.02; done; rm go")
    floor.until_output("once")
    (floor.directory().parents[2] / "go").touch()
    floor.result()
    floor.start("echo twice")
    floor.events += floor.engine.poll()
    assert floor.output() == "once\n"
    assert sum(isinstance(event, Started) for event in floor.events) == 1


def test_two_attempts_run_at_the_same_time_and_end_apart(floor: Floor) -> None:
    floor.start("echo up; sleep 600", attempt="run-1/train/1", grace_seconds=0.2)
    floor.start("exit 4", attempt="run-1/evaluate/1")
    assert floor.result("run-1/evaluate/1").code == 4
    floor.until(lambda: "up" in floor.output("run-1/train/1"))
    floor.engine.stop("run-1/train/1")
    assert floor.result("run-1/train/1").reason == "stopped"


def test_a_command_to_an_unknown_attempt_is_refused(floor: Floor) -> None:
    with pytest.raises(UnknownAttemptError, match="run-9/train/1"):
        floor.engine.stop("run-9/train/1")


def test_a_command_to_an_ended_attempt_does_nothing(floor: Floor) -> None:
    floor.start("true")
    floor.result()
    engine = floor.engine
    for command in (engine.stop, engine.freeze, engine.thaw, engine.request_checkpoint, engine.request_pause):
        command(ATTEMPT)
    engine.throttle(ATTEMPT, 0.5)
    engine.shrink(ATTEMPT, 0.5)
    assert engine.poll() == []


def test_a_share_out_of_range_is_refused(floor: Floor) -> None:
    floor.start("true")
    for share in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(UsageError, match="duty"):
            floor.engine.throttle(ATTEMPT, share)
        with pytest.raises(UsageError, match="in_flight"):
            floor.engine.shrink(ATTEMPT, share)


def test_a_frozen_attempt_uses_no_cpu_until_it_is_thawed(floor: Floor) -> None:
    floor.start(f"({SPIN}) & {SPIN}", grace_seconds=0.2)
    floor.until(lambda: floor.cpu_seconds() > 0.2)
    floor.engine.freeze(ATTEMPT)
    floor.cpu_seconds_used_in(0.2)  # the command is on its way
    frozen = floor.cpu_seconds_used_in(0.5)
    floor.engine.thaw(ATTEMPT)
    floor.cpu_seconds_used_in(0.2)
    assert frozen < 0.05
    assert floor.cpu_seconds_used_in(0.5) > 0.1


def test_a_throttled_attempt_gets_its_share_and_gets_all_back(floor: Floor) -> None:
    floor.start(SPIN)
    floor.until(lambda: floor.cpu_seconds() > 0.1)
    full = floor.cpu_seconds_used_in(0.5) / 0.5
    floor.engine.throttle(ATTEMPT, 0.1)
    floor.cpu_seconds_used_in(0.2)  # the command is on its way
    tenth = floor.cpu_seconds_used_in(1.0)
    floor.engine.throttle(ATTEMPT, 1.0)
    floor.cpu_seconds_used_in(0.2)
    again = floor.cpu_seconds_used_in(0.5) / 0.5
    assert 0.02 < tenth < 0.6 * full  # on a busy machine even the whole is little
    assert tenth < 0.6 * again


def test_a_stop_is_polite_first(floor: Floor) -> None:
    floor.start("trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    floor.until_output("up")
    floor.engine.stop(ATTEMPT)
    result = floor.result()
    assert (result.reason, result.code) == ("stopped", 5)
    assert "saved" in floor.output()


def test_a_stop_insists_when_politeness_does_not_help(floor: Floor) -> None:
    floor.start("trap '' TERM; echo up; while :; do sleep 0.05; done", grace_seconds=0.3)
    floor.until_output("up")
    floor.engine.stop(ATTEMPT)
    result = floor.result()
    assert (result.reason, result.signal) == ("stopped", signal.SIGKILL)


def test_a_script_inside_a_shell_has_its_grace_too(floor: Floor) -> None:
    """The shell dies of the signal at once; what it was running is still saving."""
    inner = """trap 'sleep 0.5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"""
    floor.start(f'sh -c "{inner}"; echo next', grace_seconds=20.0)
    floor.until_output("up")
    floor.engine.stop(ATTEMPT)
    assert floor.result().reason == "stopped"
    assert "saved" in floor.output()
    assert "next" not in floor.output()


@pytest.mark.parametrize("slow_down", ["freeze", "throttle"])
def test_a_stopped_attempt_ends_also_when_it_is_held(floor: Floor, slow_down: str) -> None:
    floor.start(f"trap 'echo saved; exit 5' TERM; echo up; {SPIN}", grace_seconds=20.0)
    floor.until_output("up")
    if slow_down == "freeze":
        floor.engine.freeze(ATTEMPT)
    else:
        floor.engine.throttle(ATTEMPT, 0.2)
    floor.cpu_seconds_used_in(0.2)
    floor.engine.stop(ATTEMPT)
    assert floor.result().code == 5


def test_an_attempt_ends_after_its_longest_duration(floor: Floor) -> None:
    floor.start("echo up; exec sleep 600", max_duration_seconds=0.5, grace_seconds=0.2)
    result = floor.result()
    assert (result.reason, result.signal) == ("timeout", signal.SIGTERM)
    assert result.wall_seconds >= 0.5
    assert "0.5" in result.message


def test_what_a_command_leaves_behind_ends_with_it(floor: Floor) -> None:
    floor.start("sleep 600 & echo $!")
    assert floor.result().code == 0
    assert not is_running(int(floor.output()))


def test_desires_reach_the_training_and_a_pause_ends_it(floor: Floor) -> None:
    script = """
import json, os, time
path = os.environ["WATTLINE_ATTEMPT"] + "/desired.json"
seen = []
while True:
    desired = json.load(open(path))
    if desired not in seen:
        seen.append(desired)
        print(json.dumps(desired), flush=True)
    if desired["pause"]:
        break
    time.sleep(0.005)
"""
    floor.start(f"exec python3 -S -c '{script}'")
    floor.until_output('"serial": 0')
    floor.engine.shrink(ATTEMPT, 0.5)
    floor.until_output('"serial": 1')
    floor.engine.request_checkpoint(ATTEMPT)
    floor.until_output('"serial": 2')
    floor.engine.request_pause(ATTEMPT)
    result = floor.result()
    assert (result.reason, result.code) == ("exited", 0)
    assert [json.loads(line) for line in floor.output().splitlines()] == [
        {"serial": 0, "in_flight": 1.0, "checkpoint": 0, "pause": False},
        {"serial": 1, "in_flight": 0.5, "checkpoint": 0, "pause": False},
        {"serial": 2, "in_flight": 0.5, "checkpoint": 1, "pause": False},
        {"serial": 3, "in_flight": 0.5, "checkpoint": 1, "pause": True},
    ]


def test_a_checkpoint_signal_reaches_the_script_and_kills_nobody_around_it(floor: Floor) -> None:
    inner = """trap 'echo saved' USR1; echo up; while :; do sleep 0.05; done"""
    floor.start(f'sh -c "{inner}"; echo next', checkpoint_signal=signal.SIGUSR1, grace_seconds=0.2)
    floor.until_output("up")
    floor.engine.request_checkpoint(ATTEMPT)
    floor.until_output("saved")
    floor.engine.stop(ATTEMPT)
    assert floor.result().reason == "stopped"


def test_a_checkpoint_signal_that_nobody_catches_is_not_sent(floor: Floor) -> None:
    floor.start("echo up; exec sleep 600", checkpoint_signal=signal.SIGUSR1, grace_seconds=0.2)
    floor.until_output("up")
    floor.engine.request_checkpoint(ATTEMPT)
    floor.until(lambda: any(isinstance(e, Noted) and "SIGUSR1" in e.message for e in floor.events))
    floor.engine.stop(ATTEMPT)
    assert floor.result().signal == signal.SIGTERM


def test_a_pause_by_signals_saves_first_and_finishes_after_the_grace(floor: Floor) -> None:
    floor.start(
        "trap 'echo saved' USR1; trap 'echo finished; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        checkpoint_signal=signal.SIGUSR1,
        grace_seconds=0.3,
    )
    floor.until_output("up")
    floor.engine.request_pause(ATTEMPT)
    assert (floor.result().reason, floor.result().code) == ("exited", 0)
    said = floor.output().splitlines()
    assert said.index("saved") < said.index("finished")


def test_rubbish_among_the_reports_is_noted_once_and_skipped(floor: Floor) -> None:
    lines = [
        '{"kind": "step", "step": 1}',
        "rubbish",
        "[" * 50_000,
        '{"no": "kind"}',
        '{"kind": "' + "x" * 70_000 + '"}',
        '{"kind": "step", "step": 2}',
        '{"kind": "torn", "st',
    ]
    floor.start("""cat written >> $WATTLINE_ATTEMPT/reports.jsonl; echo up
        while [ ! -e go ]; do sleep 0.02; done
        echo 'ep": 3}' >> $WATTLINE_ATTEMPT/reports.jsonl""")
    place = floor.directory().parents[2]
    (place / "written.part").write_text("\n".join(lines))
    (place / "written.part").rename(place / "written")
    floor.until_output("up")
    (place / "go").touch()
    floor.result()
    reports = [event.report for event in floor.events if isinstance(event, Reported)]
    assert reports == [
        {"kind": "step", "step": 1},
        {"kind": "step", "step": 2},
        {"kind": "torn", "step": 3},
    ]
    assert sum(isinstance(event, Noted) for event in floor.events) == 1


def test_usage_counts_every_process_also_those_that_ended(floor: Floor) -> None:
    burn = 'python3 -S -c "import time\nwhile time.process_time() < 0.4: pass"'
    floor.start(f"{burn} & {burn}; wait")
    assert floor.result().cpu_seconds >= 0.75
    usages = [event.cpu_seconds for event in floor.events if isinstance(event, Usage)]
    assert usages == sorted(usages)


def test_waiting_ends_with_its_timeout_when_nothing_happens(floor: Floor) -> None:
    began = time.monotonic()
    floor.engine.wait(0.2)
    assert time.monotonic() - began >= 0.19
    assert floor.engine.poll() == []


@pytest.mark.parametrize("floor", FACTORIES, indirect=True)
def test_closing_leaves_nothing_running_that_cannot_live_without_it(floor: Floor) -> None:
    floor.start("trap '' TERM; sleep 600 & echo $!; echo $$; wait", attempt="run-1/train/1")
    floor.start("setsid sleep 600 & echo $!; echo $$; wait", attempt="run-1/train/2")
    attempts = ("run-1/train/1", "run-1/train/2")
    floor.until(lambda: all(floor.output(attempt).count("\n") == 2 for attempt in attempts))
    floor.engine.close()
    pids = [int(pid) for attempt in attempts for pid in floor.output(attempt).split()]
    assert not [pid for pid in pids if is_running(pid)]


def test_after_a_clean_end_recovery_finds_the_result(floor: Floor) -> None:
    floor.start("exit 3")
    result = floor.result()
    assert floor.engine.recover([floor.directory()]) == {floor.directory(): result}


def test_a_lost_machine_is_told_as_such(floor: Floor) -> None:
    """Killed with all that it runs; a supervisor of the local engine stands for its machine."""
    floor.start("echo up; sleep 600")
    floor.until_output("up")
    if floor.cluster is None:
        started = json.loads((floor.directory() / "started.json").read_text())
        os.kill(started["supervisor_pid"], signal.SIGKILL)
    else:
        floor.cluster.lose("n1")
    try:
        result = floor.result()
    finally:
        if floor.cluster is not None:
            floor.cluster.bring_back("n1")
    assert result.reason == ("lost" if floor.cluster is None else "node-lost")
    assert (result.code, result.signal) == (None, None)


def test_an_attempt_that_was_lost_is_never_started_again(floor: Floor) -> None:
    floor.start("echo once; sleep 600", grace_seconds=0.2)
    floor.until_output("once")
    floor.engine.stop(ATTEMPT)
    floor.result()
    floor.engine.close()
    again = Floor(floor.remake(), floor.directory().parents[2], floor.nodes, floor.cluster, floor.remake)
    again.start("echo twice")
    assert again.result().reason == "stopped"
    assert again.output() == "once\n"
    again.engine.close()


def test_what_was_requeued_runs_as_the_next_attempt_from_what_the_last_one_saved(floor: Floor) -> None:
    script = "echo $(cat saved 2>/dev/null || echo 0); echo 7 > saved; sleep 600"
    floor.start(script, attempt="run-1/train/1", grace_seconds=0.2)
    floor.until(lambda: (floor.directory().parents[2] / "saved").exists())
    floor.engine.stop("run-1/train/1")
    assert floor.result("run-1/train/1").reason == "stopped"
    floor.start(script, attempt="run-1/train/2", grace_seconds=0.2)
    floor.until(lambda: floor.output("run-1/train/2") == "7\n")
    floor.engine.stop("run-1/train/2")
    assert floor.result("run-1/train/2").reason == "stopped"
