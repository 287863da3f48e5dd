"""Capping: can a job be capped where it is? Only where something sets power limits."""

from __future__ import annotations

from wattline.policy.giving_way.relief import ladder_of
from wattline.spec.ladder import RungKind
from wattline.spec.policy import Policy
from wattline.state import Job, Outcome, Plant, Snapshot, Verdict

_RULE = "ladder.cap_power"


def may_cap(plant: Plant, site: str) -> bool:
    """Whether power limits can be set at a site."""
    return plant.sites[site].caps_power


def capping_sites(plant: Plant) -> list[str] | None:
    """The sites where jobs can be capped; None: all of them."""
    sites = [name for name, site in plant.sites.items() if site.caps_power]
    return None if len(sites) == len(plant.sites) else sites


def judge_capping(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Verdict, ...]:
    """A word to whose ladder has a cap that is not offered where the job is."""
    site = job.place.site if job.place is not None else ""
    if not site or may_cap(snapshot.plant, site):
        return ()
    if not any(rung.kind is RungKind.CAP_POWER for rung in ladder_of(job, policy)):
        return ()
    return (
        Verdict(
            rule=_RULE,
            subject=site,
            outcome=Outcome.WARN,
            job=job.id,
            say=f"cap_power is not offered: nothing at {site} sets power limits",
            change=f"power_caps of {site} in the facility document",
        ),
    )
