"""Supervision: start one attempt, pace it, hear commands, end it in time, and record how it ended."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from math import inf

from wattline.engines.files import DIRECTORY_VARIABLE, OUTPUT, RESULT, STARTED, write_document
from wattline.engines.supervisor.child import Child, NotStartedError, become_subreaper
from wattline.engines.supervisor.control import Control, Leased
from wattline.engines.supervisor.orders import Orders
from wattline.engines.supervisor.output import Output
from wattline.engines.supervisor.throttle import Cgroup, DutyCycle, Throttle
from wattline.engines.supervisor.tree import Tree

_KILL_AGAIN_SECONDS = 0.01
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervision:
    """One attempt from its orders to its result. All times inside are monotonic."""

    def __init__(self, orders: Orders, control: Control) -> None:
        become_subreaper()
        self._orders = orders
        self._tree = Tree(os.getpid())
        self._throttle: Throttle = DutyCycle(self._tree)
        if orders.cgroup is not None:
            self._throttle = Cgroup(orders.cgroup, orders.cpus)
        self._control = control
        self._look_at = inf if control.look_seconds is None else -inf  # for what is wanted
        self._output = Output(f"{orders.directory}/{OUTPUT}", orders.output_limit_bytes)
        self._started: dict[str, object] = {}
        self._poll = select.poll()
        self._hear: dict[int, Callable[[], None]] = {}
        self._began_at, self._began = time.time(), time.monotonic()
        longest_seconds = orders.max_duration_seconds
        self._deadline = inf if longest_seconds is None else self._began + longest_seconds
        self._usage_at = self._began
        self._finish_at = inf  # when a pause by signals goes on from "save" to "finish"
        self._kill_at = inf  # when whatever is left is killed
        self._command_pid = 0
        self._status: int | None = None  # of the command, once it has ended
        self._reason: str | None = None  # why it was made to end, if it was: the first cause counts
        self._asked_to_finish = False
        self._killing = False
        self._frozen = False
        self._reaped_cpu_seconds = 0.0
        self._cpu_seconds = 0.0

    def run(self) -> None:
        """Run until nothing of the attempt is left, and record its result."""
        try:
            self._start()
            while self._reap():
                self._listen()
                self._keep_time(time.monotonic())
        except NotStartedError as error:
            self._record("not-started", None, None, str(error))
        else:
            self._hear_signals()  # one that came to everybody at once, as a scheduler's does
            self._output.drain()
            self._conclude()
        finally:  # also after a fault of our own: an orphan is worse than a lost result
            while self._reap():
                self._tree.signal(signal.SIGKILL)
                time.sleep(_KILL_AGAIN_SECONDS)
            self._throttle.remove()

    def _start(self) -> None:
        self._listen_to_signals()
        if self._control.handle is not None:
            self._listen_to(self._control.handle, self._hear_commands)
        if isinstance(self._control, Leased):
            self._listen_to(self._control.door.handle, self._let_in)
        self._listen_to(self._output.reader, self._hear_output)
        given = {name: os.environ[name] for name in os.environ if name.startswith(self._orders.passes_on)}
        environment = given | self._orders.environment | {DIRECTORY_VARIABLE: self._orders.directory}
        child = Child(self._orders.command, environment, self._orders.working_directory, self._output.writer)
        os.close(self._output.writer)
        self._admit(child.pid)
        child.execute()
        self._command_pid = child.pid
        started: dict[str, object] = {"pid": child.pid, "at": self._began_at, "throttle": self._throttle.name}
        write_document(self._orders.directory, STARTED, started | {"supervisor_pid": os.getpid()})
        self._started = {"event": "started"} | started
        self._control.say(self._started)
        self._obey_all()  # what came with the orders

    def _admit(self, pid: int) -> None:
        try:
            self._throttle.admit(pid)
        except OSError as error:
            self._note(f"no CPU quota, a duty cycle instead: {error}")
            self._throttle.remove()
            self._throttle = DutyCycle(self._tree)

    def _listen_to_signals(self) -> None:
        self._signals, writer = os.pipe()
        for end in (self._signals, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        for number in (*_END_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # the number arrives through the pipe
        self._listen_to(self._signals, self._hear_signals)

    def _hear_signals(self) -> None:
        try:
            numbers = os.read(self._signals, 1024)
        except BlockingIOError:
            return
        if not set(_END_SIGNALS).isdisjoint(numbers):
            self._finish("stopped")

    def _listen_to(self, handle: int, hear: Callable[[], None]) -> None:
        self._hear[handle] = hear
        self._poll.register(handle, select.POLLIN)

    def _listen(self) -> None:
        tick_at = inf if self._frozen else self._throttle.next_at
        due = min(self._deadline, self._finish_at, self._kill_at, self._usage_at, self._look_at, tick_at)
        wait_seconds = max(due - time.monotonic(), _KILL_AGAIN_SECONDS if self._killing else 0.0)
        for handle, _ in self._poll.poll(wait_seconds * 1000.0):
            if handle in self._hear:  # another may have taken its place just now
                self._hear[handle]()

    def _hear_output(self) -> None:
        if not self._output.pump():
            self._poll.unregister(self._output.reader)

    def _obey_all(self) -> None:
        for line in self._control.take():
            try:
                self._obey(json.loads(line))
            except (ValueError, RecursionError, OSError) as error:
                self._note(f"command ignored: {line[:100]!r}: {error!r}")

    def _hear_commands(self) -> None:
        handle = self._control.handle
        self._control.hear()
        self._obey_all()
        if handle is not None and (self._control.is_gone or self._control.handle is None):
            self._stop_hearing(handle)
            if self._control.is_gone:
                self._lose_lease()

    def _stop_hearing(self, handle: int | None) -> None:
        if handle is not None and self._hear.pop(handle, None) is not None:
            self._poll.unregister(handle)

    def _let_in(self) -> None:
        """Somebody else commands from now on, and is told how things stand."""
        assert isinstance(self._control, Leased)
        before = self._control.handle
        if self._control.let_in() and self._control.handle is not None:
            self._stop_hearing(before)
            self._listen_to(self._control.handle, self._hear_commands)
            self._control.say(self._started)

    def _obey(self, command: object) -> None:
        match command:
            case {"do": "throttle", "duty": float() | int() as duty} if 0.0 < duty <= 1.0:
                self._throttle.set_duty(float(duty))
            case {"do": "checkpoint"}:
                self._ask_to_save()
            case {"do": "pause"}:
                self._ask_to_save()
                self._finish_at = time.monotonic() + self._orders.grace_seconds
            case {"do": "freeze"}:
                self._frozen = True
                self._tree.freeze()
            case {"do": "thaw"}:
                self._thaw()
            case {"do": "stop"}:
                self._finish("stopped")
            case {"do": "renew", "until": float() | int() as until} if isinstance(self._control, Leased):
                self._control.renew(float(until))
            case {"do": "end"}:
                self._lose_lease()
            case _:
                raise ValueError("not a command")

    def _keep_time(self, now: float) -> None:
        if self._control.is_gone:
            self._lose_lease()
        if now >= self._look_at:
            self._look_at = now + (self._control.look_seconds or inf)
            self._obey_all()
        if now >= self._deadline:
            self._deadline = inf
            self._finish("timeout")
        if now >= self._finish_at:
            self._ask_to_finish()
        if now >= self._kill_at:
            self._kill()
        elif not self._frozen:
            self._throttle.tick(now)
        if now >= self._usage_at:
            self._tell_usage(now)

    def _thaw(self) -> None:
        self._frozen = False
        self._tree.signal(signal.SIGCONT)

    def _ask_to_save(self) -> None:
        number = self._orders.checkpoint_signal
        if number is not None and not self._tree.signal_listeners(number):
            self._note(f"no process catches {signal.Signals(number).name}: not sent, it would kill")

    def _ask_to_finish(self) -> None:
        self._asked_to_finish = True
        self._finish_at = inf
        self._tree.signal(self._orders.finish_signal)
        self._thaw()  # the stopped cannot hear

    def _finish(self, reason: str) -> None:
        self._reason = self._reason or reason
        if self._kill_at == inf:
            self._ask_to_finish()
            self._kill_at = time.monotonic() + self._orders.grace_seconds

    def _lose_lease(self) -> None:
        self._reason = self._reason or "lease-lost"
        self._kill_at = -inf

    def _kill(self) -> None:
        if not self._killing:
            self._killing = True
            self._throttle.set_duty(1.0)  # dying takes CPU too
        self._tree.signal(signal.SIGKILL)

    def _reap(self) -> bool:
        """Collect the dead; False once there is no child left, and so, for a subreaper, no descendant."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._reaped_cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == self._command_pid:
                self._status = status
                # Whoever was asked to finish has its time, also when the shell around it went first. Whoever
                # stayed behind unasked is a leftover.
                grace_seconds = self._orders.grace_seconds if self._asked_to_finish else 0.0
                self._kill_at = min(self._kill_at, time.monotonic() + grace_seconds)

    def _tell_usage(self, now: float) -> None:
        living = sum(process.cpu_seconds for process in self._tree.scan())
        self._cpu_seconds = max(self._cpu_seconds, self._reaped_cpu_seconds + living)
        self._usage_at = now + max(self._control.usage_seconds, self._tree.scan_interval_seconds)
        usage: dict[str, object] = {"event": "usage", "at": time.time(), "wall_seconds": now - self._began}
        self._control.say(usage | {"cpu_seconds": self._cpu_seconds})

    def _note(self, message: str) -> None:
        self._control.say({"event": "noted", "message": message[:500], "at": time.time()})

    def _conclude(self) -> None:
        assert self._status is not None
        status = os.waitstatus_to_exitcode(self._status)
        code, number = (status, None) if status >= 0 else (None, -status)
        reason = self._reason or ("exited" if number is None else "signaled")
        message = {
            "exited": "" if code == 0 else f"exit code {code}",
            "signaled": f"ended by signal {number}",
            "timeout": f"ran longer than {self._orders.max_duration_seconds} s",
            "stopped": "stopped on request",
            "lease-lost": "its lease ended" if self._orders.lease_until else "the control process went away",
        }[reason]
        self._record(reason, code, number, message)

    def _record(self, reason: str, code: int | None, number: int | None, message: str) -> None:
        result: dict[str, object] = {
            "epoch": self._orders.epoch,
            "reason": reason,
            "code": code,
            "signal": number,
            "cpu_seconds": max(self._cpu_seconds, self._reaped_cpu_seconds),
            "wall_seconds": time.monotonic() - self._began,
            "started_at": self._began_at,
            "ended_at": time.time(),
            "message": message,
        }
        write_document(self._orders.directory, RESULT, result, durable=True)
