"""Lanes: how do several runs share the cores of a machine?

With one lane they run here, one after the other. With more, each run has a process of its own, begun afresh:
it gets a question, reads what that names, and sends bytes back. One that ends without an answer (a machine
short of memory kills the largest) is told as such, and one that nobody listens to any more ends by itself.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import msgspec

from wattline.errors import UnavailableError
from wattline.twin.replaying import Material, Question, read_material, read_rules, setting_of
from wattline.twin.report import Report
from wattline.twin.run import Glimpse, run

_GLIMPSE_SECONDS = 0.2
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Lap:
    """One of the runs: a policy as it was named, and a seed."""

    policy: str
    seed: int


Tell = Callable[[Lap, Glimpse | Report], None]


class _Underway(msgspec.Struct, frozen=True, tag=True):
    glimpse: Glimpse


class _Done(msgspec.Struct, frozen=True, tag=True):
    report: Report


# Not JSON: that has no word for what is not a finite number.
_ANSWERS = msgspec.msgpack.Decoder(_Underway | _Done)


def run_laps(material: Material, laps: Sequence[Lap], *, lanes: int, tell: Tell) -> list[Report]:
    """Run them all, in the order in which they are given back; `tell` hears how far each has come."""
    if lanes == 1:
        return [_run_here(material, lap, tell) for lap in laps]
    return _run_aside(material.question, laps, lanes, tell)


def _run_here(material: Material, lap: Lap, tell: Tell) -> Report:
    setting = setting_of(material, read_rules(lap.policy), lap.seed)
    report = run(setting, tell=lambda glimpse: tell(lap, glimpse)).report
    tell(lap, report)
    return report


def _run_aside(question: Question, laps: Sequence[Lap], lanes: int, tell: Tell) -> list[Report]:
    reports: dict[int, Report] = {}
    waiting = list(enumerate(laps))[::-1]
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                number, lap = waiting.pop()
                asked = replace(question, policy=lap.policy, seed=lap.seed)
                running.update([_start(number, asked)])
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                number, process = running[ready]
                answer = _hear(ready, process, laps[number])
                if isinstance(answer, Report):
                    reports[number] = answer
                    process.join()
                    del running[ready]
                tell(laps[number], answer)
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()
    return [reports[number] for number in range(len(laps))]


def _start(number: int, question: Question) -> tuple[Connection, tuple[int, SpawnProcess]]:
    ours, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_run_alone, args=(question, theirs), daemon=True)
    with _deaf_to_interrupts():
        process.start()
    theirs.close()  # or nobody would notice that the process has ended
    return ours, (number, process)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started here never hears Ctrl-C, from its first moment on: whoever started it ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hear(connection: Connection, process: SpawnProcess, lap: Lap) -> Glimpse | Report:
    try:
        answer = _ANSWERS.decode(connection.recv_bytes())
    except EOFError:
        process.join()
        raise UnavailableError(
            f"the run of {lap.policy} with seed {lap.seed} ended without an answer (exit code "
            f"{process.exitcode})",
            hint="if memory ran out, run fewer at once" if process.exitcode == -signal.SIGKILL else None,
        ) from None
    return answer.glimpse if isinstance(answer, _Underway) else answer.report


def _run_alone(question: Question, connection: Connection) -> None:
    """What a process of its own does."""
    told_at = time.monotonic()

    def tell(glimpse: Glimpse) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= _GLIMPSE_SECONDS:
            told_at = time.monotonic()
            connection.send_bytes(msgspec.msgpack.encode(_Underway(glimpse)))

    try:
        setting = setting_of(read_material(question), read_rules(question.policy))
        connection.send_bytes(msgspec.msgpack.encode(_Done(run(setting, tell=tell).report)))
    except BrokenPipeError:  # nobody listens any more
        return
