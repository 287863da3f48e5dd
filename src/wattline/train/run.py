"""Run: how does a training loop pause, shrink, save and continue without knowing who asked?"""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Never, TypeVar

from wattline.checkpoint import DisturbedError, LocalStore, StaleEpochError, StorageError
from wattline.train.errors import ScriptError
from wattline.train.keeper import Failed, Keeper, Kept
from wattline.train.mailbox import Mailbox
from wattline.train.pace import Pace, rest_seconds
from wattline.train.parts import require_parts
from wattline.train.results import NOT_FINITE, Number, finite, merge_metrics, plain_numbers
from wattline.train.surroundings import Surroundings, warn_unless_pinned

PAUSED_EXIT_CODE = 75  # EX_TEMPFAIL: nothing is wrong, start it again later
FENCED_EXIT_CODE = 76

_REPORT_EVERY_SECONDS = 0.2
_POLL_EVERY_SECONDS = 0.05

_Batch = TypeVar("_Batch")
_Result = TypeVar("_Result")


def start(*, checkpoints: str | Path | None = None, max_in_flight: int | None = None, **parts: Any) -> Run:
    """Name what the loop trains with; each part comes back as the newest checkpoint has it.

    A control plane says through the environment where checkpoints go. Without one they go to `checkpoints`,
    if that is given. `max_in_flight` bounds how many micro-batches `map` computes at once; by default one
    for each core. Set OMP_NUM_THREADS=1 when running by hand, as a control plane does: results are then the
    same to the bit whatever is in flight.
    """
    require_parts(parts)
    surroundings = Surroundings.read()
    if surroundings.attempt is not None:
        warn_unless_pinned()
    if max_in_flight is not None and max_in_flight < 1:
        raise ScriptError(f"max_in_flight is {max_in_flight}", hint="give at least 1")
    root = surroundings.checkpoints or (Path(checkpoints).absolute() if checkpoints is not None else None)
    keeper = None
    if root is not None:
        keeper = Keeper(
            LocalStore(root),
            epoch=surroundings.epoch,
            cadence=surroundings.cadence,
            keep=surroundings.keep,
            lineage=surroundings.lineage,
            travels=surroundings.travels,
        )
    return Run(surroundings, parts, keeper, max_in_flight or surroundings.cpus)


def report(**metrics: Any) -> None:
    """Final metrics of a script without a training loop, such as an evaluation."""
    surroundings = Surroundings.read()
    mailbox = Mailbox(surroundings.attempt)
    _write_metrics(surroundings.out, mailbox, metrics)
    mailbox.close()


