"""Rules: what do the rules that a policy wrote say of a request?

An expression is evaluated once for all that it speaks of: most rules name two or three things, and most
requests, and all that `explain` tries instead of one, differ in others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter

from wattline.policy.permitting.exceptions import QUANTITIES, limit_of
from wattline.spec import RULE_STRUCTS, Expression, ExpressionError, compile_expression
from wattline.spec.policy import Mode, Policy, Rule
from wattline.state import JobRequest, Outcome, Snapshot, Usage, Verdict

Ruling = tuple[str, Outcome, str]  # name of the rule, what it comes to, what it says

# What of a request rules may speak of; see `rule_values`.
_ruled_on: Callable[[JobRequest], tuple[object, ...]] = attrgetter(
    "gpus",
    "gpu_models",
    "priority",
    "scheduling_class",
    "owner",
    "project",
    "peak_watts",
    "max_duration_seconds",
    "mode",
    "phase",
    "model",
    "intended_use",
    "approved",
)
_MOST_RULINGS = 100_000
_MOST_POLICIES = 8


def judge_rules(snapshot: Snapshot, request: JobRequest, policy: Policy) -> list[Verdict]:
    """A warning, a refusal or a wait of each rule that holds or cannot be told; the others say nothing."""
    if not policy.rules:
        return []
    rulings = _rulings_of(policy)
    if request.project in policy.teams:  # what is left of its quota changes all the time
        found = rulings.rule(rule_values(snapshot, request, policy))
    else:
        asked = _ruled_on(request)
        known = rulings.known.get(asked)
        if known is None:
            if len(rulings.known) >= _MOST_RULINGS:
                rulings.known.clear()
            known = rulings.known[asked] = rulings.rule(rule_values(snapshot, request, policy))
        found = known
    return [
        Verdict(rule=f"rule.{name}", subject=request.job, outcome=outcome, say=say)
        for name, outcome, say in found
    ]


class _Rulings:
    """What the rules of one policy came to before."""

    __slots__ = ("_rules", "known")

    def __init__(self, policy: Policy) -> None:
        self._rules = [_Remembered(rule) for rule in policy.rules]
        self.known: dict[tuple[object, ...], tuple[Ruling, ...]] = {}  # by all that a request is ruled on

    def rule(self, values: Mapping[str, Mapping[str, object]]) -> tuple[Ruling, ...]:
        said = [rule.say(values) for rule in self._rules]
        return tuple([one for one in said if one is not None])


class _Remembered:
    """A rule, and what it said of each of the things that it speaks of."""

    __slots__ = ("_expression", "_known", "_rule")

    def __init__(self, rule: Rule) -> None:
        self._rule, self._expression = rule, _compiled(rule.when)
        self._known: dict[tuple[object, ...], Ruling | None] = {}

    def say(self, values: Mapping[str, Mapping[str, object]]) -> Ruling | None:
        inputs = self._expression.inputs
        if inputs is None:
            return self._evaluate(values)
        asked = tuple([_hashable(values[struct].get(name)) for struct, name in inputs])
        if asked in self._known:
            return self._known[asked]
        if len(self._known) >= _MOST_RULINGS:
            self._known.clear()
        found = self._known[asked] = self._evaluate(values)
        return found

    def _evaluate(self, values: Mapping[str, object]) -> Ruling | None:
        rule = self._rule
        blocks = rule.mode in (Mode.BLOCK, Mode.ENFORCE)
        try:
            holds = self._expression.holds(values)
        except ExpressionError as error:
            say = f"could not be evaluated: {error.message}"
            return rule.name, Outcome.WAIT if blocks else Outcome.WARN, say
        return (rule.name, Outcome.REFUSE if blocks else Outcome.WARN, rule.say) if holds else None


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _compiled(when: str) -> Expression:
    return compile_expression(when, (), RULE_STRUCTS)


_rulings: list[tuple[Policy, _Rulings]] = []


def _rulings_of(policy: Policy) -> _Rulings:
    """Policies are compared by identity: to compare all that they say would cost more than it saves."""
    for known, rulings in _rulings:
        if known is policy:
            return rulings
    rulings = _Rulings(policy)
    _rulings.insert(0, (policy, rulings))
    del _rulings[_MOST_POLICIES:]
    return rulings


def rule_values(snapshot: Snapshot, request: JobRequest, policy: Policy) -> dict[str, dict[str, object]]:
    """What a rule's `when` may speak of."""
    committed = snapshot.account(request.project).committed
    return {
        "job": {
            "gpus": request.gpus,
            "gpu": list(request.gpu_models),
            "priority": request.priority.value,
            "class": request.scheduling_class,
            "owner": request.owner,
            "project": request.project,
            "peak_watts": request.peak_watts or 0.0,
            "max_duration_seconds": request.max_duration_seconds or 0.0,
            "mode": request.mode,
            "phase": request.phase,
            "model": request.model,
            "intended_use": request.intended_use,
            "approved": request.approved,
        },
        "team": {
            f"{name}_left": _left(limit_of(snapshot, policy, request.project, name), committed, name)
            for name, _, _ in QUANTITIES
        },
    }


def _left(limit: float | None, committed: Usage, name: str) -> float:
    """What is left of a quota; a team without one has more than anybody asks."""
    return 1e12 if limit is None else max(0.0, limit - float(getattr(committed, name)))
