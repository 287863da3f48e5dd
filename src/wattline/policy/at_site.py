"""At a site: what does its agent decide by itself, beside what the control plane has it do?

What others decided comes first. Then the agent asks again what was not answered, relieves pressure by the
ladder and shares power: what cannot wait for a long way. It admits, brings back and moves nobody.
Ids of its own actions begin with the site's name, so that they are never taken for somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wattline.policy.asked import ask_again
from wattline.policy.giving_way.attention import next_unread_at
from wattline.policy.giving_way.ladder import respond
from wattline.policy.naming import next_action
from wattline.policy.watts.sharing_power import Shared, share_power
from wattline.policy.watts.staggering import stagger_of
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Decision, JobState, Snapshot


def decide_at_site(
    snapshot: Snapshot, policy: Policy, *, site: str, orders: Sequence[Action] = (), cut_off: str = ""
) -> Decision:
    """`cut_off` says why jobs that may not go on alone leave now; empty: they need not."""
    snapshot.check()
    draft = snapshot.copy()
    for order in orders:
        draft.issue(order)
    repeated, deadlines = ask_again(draft, policy)
    leaving = _leave(draft, cut_off) if cut_off else []
    stagger = stagger_of(draft, policy)
    response = respond(draft, policy, stagger.lift if stagger is not None else None)
    shared = Shared()
    if policy.power_sharing.is_on:
        shared = share_power(draft, policy, {action.job for action in response.actions}, stagger)
    elif stagger is not None:
        response.actions += stagger.raise_soft()
    draft.derived = None
    thought = (*repeated, *leaving, *response.actions, *shared.actions)
    own = [action if action.id in snapshot.flights else _named(action, site) for action in thought]
    actions = (*orders, *own)
    looks = [*deadlines, *response.looks, *shared.looks, *(stagger.looks if stagger is not None else ())]
    return Decision(
        at=snapshot.at,
        actions=actions,
        verdicts=(*response.verdicts, *shared.verdicts),
        eased=tuple(response.eased),
        pressed=tuple(response.pressed),
        restless=tuple(response.restless),
        revisit_at=min(looks, default=None),
        answer_by=snapshot.at + policy.thresholds.acknowledge_within if actions else None,
        unread_at=next_unread_at(draft, policy.thresholds.reading_max_age),
    )


def is_own(action: Action, site: str) -> bool:
    """Whether an agent thought of it itself."""
    return action.id.startswith(f"{site}:")


def _leave(draft: Snapshot, why: str) -> list[Action]:
    """Save and leave while there is time: whoever may not go on alone, and can."""
    actions = []
    for job_id in sorted(draft.holding):
        job = draft.job(job_id)
        stays = job.request.on_isolation == "continue" or not job.request.checkpoints
        if stays or job.state is not JobState.RUNNING:
            continue
        # It waits in line again: whoever hears of it may let it go on anywhere.
        action = next_action(job, ActionKind.PAUSE, because=why, yields=True)
        draft.issue(action)
        actions.append(action)
    return actions


def _named(action: Action, site: str) -> Action:
    return msgspec.structs.replace(action, id=f"{site}:{action.id}")