class Run:
    """A training loop's hold on its surroundings; made by `start`."""

    def __init__(
        self, surroundings: Surroundings, parts: Mapping[str, Any], keeper: Keeper | None, most: int
    ) -> None:
        self.out = surroundings.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.gpus = surroundings.gpus  # the width of this attempt; another may have another
        self.step = 0
        self._parts = parts
        self._keeper = keeper
        self._pace = Pace(most)
        self._mailbox = Mailbox(surroundings.attempt)
        self._is_controlled = surroundings.attempt is not None
        self._rehearsed_steps = surroundings.rehearsed_steps
        self._was_told_to_stop = False
        self._saves_answered = 0
        self._logged: dict[str, Number] = {}
        self._reported_at = 0.0
        self._reported_serial = 0
        if keeper is not None:
            self._resume(keeper)

    def steps(self, total: int) -> Iterator[int]:
        """The numbers of the steps still to do, up to `total` over the life of the run.

        Requests are answered between steps. A pause, or SIGTERM under a control plane, saves and leaves
        through SystemExit with code 75; being fenced off by a newer attempt, with code 76. In a rehearsal
        (WATTLINE_REHEARSE) the loop ends after as many steps as that says.
        """
        if self._rehearsed_steps is not None:
            total = min(total, self.step + self._rehearsed_steps)
        with self._polite_stop():
            self._answer_requests()
            while self.step < total:
                self._pace.start_step()
                self._logged = {}
                started = time.monotonic()
                yield self.step
                worked_seconds = time.monotonic() - started
                self.step += 1
                self._report_step(total, worked_seconds)
                self._rest(worked_seconds)
                self._answer_requests()
                self._keep_up()
            self._save("final")
            self._mailbox.report("finished", step=self.step)

    def map(self, function: Callable[[_Batch], _Result], batches: Sequence[_Batch]) -> list[_Result]:
        """Apply to every micro-batch; results are in order, however many are in flight."""
        return self._pace.map(function, batches, self._mailbox.desired.in_flight)

    def log(self, **metrics: Any) -> None:
        """Metrics of this step; `loss` is the one that everybody watches."""
        self._logged.update(plain_numbers(metrics))

    def report(self, **metrics: Any) -> None:
        """Final metrics: added to `metrics.json` in the results folder, where gates read them."""
        _write_metrics(self.out, self._mailbox, metrics)

    def _resume(self, keeper: Keeper) -> None:
        try:
            resumed = keeper.resume(self._parts)
        except StaleEpochError as error:
            self._leave_fenced(error)
        if resumed is None:
            return
        self.step = resumed.step
        self._mailbox.report(
            "resumed",
            step=resumed.step,
            **{"from": resumed.path},
            rejected=[{"path": one.name, "why": one.why} for one in resumed.rejected],
        )

    def _answer_requests(self) -> None:
        desired = self._mailbox.poll()
        if desired.checkpoint > self._saves_answered:
            self._saves_answered = desired.checkpoint
            self._save("requested")
        if desired.pause or self._was_told_to_stop:
            self._save("pause")
            self._mailbox.report("paused", step=self.step)
            raise SystemExit(PAUSED_EXIT_CODE)

    def _keep_up(self) -> None:
        """Tell of a save that has ended, and begin the next when its turn has come."""
        if self._keeper is None:
            return
        ended = self._keeper.take()
        if ended is not None:
            self._tell_save(ended, "cadence")
        if self._keeper.is_due(self.step):
            self._keeper.begin(self._parts, self.step, self._measured())

    def _save(self, reason: Literal["requested", "pause", "final"]) -> None:
        if self._keeper is not None:
            for ended in self._keeper.finish(self._parts, self.step, self._measured()):
                self._tell_save(ended, reason if ended.step == self.step else "cadence")

    def _tell_save(self, ended: Kept | Failed, reason: str) -> None:
        """A disk that is full now may not be at the next save; only a pause cannot go on without. A pause's
        own save is never disturbed: nobody trains meanwhile."""
        if isinstance(ended, Kept):
            self._mailbox.report(
                "checkpoint",
                step=ended.step,
                path=ended.path,
                digest=ended.digest,
                bytes=ended.size_bytes,
                added_bytes=ended.added_bytes,
                seconds=ended.seconds,
                stopped_seconds=ended.stopped_seconds,
                reason=reason,
                skipped=ended.skipped,
                **({"cadence": ended.cadence} if ended.cadence else {}),
            )
            return
        error = ended.error
        if isinstance(error, StaleEpochError):
            self._leave_fenced(error)
        if not isinstance(error, StorageError | DisturbedError):
            raise error
        self._mailbox.report("checkpoint_failed", step=ended.step, reason=reason, why=error.message)
        if reason == "pause":
            raise error
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)

    def _measured(self) -> dict[str, float]:
        """What was logged in the last step, as a checkpoint may hold it."""
        values, _ = finite(self._logged)
        return {name: float(value) for name, value in values.items() if value is not None}

    def _leave_fenced(self, error: StaleEpochError) -> Never:
        self._mailbox.report("fenced", step=self.step, why=error.message)
        print(f"wattline: stopping at step {self.step}: {error}", file=sys.stderr)
        raise SystemExit(FENCED_EXIT_CODE) from error

    def _report_step(self, total: int, seconds: float) -> None:
        """A few times a second is enough to watch; the last, and the first after new orders, always go."""
        now = time.monotonic()
        serial = self._mailbox.desired.serial
        is_news = serial != self._reported_serial or self.step == total
        if not is_news and now - self._reported_at < _REPORT_EVERY_SECONDS:
            return
        self._reported_at, self._reported_serial = now, serial
        values, lost = finite(self._logged)
        fields: dict[str, Any] = {"loss": values.pop("loss")} if "loss" in values else {}
        if values:
            fields["metrics"] = values
        if lost:
            fields[NOT_FINITE] = lost
        self._mailbox.report(
            "step",
            step=self.step,
            total=total,
            **fields,
            seconds=seconds,
            in_flight=self._pace.step_in_flight,
            serial=serial,
        )

    def _rest(self, worked_seconds: float) -> None:
        """Idle in short naps, by the orders this step ran under: new ones end a rest that may be long."""
        desired = self._mailbox.desired
        until = time.monotonic() + rest_seconds(self._pace.step_most, desired.in_flight, worked_seconds)
        while (left := until - time.monotonic()) > 0 and not self._was_told_to_stop:
            time.sleep(min(left, _POLL_EVERY_SECONDS))
            if self._mailbox.poll() != desired:
                return

    @contextmanager
    def _polite_stop(self) -> Iterator[None]:
        """Under a control plane SIGTERM asks for the next boundary, so that a stop loses nothing."""
        if not self._is_controlled or threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGTERM, self._on_terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, previous or signal.SIG_DFL)

    def _on_terminate(self, _number: int, _frame: object) -> None:
        self._was_told_to_stop = True


def _write_metrics(out: Path, mailbox: Mailbox, metrics: Mapping[str, Any]) -> None:
    numbers = plain_numbers(metrics)
    values, lost = finite(numbers)
    merge_metrics(out, numbers)
    mailbox.report("metrics", values=values, **({NOT_FINITE: lost} if lost else {}))
