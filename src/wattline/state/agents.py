"""Agents: how do what a site's agent tells, and how its site stands, change the state?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wattline.state import event as events
from wattline.state.attempts import current
from wattline.state.job import ENDED, HOLDING, JobState
from wattline.state.measuring import put_standing
from wattline.state.settling import settle_action
from wattline.state.standing import SiteRecord, is_reached
from wattline.state.tables import Tables

replace = msgspec.structs.replace


def _checkpoint_copied(state: Tables, event: events.CheckpointCopied) -> None:
    job = current(state, event.job, event.attempt)
    if job is None or event.site not in state.plant.sites:
        return
    copies = dict(job.copies)
    copies[event.site] = max(event.step, copies.get(event.site, 0))
    state.put(replace(job, copies=tuple(sorted(copies.items()))))


def _checkpoint_lost(state: Tables, event: events.CheckpointLost) -> None:
    job = state.jobs.get(event.job)
    if job is None or job.state in ENDED or job.saved is None:
        return
    copies = tuple((site, step) for site, step in job.copies if site != event.site)
    job = replace(job, copies=copies)
    if job.saved is not None and job.saved.site == event.site:
        # One that can be had now, where there is one.
        had = [(is_reached(state.sites, site), step, site) for site, step in copies]
        _, step, site = max(had, default=(True, 0, ""))
        saved = replace(job.saved, step=step, site=site, before=min(step, job.saved.before))
        job = replace(job, step=step, saved=saved if had else None)
    if job.state is JobState.PAUSED and not job.asked:  # where it waited for better times there are none now
        job = replace(job, state=JobState.WAITING, since=event.at, rung=-1, clear_since=None)
    state.put(job)


def _site_stood(state: Tables, event: events.SiteStood) -> None:
    if event.site not in state.plant.sites:
        return
    before = state.sites.get(event.site)
    same = before is not None and before.agent == event.agent
    record = SiteRecord(
        site=event.site,
        standing=event.standing,
        since=event.at,
        epoch=event.epoch,
        agent=event.agent,
        heard=before.heard if before is not None and same else 0,
        say=event.say,
    )
    put_standing(state, record)


def _site_heard(state: Tables, event: events.SiteHeard) -> None:
    record = state.sites.get(event.site)
    if record is not None and event.through > record.heard:
        state.put_site(replace(record, heard=event.through))


def _handed(state: Tables, event: events.Handed) -> None:
    """What is here already stays; a job that begins here again is as whoever hands it knows it."""
    *earlier, job = event.jobs
    known = state.jobs.get(job.id)
    if known is not None and (known.attempt >= event.action.attempt or known.state in HOLDING):
        return
    state.put_run(event.run)
    for before in earlier:
        state.put(before)
    state.put(replace(job, state=JobState.WAITING, attempt=event.action.attempt - 1))


def _acted(state: Tables, event: events.Acted) -> None:
    """As if it had been decided here: its answer follows."""
    action = event.action
    if action.id not in state.flights and current(state, action.job, action.attempt) is not None:
        settle_action(state, action, event.at)


def _nothing(_state: Tables, _event: events.SiteAsked) -> None:
    """Whose word it was; what follows from it is a `SiteStood` of its own."""


AGENT_FOLDS: dict[type, Callable[[Tables, Any], None]] = {
    events.CheckpointCopied: _checkpoint_copied,
    events.CheckpointLost: _checkpoint_lost,
    events.SiteStood: _site_stood,
    events.SiteAsked: _nothing,
    events.SiteHeard: _site_heard,
    events.Handed: _handed,
    events.Acted: _acted,
}
