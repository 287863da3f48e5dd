"""Scaling: which nodes go to sleep, and which wake for whoever waits or may come?

After admission, so that what starts now counts. Whoever waits is looked at in line, as if nodes that are
waking were awake: who fits on them waits for them, for the others just enough of those that sleep are woken.
What is left over of nodes that nobody used for long goes to sleep, but for those that a pool keeps warm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from wattline.policy.naming import next_action, turn_action
from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.permission import judge_permission
from wattline.policy.permitting.pools import pools_for
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.placement import choose_place
from wattline.policy.scaling.waking import WAKING, carries_idle, find_sleepers, judge_margin, rouse_for
from wattline.policy.scaling.warming import warm_nodes
from wattline.policy.shifting.shifting import Shift
from wattline.policy.turns.turns import Turns
from wattline.spec.policy import Policy
from wattline.spec.scaling import Scaling
from wattline.state import (
    Action,
    ActionKind,
    Job,
    JobState,
    Line,
    NodeMode,
    Place,
    Snapshot,
    Verdict,
)

replace = msgspec.structs.replace

# So many who wait are looked at in one decision; the others when some of them have started.
_MOST_HEADS = 256
# A node that takes longer than so many times its site's time to wake does not count as coming.
_LATE_TIMES = 2.0
_SHORTEST_TICK_SECONDS, _LONGEST_TICK_SECONDS = 15.0, 300.0


class Scaled(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    waits: dict[str, Verdict] = msgspec.field(default_factory=dict)  # by job, what it waits for here


def scale(
    draft: Snapshot,
    policy: Policy,
    begun: Iterable[Action] = (),
    told: Iterable[Verdict] = (),
    shift: Shift | None = None,
    *,
    anew: bool = False,
) -> Scaled:
    """What nodes are asked, beside what was `begun` and `told` in this decision.

    `anew`: also those are looked at who were told what they wait for, and still do.
    """
    scaling, resting, scaled = policy.scaling, draft.resting, Scaled()
    if scaling is None or not resting.pools:
        return scaled
    places = [action.place for action in begun if action.place is not None]
    future = draft.copy()
    for node in sorted(resting.modes[NodeMode.WAKING]):
        if not draft.is_off(node) and not _is_late(draft, node):
            future.rouse(node)
    is_time = draft.at >= next_tick(draft.decided_at, scaling)
    if draft.is_anybody_waiting and (resting.modes[NodeMode.ASLEEP] or resting.modes[NodeMode.WAKING]):
        line = _line_up(draft, policy)
        if anew or _has_news(draft, policy, line, is_time=is_time):
            _wake_for_waiting(future, policy, line, shift, scaled)
    kept_awake = _pools_waited_for(draft, policy, shift) if is_time and draft.is_anybody_waiting else set()
    spots = draft.plant.spots
    taken = {draft.plant.node_number[name] for place in places for name, _ in place.nodes}
    for pool in resting.pools if is_time else sorted({spots[node].pool for node in taken}):
        if resting.idle[pool] or resting.of_pool[pool]:
            may_sleep = is_time and pool not in kept_awake
            _size_pool(future, policy, scaling, pool, taken, scaled, may_sleep=may_sleep)
    _tell(draft, told, scaled)
    if draft.is_anybody_waiting or any(draft.holding) or any(resting.idle):
        scaled.looks.append(next_tick(draft.at, scaling))
    return scaled


def next_tick(at: float, scaling: Scaling) -> float:
    """When pools are looked at after a time: by the clock, so that a replay of the journal does the same."""
    every = min(_LONGEST_TICK_SECONDS, max(_SHORTEST_TICK_SECONDS, scaling.sleep_after / 4.0))
    return (math.floor(at / every) + 1.0) * every


def answer_seconds(draft: Snapshot, action: Action, policy: Policy) -> float:
    """How long a node is given before it is asked again: as long as waking takes there, and some more."""
    number = draft.plant.node_number.get(action.node)
    sleep = None if number is None else draft.plant.spots[number].site.sleep
    wakes = action.kind is ActionKind.WAKE and sleep is not None
    within = policy.thresholds.acknowledge_within
    return within + (sleep.wake_seconds if wakes and sleep is not None else 0.0)


def _is_late(draft: Snapshot, node: int) -> bool:
    rest, sleep = draft.resting.rests[node], draft.plant.spots[node].site.sleep
    return sleep is not None and draft.at > rest.since + _LATE_TIMES * sleep.wake_seconds


def _line_up(draft: Snapshot, policy: Policy) -> list[tuple[Line, Job]]:
    """The first who still wait, in order, each with the line it stands in."""
    turns = Turns(draft, policy, None, lambda _: True)
    found: list[tuple[Line, Job]] = []
    while len(found) < _MOST_HEADS and (head := turns.next()) is not None:
        job = draft.job(head.job_id)
        if job.state is JobState.WAITING:
            found.append((head.line, job))
        turns.put_back(head)
    return found


def _pools_waited_for(draft: Snapshot, policy: Policy, shift: Shift | None) -> set[int]:
    """Pools that somebody waits for: while a queue stands, what could serve it does not go to sleep."""
    pools: set[int] = set()
    seen: set[int] = set()
    for line, job in _line_up(draft, policy):
        if id(line) not in seen and _may_go(draft, policy, job, shift):
            seen.add(id(line))
            pools.update([pool for _, pool in pools_for(draft.plant, policy, job.remainder)])
    return pools


def _has_news(draft: Snapshot, policy: Policy, line: Iterable[tuple[Line, Job]], *, is_time: bool) -> bool:
    """Whether somebody waits who was not looked at yet, or for whom it may have changed."""
    has_more = is_time or bool(draft.loosened_pools(policy.thresholds.reading_max_age))
    for _, job in line:
        awaited = [verdict.subject for verdict in job.verdicts if verdict.rule == WAKING]
        if not awaited:
            if has_more or job.since >= draft.decided_at:
                return True
            continue
        number = draft.plant.node_number.get(awaited[0], -1)
        if number not in draft.resting.modes[NodeMode.WAKING] or _is_late(draft, number):
            return True
    return False


def _wake_for_waiting(
    future: Snapshot, policy: Policy, line: Iterable[tuple[Line, Job]], shift: Shift | None, scaled: Scaled
) -> None:
    """Go through who waits; behind one that no waking helps, nobody of its shape is looked at."""
    failed: set[Line] = set()
    for of_shape, job in line:
        if of_shape in failed or not _may_go(future, policy, job, shift):
            continue
        if not _wake_for(future, policy, job, scaled):
            failed.add(of_shape)


def _may_go(future: Snapshot, policy: Policy, job: Job, shift: Shift | None) -> bool:
    """Whether only a place is missing."""
    if when_ready(job, policy) > future.at or (shift is not None and shift.judge(job) is not None):
        return False
    verdicts = judge_permission(future, job.remainder, policy)
    return all(verdict.allows for verdict in verdicts + judge_class(future, policy, job.remainder))


def _wake_for(future: Snapshot, policy: Policy, job: Job, scaled: Scaled) -> bool:
    """Find out what a job waits for; False where no waking helps."""
    request, near, numbers = job.remainder, home_of(future, job), future.plant.node_number
    place = _awaited_place(future, job)
    if place is None:
        place = choose_place(future, policy, request, near=near, explain=False).place
    if place is None:
        roused = rouse_for(future, policy, request, near)
        if roused is None:
            short = judge_margin(future, policy, request)
            if short is not None:
                scaled.waits[job.id] = replace(short, job=job.id)
            return False
        for node in roused.nodes:
            future.rouse(node)
            _ask(future, node, ActionKind.WAKE, f"{job.id} waits", scaled)
        place = roused.place
    future.issue(next_action(job, ActionKind.START, place=place))
    waits = [(_wakes_in(future, numbers[name]), name) for name, _ in place.nodes]
    seconds, name = max(waits)
    if seconds > 0.0:
        verdict = Verdict.wait(WAKING, name, f"{name} has woken", left_seconds=float(math.ceil(seconds)))
        scaled.waits[job.id] = replace(verdict, job=job.id)
    return True


def _awaited_place(future: Snapshot, job: Job) -> Place | None:
    """Where a job was told to wait for a node to wake, while that node still holds it."""
    for verdict in job.verdicts:
        node = future.plant.node_number.get(verdict.subject, -1) if verdict.rule == WAKING else -1
        if node not in future.resting.modes[NodeMode.WAKING] or _is_late(future, node):
            continue
        gpus, has_cpus = job.remainder.gpus, future.cpus_free(node) >= job.remainder.cpus
        if 0 < gpus <= future.gpus_free(node) and has_cpus:
            return Place(future.plant.spots[node].site.name, ((verdict.subject, gpus),))
    return None


def _wakes_in(future: Snapshot, node: int) -> float:
    """Seconds until a node that rests will have woken."""
    rest, sleep = future.resting.rests.get(node), future.plant.spots[node].site.sleep
    if rest is None or sleep is None or rest.mode is NodeMode.AWAKE:
        return 0.0
    since = rest.since if rest.mode is NodeMode.WAKING else future.at
    return max(1.0, since + sleep.wake_seconds - future.at)


def _size_pool(
    future: Snapshot,
    policy: Policy,
    scaling: Scaling,
    pool: int,
    taken: set[int],
    scaled: Scaled,
    *,
    may_sleep: bool,
) -> None:
    """Wake what a pool lacks of nodes to keep warm, or let sleep what it has too many of."""
    resting, plant = future.resting, future.plant
    idle = resting.idle[pool]
    unused = len(idle) - sum([node in idle for node in taken])
    coming = [
        node
        for node in (*resting.modes[NodeMode.WAKING], *_woken(plant.node_number, scaled))
        if plant.spots[node].pool == pool and future.gpus_free(node) == plant.spots[node].node.gpus
    ]
    sleep = plant.sites[plant.pools[pool][0]].sleep
    assert sleep is not None
    wanted = warm_nodes(resting.came.get(pool), future.at, sleep.wake_seconds, scaling)
    lacking = wanted - unused - len(coming)
    if lacking > 0:
        for node in find_sleepers(future, policy, pool):
            if lacking and carries_idle(future, policy, node):
                future.rouse(node)
                _ask(future, node, ActionKind.WAKE, f"{wanted} of its pool are kept warm", scaled)
                lacking -= 1
    elif may_sleep and lacking < 0:
        _let_sleep(future, scaling, idle, min(-lacking, unused), taken, scaled)


def _let_sleep(
    future: Snapshot, scaling: Scaling, idle: Mapping[int, float], most: int, taken: set[int], scaled: Scaled
) -> None:
    kept: set[str] | None = None
    for node, since in idle.items():
        if most <= 0 or since + scaling.sleep_after > future.at:
            return
        spot = future.plant.spots[node]
        if node in taken or future.gpus_free(node) < spot.node.gpus:
            continue
        if kept is None:
            kept = _kept_nodes(future)
        if spot.node.name not in kept:
            _ask(future, node, ActionKind.SLEEP, "nobody uses it", scaled)
            most -= 1


def _kept_nodes(future: Snapshot) -> set[str]:
    """Nodes to which somebody means to come back, or that are kept for somebody."""
    places: list[Place] = [one.place for one in future.reservations.values()]
    for job_id in future.paused:
        place = future.job(job_id).place
        if place is not None:
            places.append(place)
    return {name for place in places for name, _ in place.nodes}


def _woken(numbers: Mapping[str, int], scaled: Scaled) -> list[int]:
    return [numbers[action.node] for action in scaled.actions if action.kind is ActionKind.WAKE]


def _ask(future: Snapshot, node: int, kind: ActionKind, because: str, scaled: Scaled) -> None:
    name = future.plant.spots[node].node.name
    scaled.actions.append(turn_action(name, future.resting.rests.get(node), kind, because))


def _tell(draft: Snapshot, told: Iterable[Verdict], scaled: Scaled) -> None:
    """Say what each waits for, where that is news, beside all else that it was told."""
    spoken = {verdict.job for verdict in told} if scaled.waits else set()
    for job_id, verdict in scaled.waits.items():
        before = draft.jobs[job_id].verdicts
        known = [(one.rule, one.subject) for one in before if one.rule.startswith("scaling.")]
        if job_id in spoken:
            scaled.verdicts.append(verdict)
        elif known != [(verdict.rule, verdict.subject)]:
            scaled.verdicts += [one for one in before if not one.rule.startswith("scaling.")]
            scaled.verdicts.append(verdict)
