"""The live world: real processes on an engine, meters, people's requests, and the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from wattline import engines
from wattline.actuators import Actuator
from wattline.engines import Engine, Launch
from wattline.errors import WattlineError
from wattline.facility import TrafficClass
from wattline.live.attempts import Attempts
from wattline.live.capping import Capping
from wattline.live.clouds import CloudFiles
from wattline.live.home import Home
from wattline.live.launching import UnreachedError, attempt_name, prepare
from wattline.live.meters import Meters
from wattline.live.pricing import price_save_seconds
from wattline.live.replicas import Replicas, StoreOf, local_stores
from wattline.live.running import Goods
from wattline.live.sleepers import Sleepers
from wattline.live.sweeping import Sweeper
from wattline.state import (
    BEGINNINGS,
    Acknowledged,
    Action,
    ActionFailed,
    ActionKind,
    AttemptEnded,
    CheckpointSaved,
    Ending,
    Event,
    Job,
    Measured,
    Noticed,
    State,
)
from wattline.state.claim import peak_watts_at
from wattline.state.measuring import OTHERS_GPUS

# What counts of a node that nothing was said of.
_UNSAID = {"node_up": (1.0, 0.0), OTHERS_GPUS: (0.0, 0.0)}
_LONGEST_SLEEP_SECONDS = 1.0
_SHORTEST_SLEEP_SECONDS = 0.005
_BUSY_SLEEP_SECONDS = 0.05  # while files are being laid out or gathered in the background


class LiveWorld:
    """What happens here becomes events; what is decided is done to real processes."""

    def __init__(
        self,
        *,
        home: Home,
        state: State,
        engine: Engine,
        actuator: Actuator,
        meters: Meters,
        goods: Goods,
        requests: Callable[[], Sequence[Event]],
        stores: StoreOf | None = None,
    ) -> None:
        self._home = home
        self._state = state
        self._engine = engine
        self._capping = Capping(actuator)
        self._meters = meters
        self._goods = goods
        self._requests = requests
        self._clouds = CloudFiles(home, state)
        self._attempts = Attempts(home=home, state=state, meters=meters, goods=goods, clouds=self._clouds)
        # Monotonic, and never before what the journal has seen: the wall clock may jump, time may not.
        self._offset = max(time.time(), state.at) - time.monotonic()
        self._queue: list[Event] = []
        self._applied: set[str] = set()
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="wattline-files")
        self._preparing: dict[str, tuple[Action, Future[Launch]]] = {}
        self._gathering: list[tuple[str, Future[Event]]] = []
        self.cut_seconds = 0.0  # how long what runs here would go on after a cut
        self._stores = stores or local_stores(home)
        self._replicas = Replicas(self._stores, self._checkpoint_rate)
        self._sleepers = Sleepers(state, meters.emulated)
        self._sweeper = Sweeper(engine, home.root)

    def now(self) -> float:
        return time.monotonic() + self._offset

    def events(self) -> Sequence[Event]:
        """Everything since last asked, requests first, so that one turn can admit what was just submitted."""
        now = self.now()
        found: list[Event] = [*self._requests(), *self._queue]
        self._queue.clear()
        self._start_prepared(now)
        for event in self._engine.poll():
            if isinstance(event, engines.Ended):
                self._capping.end(event.attempt)
                ended = self._attempts.end(event.attempt, event.result, now)
                self._gathering.append((event.attempt, self._workers.submit(ended)))
            else:
                found += self._attempts.tell(event, now)
        found += self._gathered(now)
        found += self._seen_nodes(now)
        found += self._meters.read(now)
        found += self._capping.poll(now)
        found += self._sleepers.poll(now)
        found += self._clouds.poll(now)
        found += self._sweeper.poll(self._held, now)
        found += self._queue
        self._queue.clear()
        for told in found:
            if isinstance(told, CheckpointSaved) and told.job in self._state.jobs:
                self._replicas.saved(self._state.jobs[told.job], told.site)
        found += self._replicas.poll(now)
        return found

    def is_replicating(self, jobs: tuple[str, ...]) -> bool:
        """Whether checkpoints of these jobs are on their way to another site."""
        return self._replicas.is_busy(jobs)

    def apply(self, action: Action) -> None:
        """Do it, once. What takes long goes on in the background."""
        if action.id in self._applied:
            self._still_at_it(action)
            return
        self._applied.add(action.id)
        if action.node:
            self._queue += self._sleepers.turn(action, self.now())
            return
        if action.kind in BEGINNINGS:
            if attempt_name(action.job, action.attempt) in self._attempts.names:
                return  # begun by an earlier process, and taken over: its files are in use
            self._preparing[action.id] = (action, self._workers.submit(self._prepare, action))
            return
        attempt = attempt_name(action.job, action.attempt)
        try:
            if action.kind is ActionKind.CAP_POWER:
                self._capping.cap(action, attempt)
                self._queue += self._capping.poll(self.now())
            elif action.kind is ActionKind.SHRINK_BATCH:
                self._engine.shrink(attempt, action.fraction)
                self._answer(action)
            elif action.kind is ActionKind.PAUSE:
                self._pause(action, attempt)  # answered by the attempt's end
            elif action.kind is ActionKind.STOP:
                self._stop(action, attempt)
        except (WattlineError, OSError) as error:
            self._queue.append(ActionFailed(at=self.now(), action=action.id, say=_say(error)))

    def sleep_until(self, at: float | None) -> None:
        now = self.now()
        wake_at = min(now + _LONGEST_SLEEP_SECONDS, self._meters.next_at)
        if at is not None:
            wake_at = min(wake_at, at)
        wake_at = min(wake_at, self._sleepers.next_at)
        if self._preparing or self._gathering or self._capping.is_busy:
            wake_at = min(wake_at, now + _BUSY_SLEEP_SECONDS)
        self._engine.wait(0.0 if self._queue else max(_SHORTEST_SLEEP_SECONDS, wake_at - now))

    def recover(self) -> list[Event]:
        """After a crash: say how earlier attempts ended; those that outlive who started them go on under this
        process. What the agents of other sites run is theirs.
        """
        for job in self._state.jobs.values():  # what was on its way to another site goes on
            run = self._state.runs.get(job.request.run)
            is_here = job.saved is not None and job.saved.site not in self._state.sites
            if job.saved is not None and is_here and run is not None and run.ended_at is None:
                self._replicas.saved(job, job.saved.site)
        holding = [self._state.jobs[job_id] for job_id in self._state.holding]
        jobs = [job for job in holding if job.place is None or job.place.site not in self._state.sites]
        folders = {job.id: self._folder(job) for job in jobs}
        results = self._engine.recover(folders.values())
        now = self.now()
        found: list[Event] = []
        for job in jobs:
            result = results.get(folders[job.id])
            if result is None:  # it runs on, where attempts outlive who started them
                self._attempts.adopt(job, folders[job.id])
            else:
                name = attempt_name(job.id, job.attempt)
                found += self._attempts.last_words(job, folders[job.id], now)
                found.append(self._attempts.end(name, result, now, recovered=True)())
        return [*found, *self._sweeper.look_now(self._held(), self.now())]

    def _held(self) -> list[Path]:
        """The folders of all attempts that the journal holds."""
        return [self._folder(self._state.jobs[job_id]) for job_id in self._state.holding]

    def _folder(self, job: Job) -> Path:
        return self._home.attempt(job.request.run, job.request.phase, job.attempt)

    def stop_all(self) -> None:
        """For attempts that outlive who started them: they end by themselves, also when nobody looks on."""
        for attempt in self._attempts.names:
            try:
                self._engine.stop(attempt)
            except (WattlineError, OSError) as error:
                self._queue.append(Noticed(at=self.now(), subject=attempt, say=_say(error)))

    def close(self) -> None:
        """Let go of everything, and end what cannot live without; `recover` then says how each ended."""
        self._preparing.clear()
        self._replicas.close()
        self._sweeper.close()
        self._meters.close()
        self._engine.close()
        self._capping.close()  # limits are put back once nobody draws on them
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._gathering = [(attempt, future) for attempt, future in self._gathering if not future.cancelled()]

    def _prepare(self, action: Action) -> Launch:
        job = self._state.jobs[action.job]
        run = self._state.runs[job.request.run]
        inputs = tuple(
            outputs for earlier in job.request.after if (outputs := self._state.jobs[earlier].outputs)
        )
        assert action.place is not None
        rate = self._checkpoint_rate(action.from_site, action.place.site)
        source = self._goods.source(run.documents)
        price = price_save_seconds(job, action.place, self._state.plant)
        watts = peak_watts_at(job.request, action.place, self._state.plant, action.fraction)
        return prepare(
            *(self._home, self._goods, source, job, action, inputs, rate, price),
            peak_watts=watts,
            actor=run.actor,
            store_of=self._stores,
            cut_seconds=self.cut_seconds,
        )

    def _checkpoint_rate(self, origin: str, target: str) -> float | None:
        """What the link between two sites gives to checkpoints now, faults included, in bytes per second."""
        link = self._state.plant.link_resource(origin, target, TrafficClass.CHECKPOINT)
        return None if link is None else self._state.ledger.caps[link] / 8

    def _start_prepared(self, now: float) -> None:
        for action_id, (action, future) in list(self._preparing.items()):
            if not future.done():
                continue
            del self._preparing[action_id]
            trouble = future.exception()
            if trouble is not None:
                unreached = isinstance(trouble, UnreachedError)
                failed = ActionFailed(at=now, action=action.id, say=_say(trouble), unreached=unreached)
                self._queue.append(failed)
                continue
            launch = future.result()
            try:
                self._launch(launch)
            except (WattlineError, OSError) as error:
                self._queue.append(ActionFailed(at=now, action=action.id, say=_say(error)))
                continue
            self._attempts.begin(action, launch)
            assert action.place is not None
            self._capping.begin(launch.attempt, dict(action.place.nodes), action.fraction)

    def _launch(self, launch: Launch) -> None:
        """It lives as long as this process."""
        self._engine.start(launch)

    def _seen_nodes(self, now: float) -> list[Event]:
        """What the engine sees of its nodes, where that has changed: are they up, and who else is there?"""
        readings: list[tuple[str, str, float | None]] = []
        for seen in self._engine.nodes():
            found = {"node_up": float(seen.is_up), OTHERS_GPUS: float(seen.others_gpus)}
            readings += [
                (seen.node, quantity, value)
                for quantity, value in found.items()
                if self._state.readings.get((seen.node, quantity), _UNSAID[quantity])[0] != value
            ]
        return [Measured(at=now, source=self._engine.name, readings=tuple(readings))] if readings else []

    def _gathered(self, now: float) -> list[Event]:
        """Ends of attempts whose results are kept by now; one that could not be gathered has failed."""
        done = [(attempt, future) for attempt, future in self._gathering if future.done()]
        self._gathering = [(attempt, future) for attempt, future in self._gathering if not future.done()]
        found: list[Event] = []
        for attempt, future in done:
            trouble = future.exception()
            if trouble is None:
                found.append(future.result())
                continue
            job, _, number = attempt.rpartition("/")
            say = f"its results could not be kept: {_say(trouble)}"
            found.append(AttemptEnded(at=now, job=job, attempt=int(number), ending=Ending.FAILED, say=say))
        return found

    def _still_at_it(self, action: Action) -> None:
        """Asked again: say so while files are being laid out, a node wakes, or a script that should pause
        talks."""
        if action.node:
            self._queue += self._sleepers.turn(action, self.now())
            return
        attempt = attempt_name(action.job, action.attempt)
        pausing = action.kind is ActionKind.PAUSE and self._attempts.talks(attempt, self.now())
        if action.id in self._preparing or pausing:
            self._answer(action)

    def _stop(self, action: Action, attempt: str) -> None:
        for action_id, (begun, future) in list(self._preparing.items()):
            if begun.job == action.job:
                future.cancel()
                del self._preparing[action_id]
                self._queue.append(
                    AttemptEnded(
                        at=self.now(),
                        job=action.job,
                        attempt=action.attempt,
                        ending=Ending.STOPPED,
                        say="stopped before it started",
                    )
                )
                return
        self._engine.stop(attempt)

    def _pause(self, action: Action, attempt: str) -> None:
        """A script that knows neither the runtime nor a signal to save by is told to finish."""
        job = self._state.jobs[action.job]
        source = self._goods.source(self._state.runs[job.request.run].documents)
        signals = source.pipeline.phases[job.request.phase].signals
        if signals is not None and signals.checkpoint is None:
            self._engine.stop(attempt)
        else:
            self._engine.request_pause(attempt)

    def _answer(self, action: Action) -> None:
        self._queue.append(Acknowledged(at=self.now(), action=action.id))


def _say(error: BaseException) -> str:
    if isinstance(error, WattlineError):
        return error.message
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}"
    return f"{type(error).__name__}: {error}"
