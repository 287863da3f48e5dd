"""What did jobs wait for, and how many GPUs stood idle meanwhile?

Of many jobs that are alike one is tried, and what it waits for is told only where that is news: a reason
holds for all jobs of a shape until another is told. Where many kinds of jobs wait they are counted every few
minutes in the twin, as a look at all of them in every step would cost more than the step.
"""

from __future__ import annotations

from collections import Counter

from wattline.policy import dominant
from wattline.state import Decision, JobState, Outcome, State
from wattline.units import SECONDS_PER_HOUR

_EVERY_SECONDS = 600.0
_FEW_SHAPES = 8  # these are counted in every step
_MOST_KEPT = 10_000
UNTOLD = "not told"  # came after one of its kind was known not to fit, before anybody was told why


class WaitingFor:
    """Hears of every decision, once it is settled."""

    def __init__(self, state: State, at: float) -> None:
        self._state, self._looked_at = state, at
        plant = state.plant
        self._pools = [pool for pool, (site, _) in enumerate(plant.pools) if site not in plant.clouds]
        self._rules: dict[object, str] = {}  # by shape, the rule that was last told of one
        self._waiting: Counter[str] = (
            Counter()
        )  # jobs by rule, and the GPUs that are free, as of the last look
        self._idle_gpus = 0
        self._job_seconds: dict[str, float] = {}
        self._idle_gpu_seconds = 0.0

    def hear(self, decision: Decision) -> None:
        for verdict in decision.verdicts:  # a generator costs more, and most decisions keep nobody waiting
            if verdict.outcome is Outcome.WAIT:
                self._keep_rules(decision)
                break
        if len(self._state.waiting) <= _FEW_SHAPES or decision.at - self._looked_at >= _EVERY_SECONDS:
            self._look(decision.at)

    def finish(self, at: float) -> None:
        self._look(at)

    @property
    def job_hours(self) -> dict[str, float]:
        """By rule, the most first; nothing where a policy says nothing of waiting."""
        if not self._rules:
            return {}
        most_first = sorted(self._job_seconds.items(), key=lambda item: (-item[1], item[0]))
        return {rule: seconds / SECONDS_PER_HOUR for rule, seconds in most_first}

    @property
    def idle_gpu_hours(self) -> float:
        """Of our own halls, while some job waited."""
        return self._idle_gpu_seconds / SECONDS_PER_HOUR

    def _keep_rules(self, decision: Decision) -> None:
        jobs = self._state.jobs
        for job_id in {verdict.job for verdict in decision.verdicts if verdict.outcome is Outcome.WAIT}:
            job = jobs.get(job_id)
            reason = dominant(job.verdicts) if job is not None and job.state is JobState.WAITING else None
            if job is not None and reason is not None:
                self._rules[job.remainder.shape] = reason.rule

    def _look(self, at: float) -> None:
        seconds, self._looked_at = at - self._looked_at, at
        for rule, jobs in self._waiting.items():
            self._job_seconds[rule] = self._job_seconds.get(rule, 0.0) + jobs * seconds
        self._idle_gpu_seconds += self._idle_gpus * seconds
        state, rules = self._state, self._rules
        self._waiting = waiting = Counter[str]()
        for shape, queue in state.waiting.items():
            waiting[rules.get(shape, UNTOLD)] += len(queue)
        self._idle_gpus = sum(state.ledger.free_in_pool[pool] for pool in self._pools) if waiting else 0
        if len(rules) > _MOST_KEPT + 2 * len(state.waiting):
            self._rules = {shape: rule for shape, rule in rules.items() if shape in state.waiting}
