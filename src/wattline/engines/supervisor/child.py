"""The command's own process: how is it started so that it cannot outlive its supervisor?"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class NotStartedError(Exception):
    """The command could not be executed."""


def become_subreaper() -> None:
    """Make every orphan below this process its child, so that a daemon stays in the tree."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


class Child:
    """A forked process that waits for leave to execute its command: first it is put where its limits are."""

    def __init__(
        self, command: str, environment: Mapping[str, str], working_directory: str, output: int
    ) -> None:
        supervisor = os.getpid()
        leave_reader, self._leave = os.pipe()
        self._failure, failure_writer = os.pipe()
        try:
            self.pid = os.fork()
        except OSError as error:
            raise NotStartedError(str(error)) from error
        if self.pid == 0:
            try:
                _become_the_command(supervisor, output)
                os.close(self._leave)
                if not os.read(leave_reader, 1):
                    os._exit(1)
                os.chdir(working_directory)
                os.execve("/bin/sh", ["sh", "-c", command], dict(environment))  # noqa: S606
            except BaseException as error:  # noqa: BLE001  this process may do nothing but say why and go
                os.write(failure_writer, str(error).encode(errors="replace")[:1000])
            finally:
                os._exit(127)
        os.close(leave_reader)
        os.close(failure_writer)

    def execute(self) -> None:
        """Give leave, and wait until the command runs or is known not to."""
        os.write(self._leave, b"!")
        os.close(self._leave)
        failure = os.read(self._failure, 1000)  # ends without a word when execve closes the other end
        os.close(self._failure)
        if failure:
            os.waitpid(self.pid, 0)
            raise NotStartedError(failure.decode(errors="replace"))


def _become_the_command(supervisor: int, output: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # it died before the line above took effect
        os._exit(1)
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
