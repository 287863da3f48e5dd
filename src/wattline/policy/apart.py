"""Apart: a candidate decides for a share of the nodes, the policy in force for the others. Who decides what?

Nodes are split by names that the journal has. A job that holds nodes is decided about by whoever decides for
those; one that spans both is the policy's in force. One that waits goes by a hash of its run, if it could
ever fit there. The policy in force goes first; what it takes of supplies, loops and links is laid under the
candidate's eyes, so that both together claim no more than the ledger has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from wattline.policy.decision import decide
from wattline.policy.placing.judging import empty_facility
from wattline.policy.placing.placement import choose_place
from wattline.spec.policy import Policy
from wattline.state import HOLDING, Action, Decision, Flight, Job, JobRequest, Plant, State
from wattline.state.partial import PartialSnapshot

_MOST_REMEMBERED = 10_000


class Split:
    """Which nodes and which jobs are a candidate's."""

    def __init__(
        self, plant: Plant, on: Sequence[str], share: float, salt: str, in_force: Policy, candidate: Policy
    ) -> None:
        """`on` names sites, racks or nodes; `share` is how many of the runs go there."""
        self.nodes = nodes_of(plant, on)
        self.others = frozenset(range(len(plant.spots))) - self.nodes
        self.candidate = candidate
        self._plant, self._share, self._salt, self._in_force = plant, share, salt, in_force
        self._fits: dict[object, tuple[bool, bool]] = {}
        self._lots: dict[str, bool] = {}

    def is_candidates(self, job: Job) -> bool:
        if job.state in HOLDING and job.place is not None:
            numbers = self._plant.node_number
            return all(numbers[name] in self.nodes for name, _ in job.place.nodes)
        theirs, ours = self._fit(job.request)
        return theirs and (not ours or self._is_drawn(job.request.run))

    def is_in_force(self, job: Job) -> bool:
        return not self.is_candidates(job)

    def _is_drawn(self, run: str) -> bool:
        known = self._lots.get(run)
        if known is None:
            if len(self._lots) >= _MOST_REMEMBERED:
                self._lots.clear()
            known = self._lots[run] = draw(self._salt, run) < self._share
        return known

    def _fit(self, request: JobRequest) -> tuple[bool, bool]:
        """Whether it would fit the candidate's nodes, and those of the policy in force, if all were empty."""
        asked = (request.shape, request.project, request.max_duration_seconds)
        known = self._fits.get(asked)
        if known is None:
            if len(self._fits) >= _MOST_REMEMBERED:
                self._fits.clear()
            theirs = self._would_fit(self.candidate, request, self.others)
            known = self._fits[asked] = (theirs, self._would_fit(self._in_force, request, self.nodes))
        return known

    def _would_fit(self, policy: Policy, request: JobRequest, others: frozenset[int]) -> bool:
        empty = empty_facility(self._plant).state
        view = PartialSnapshot(empty, 0.0, lambda _: False, sorted(others))
        return choose_place(view, policy, request, explain=False).place is not None


def nodes_of(plant: Plant, names: Sequence[str]) -> frozenset[int]:
    """The nodes that sites, racks and nodes of these names have."""
    wanted = set(names)
    return frozenset(
        number
        for number, spot in enumerate(plant.spots)
        if wanted.intersection((spot.site.name, spot.rack.name, spot.node.name))
    )


def draw(salt: str, name: str) -> float:
    """A lot between 0 and 1 that is the same wherever it is drawn."""
    drawn = hashlib.blake2b(f"{salt}\n{name}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") / 2**64


def choose_racks(plant: Plant, share: float, salt: str) -> tuple[str, ...]:
    """Whole racks by lot, until they have that share of all GPUs; at least one, and never all."""
    gpus: dict[str, int] = {}
    for spot in plant.spots:
        if spot.node.gpus:
            gpus[spot.rack.name] = gpus.get(spot.rack.name, 0) + spot.node.gpus
    chosen: list[str] = []
    taken, wanted = 0, share * sum(gpus.values())
    for rack in sorted(gpus, key=lambda name: (draw(salt, name), name))[: max(0, len(gpus) - 1)]:
        if chosen and taken >= wanted:
            break
        chosen.append(rack)
        taken += gpus[rack]
    return tuple(sorted(chosen))


def split_of(adopted: Mapping[str, str], plant: Plant, in_force: Policy, candidate: Policy) -> Split:
    """The split that the journal speaks of."""
    return Split(
        plant,
        adopted["canary_on"].split("\n"),
        float(adopted["canary_share"]),
        adopted["canary_sha256"],
        in_force,
        candidate,
    )


def decide_apart(state: State, at: float, in_force: Policy, split: Split) -> Decision:
    """One decision of two policies; each action says if it is the candidate's."""
    ours = decide(PartialSnapshot(state, at, split.is_in_force, sorted(split.nodes)), in_force)
    view = PartialSnapshot(state, at, split.is_candidates, sorted(split.others))
    for action in ours.actions:
        if action.id not in state.flights:  # what is asked again was promised before
            view.issue(action)
    theirs = decide(view, split.candidate)
    mark = partial(_marked, name=split.candidate.policy, known=state.flights)
    return msgspec.structs.replace(
        ours,
        actions=(*ours.actions, *map(mark, theirs.actions)),
        verdicts=(*ours.verdicts, *theirs.verdicts),
        stuck=(),  # found in a part, it would be believed of the whole
        unsure=(),
        reservations=(*ours.reservations, *theirs.reservations),
        given_up=(*ours.given_up, *theirs.given_up),
        eased=(*ours.eased, *theirs.eased),
        pressed=(*ours.pressed, *theirs.pressed),
        restless=tuple(dict.fromkeys((*ours.restless, *theirs.restless))),
        revisit_at=_first(ours.revisit_at, theirs.revisit_at),
        answer_by=_first(ours.answer_by, theirs.answer_by),
        unread_at=_first(ours.unread_at, theirs.unread_at),
    )


def _marked(action: Action, name: str, known: Mapping[str, Flight]) -> Action:
    """What is asked again stays whose it was."""
    return action if action.id in known else msgspec.structs.replace(action, by=name)


def _first(*times: float | None) -> float | None:
    return min((at for at in times if at is not None), default=None)
