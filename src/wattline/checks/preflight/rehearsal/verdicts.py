"""What does it mean how a rehearsal ended, and where in the code was it?"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from wattline.checks.preflight.asking import Check
from wattline.checks.preflight.rehearsal.confining import Confined
from wattline.checks.preflight.rehearsal.staging import Told

_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d+)', re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
_NO_NETWORK = "a rehearsal has no network"
_UNRESOLVED = re.compile(
    r"(?:could not|unable to) resolve host(?: address|name)?:? ['‘\"]?([\w.-]+)", re.IGNORECASE
)
_LOSS = re.compile(r"\b(?:train[\w ]*)?loss['\"]?\s*[:=]?\s*[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    phase: str
    document: str
    work: Path
    steps: int
    within_seconds: float
    confined: Confined
    told: Told
    hidden: tuple[str, ...] = ()  # never to be shown

    def fail(self, message: str, fix: str, place: tuple[str, int] | None = None) -> Check:
        file, line = place or (self.document, None)
        where = f", at {file}:{line}" if line is not None else ""
        return Check(
            check="rehearsal",
            subject=self.phase,
            outcome="fail",
            message=f"{self.shown(message)}{where}",
            fix=fix,
            file=file,
            line=line,
        )

    def shown(self, text: str) -> str:
        """One line, without the stage's own folder and without secrets."""
        text = text.replace(f"{self.work}/", "").replace(str(self.work), ".")
        for value in self.hidden:
            text = text.replace(value, "•••")
        text = " ".join(text.split())
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

    def place(self, text: str, *, last: bool) -> tuple[str, int] | None:
        """The frame of the project's own code that was active: tracebacks have it last, dumps first."""
        frames = [
            (str(path.relative_to(self.work)), int(line))
            for name, line in _FRAME.findall(text)
            if (path := self.work / name).is_relative_to(self.work)
        ]
        return (frames[-1] if last else frames[0]) if frames else None


def judge(rehearsed: Rehearsed) -> Check:
    confined, told = rehearsed.confined, rehearsed.told
    if confined.why == "processes":
        return rehearsed.fail(
            "started more processes than a rehearsal may, without end; all were ended",
            "does each process start others? Guard the start with `if __name__ == '__main__':`",
        )
    if told.not_finite or _LOSS.search(confined.output):
        return rehearsed.fail(
            f"{', '.join(told.not_finite) or 'loss'} is not finite",
            "look at the data, the learning rate and the initial values",
        )
    if confined.why == "time":
        return _judge_unfinished(rehearsed)
    if confined.exit_code != 0:
        return _judge_failed(rehearsed)
    did = f"{told.steps} step{'s' if told.steps > 1 else ''}" if told.steps else "ran to its end"
    message = f"{did} in {confined.seconds:.1f} s"
    return Check(check="rehearsal", subject=rehearsed.phase, outcome="pass", message=message)


def _judge_unfinished(rehearsed: Rehearsed) -> Check:
    confined, told = rehearsed.confined, rehearsed.told
    place = rehearsed.place(confined.output, last=False)
    is_idle = confined.idle_seconds > rehearsed.within_seconds / 2
    if is_idle and told.hosts:
        return _needs_network(rehearsed, told.hosts[0], place)
    if told.is_steered and not told.finished:
        return rehearsed.fail(
            f"{told.steps} of {rehearsed.steps} steps within {confined.seconds:.0f} s",
            "make it smaller with rehearse.params, or give it more time with rehearse.within",
            place,
        )
    if is_idle:
        return rehearsed.fail(
            f"hangs: did nothing for {confined.idle_seconds:.0f} s",
            "what does it wait for? A lock, a process or an answer that does not come",
            place,
        )
    message = f"ran for {confined.seconds:.0f} s and was still at work"
    return Check(check="rehearsal", subject=rehearsed.phase, outcome="pass", message=message)


def _judge_failed(rehearsed: Rehearsed) -> Check:
    output = rehearsed.confined.output
    trace = output.rpartition(_TRACEBACK)[2] if _TRACEBACK in output else ""
    place = rehearsed.place(trace, last=True)
    unresolved = _UNRESOLVED.search(output)
    if rehearsed.told.hosts and _NO_NETWORK in output:
        return _needs_network(rehearsed, rehearsed.told.hosts[-1], place)
    if unresolved is not None:
        return _needs_network(rehearsed, unresolved[1], place)
    code = rehearsed.confined.exit_code
    how = f"exit code {code}" if code > 0 else f"ended by {_signal_name(-code)}"
    lines = [line for line in (trace or output).splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if not (trace and line.startswith(" "))), "said nothing")
    return rehearsed.fail(f"{said} ({how})", "run the phase by hand and correct it", place)


def _needs_network(rehearsed: Rehearsed, host: str, place: tuple[str, int] | None) -> Check:
    return rehearsed.fail(
        f"needs the network: it reached for {host}",
        "bring what it fetches with the repository, as data or in the image; or rehearse: skip",
        place,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
