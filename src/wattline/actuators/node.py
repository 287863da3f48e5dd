"""Node helper: what may be done to the power limits of this machine's GPUs, and by whom?

A small program with a closed set of commands, one JSON object a line on standard input, one answer a line on
standard output. It needs the rights to set limits; whoever talks to it does not. Its input is its lease: when
that ends, in whatever way, every limit is put back to what it was. What it set is written down first, so that
after a kill the next helper puts it back.

    {"do": "list"}
    {"do": "cap", "gpus": [0, 1], "fraction": 0.7}
    {"do": "restore", "gpus": [0, 1]}

Standard library and NVML only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import pynvml

STATE_FILE = "/run/wattline-node-helper.json"
_MOST_LINE_BYTES = 1 << 16
_MOST_GPUS = 1024


class RequestError(Exception):
    """What was asked cannot be done; the message says why."""


class Limits:
    """The limits of this machine's GPUs, and what each was before it was first capped."""

    def __init__(self, state_file: Path) -> None:
        self._state_file = state_file
        self._before: dict[int, int] = {}  # milliwatts by GPU
        self._lock = self._hold()
        self._before = self._left_behind()
        self.restore(list(self._before))

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is limited to now, and what it may be limited to; why not, where it cannot tell."""
        found = []
        for gpu in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(gpu)
                least, most = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
                facts = {
                    "limit_watts": pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000,
                    "default_watts": pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,
                    "least_watts": least / 1000,
                    "most_watts": most / 1000,
                }
            except pynvml.NVMLError as error:
                facts = {"error": str(error)}
            found.append({"gpu": gpu, **facts, "capped": gpu in self._before})
        return found

    def cap(self, gpus: list[int], fraction: float) -> list[dict[str, float]]:
        """Limit GPUs to a share of their default: never below what they bear, never above what they had."""
        plans = []
        for gpu in gpus:
            handle = self._handle(gpu)
            least, _ = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
            whole = pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)
            before = self._before.get(gpu, pynvml.nvmlDeviceGetPowerManagementLimit(handle))
            plans.append((gpu, handle, before, min(before, max(least, round(fraction * whole)))))
        self._before |= {gpu: before for gpu, _, before, _ in plans}
        self._write_down()
        for _, handle, _, milliwatts in plans:
            pynvml.nvmlDeviceSetPowerManagementLimit(handle, milliwatts)
        return [{"gpu": gpu, "watts": milliwatts / 1000} for gpu, _, _, milliwatts in plans]

    def restore(self, gpus: list[int]) -> list[dict[str, float]]:
        """Put limits back to what they were; those that were never capped stay as they are."""
        done = []
        for gpu in [gpu for gpu in gpus if gpu in self._before]:
            pynvml.nvmlDeviceSetPowerManagementLimit(self._handle(gpu), self._before[gpu])
            done.append({"gpu": gpu, "watts": self._before.pop(gpu) / 1000})
        self._write_down()
        return done

    def restore_all(self) -> None:
        """The last thing that is done: one GPU that cannot be put back does not keep the others from it."""
        for gpu in list(self._before):
            try:
                self.restore([gpu])
            except (pynvml.NVMLError, OSError, RequestError) as error:
                print(f"wattline node-helper: GPU {gpu} keeps its cap: {error}", file=sys.stderr)

    def _handle(self, gpu: int) -> Any:
        if not 0 <= gpu < pynvml.nvmlDeviceGetCount():
            raise RequestError(f"there is no GPU {gpu} here; it has {pynvml.nvmlDeviceGetCount()}")
        return pynvml.nvmlDeviceGetHandleByIndex(gpu)

    def _hold(self) -> IO[str]:
        """Two helpers would put back each other's caps: there is one for each machine."""
        lock = self._state_file.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RequestError("another helper holds the limits of this machine") from None
        return lock

    def _left_behind(self) -> dict[int, int]:
        try:
            known = json.loads(self._state_file.read_text())
            return {int(gpu): int(milliwatts) for gpu, milliwatts in known.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
            print(f"wattline node-helper: {self._state_file} says nothing: {error}", file=sys.stderr)
            return {}

    def _write_down(self) -> None:
        if not self._before:
            self._state_file.unlink(missing_ok=True)
            return
        draft = self._state_file.with_suffix(".new")
        with draft.open("w") as file:
            json.dump(self._before, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._state_file)


def serve(lines: IO[bytes], answers: IO[str], limits: Limits) -> None:
    """Answer until the input ends."""
    for line in _lines(lines):
        try:
            answer = {"ok": True, **_obey(limits, _parse(line))}
        except RequestError as error:
            answer = {"ok": False, "error": str(error)}
        except pynvml.NVMLError as error:
            answer = {"ok": False, "error": f"NVML: {error}"}
        except OSError as error:
            answer = {"ok": False, "error": f"{error.filename or 'file'}: {error.strerror or error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines of a bounded length; one that is longer is skipped, and answered with an error."""
    while line := stream.readline(_MOST_LINE_BYTES):
        if not line.endswith(b"\n"):
            while rest := stream.readline(_MOST_LINE_BYTES):
                if rest.endswith(b"\n"):
                    break
            line = b"too long"
        yield line


def _parse(line: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestError("a request is a JSON object on one line") from None
    if not isinstance(asked, dict):
        raise RequestError("a request is a JSON object on one line")
    return asked


def _obey(limits: Limits, asked: dict[str, Any]) -> dict[str, Any]:
    what = asked.get("do")
    known = {"list": {"do"}, "cap": {"do", "gpus", "fraction"}, "restore": {"do", "gpus"}}
    if not isinstance(what, str) or what not in known:
        raise RequestError("a request is to list, to cap or to restore")
    if set(asked) != known[what]:
        raise RequestError(
            f"{what} takes {', '.join(sorted(known[what] - {'do'})) or 'nothing'}, and that alone"
        )
    if what == "list":
        return {"gpus": limits.describe()}
    gpus = _gpus(asked["gpus"])
    if what == "restore":
        return {"set": limits.restore(gpus)}
    fraction = asked["fraction"]
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0.0 < fraction <= 1.0:
        raise RequestError("a cap lies above 0 and up to 1")
    return {"set": limits.restore(gpus) if fraction == 1.0 else limits.cap(gpus, float(fraction))}


def _gpus(value: object) -> list[int]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_GPUS:
        raise RequestError(f"gpus are a list of 1 to {_MOST_GPUS} numbers")
    if not all(isinstance(gpu, int) and not isinstance(gpu, bool) for gpu in value):
        raise RequestError("gpus are whole numbers")
    return list(dict.fromkeys(value))


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def run(state_file: Path) -> int:
    """Serve standard input until it ends; then every limit is as it was."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        pynvml.nvmlInit()
        limits = Limits(state_file)
    except (pynvml.NVMLError, RequestError, OSError) as error:
        print(json.dumps({"ok": False, "error": f"the helper does not start: {error}"}), flush=True)
        return 3
    try:
        serve(sys.stdin.buffer, sys.stdout, limits)
    except BrokenPipeError:
        sys.stdout = sys.stderr  # nobody hears the answers: nothing is left to flush
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        limits.restore_all()
        pynvml.nvmlShutdown()
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1] if len(sys.argv) > 1 else STATE_FILE)))
