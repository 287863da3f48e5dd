"""Cloud: which regions may take a job, and what does a place there come to, with all that may go wrong?

What is paid: GPU-hours at the price of now, the work that is done twice where machines are taken back, and
what must come back in the end. Carbon by the region's zone, where the facility tells it.
"""

from __future__ import annotations

import math

import msgspec

from wattline.policy.permitting.permission import allowed_models, allowed_regions, judge_budget
from wattline.policy.permitting.pools import most_used
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.placing.price import RESTART_SECONDS
from wattline.spec.policy import Policy, Weights
from wattline.state import JobRequest, Outcome, Place, Plant, Saved, Snapshot, Verdict, compared_hours
from wattline.state.market import brought_back_bytes, egress_usd, gpu_hour_usd, leaving_usd
from wattline.units import SECONDS_PER_HOUR

# Until a job says how often it saves, or has shown how long a save takes; assumed.
_SAVES_EVERY_SECONDS = 1800.0
_SAVE_SECONDS = 30.0
# What the provider takes care of, and nobody here measures.
_NOT_OURS = ("power.", "cooling.", "heat.")


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a job comes to in a region, if it runs as long as it may."""

    site: str
    pool: int
    gpus: int
    usd_per_gpu_hour: float
    gpu_hours: float
    reclaims: float  # expected, over all of it
    reclaim_per_hour: float  # the chance that one of its machines is taken back within an hour
    notice_seconds: float
    rework_seconds: float  # that one of them costs the job
    egress_bytes: float
    egress_usd: float
    kg_co2e: float

    @property
    def compute_usd(self) -> float:
        return self.gpu_hours * self.usd_per_gpu_hour

    @property
    def rework_usd(self) -> float:
        hours = self.rework_seconds / SECONDS_PER_HOUR
        return self.reclaims * hours * self.gpus * self.usd_per_gpu_hour

    @property
    def usd(self) -> float:
        return self.compute_usd + self.rework_usd + self.egress_usd

    def score(self, weights: Weights) -> float:
        """In what the policy weighs places by."""
        return weights.cost * self.usd + weights.carbon * self.kg_co2e

    def say(self) -> str:
        """Such as "spot 2.10 USD/GPU-h, reclaim 4 %/h, egress 3 GB"."""
        chance = f", reclaim {100 * self.reclaim_per_hour:.2g} %/h" if self.reclaim_per_hour else ""
        market = "spot" if self.reclaim_per_hour else "on demand"
        return (
            f"{market} {self.usd_per_gpu_hour:.2f} USD/GPU-h{chance}, egress {self.egress_bytes / 1e9:.3g} GB"
        )


def may_burst(request: JobRequest, policy: Policy) -> bool:
    """Whether a job may go to a cloud at all: GPUs are what is rented."""
    jobs = policy.bursting.jobs
    return request.gpus > 0 and (jobs == "all" or (jobs == "asked" and request.burst))


def cloud_pool(plant: Plant, site: str) -> int:
    """A region has one kind of machine."""
    return plant.pools_of_site[plant.site_numbers[site]][0]


def offers(
    snapshot: Snapshot, policy: Policy, request: JobRequest, saved: Saved | None = None
) -> list[Terms]:
    """What each region that may take a job would come to, the best first."""
    plant, models, regions = snapshot.plant, allowed_models(request, policy), allowed_regions(request, policy)
    found = []
    for site in plant.clouds:
        pool = cloud_pool(plant, site)
        device = plant.pools[pool][1]
        if regions is not None and plant.sites[site].region not in regions:
            continue
        if models is not None and device not in models:
            continue
        found.append(_terms(snapshot, request, site, pool, saved))
    return sorted(found, key=lambda terms: (terms.score(policy.weights), terms.site))


def choose_cloud(
    snapshot: Snapshot, policy: Policy, request: JobRequest, found: list[Terms]
) -> tuple[Choice, Terms] | None:
    """A place in the best of these regions that has one free and that the job's team can pay; None: in none.

    Its verdicts name the numbers: what the provider takes care of is not among them.
    """
    hours = compared_hours(request)
    if request.project in policy.teams:  # said once, not of each machine
        found = [terms for terms in found if _can_pay(snapshot, policy, request, terms)]
    pools = [(terms.score(policy.weights) / hours, terms.pool) for terms in found]
    choice = choose_place(snapshot, policy, request, pools=pools, explain=False)
    if choice.place is None:
        return None
    terms = next(each for each in found if each.site == choice.place.site)
    verdicts = [each for each in choice.verdicts if not each.rule.startswith(_NOT_OURS)]
    return Choice(choice.place, (*judge_terms(terms, request), *verdicts)), terms


def _can_pay(snapshot: Snapshot, policy: Policy, request: JobRequest, terms: Terms) -> bool:
    """Whether a job's team has enough left for a region, wherever in it the job would run."""
    plant = snapshot.plant
    first = plant.spots[plant.bays[plant.bays_of_pool[terms.pool][0]].first].node
    place = Place(terms.site, ((first.name, request.gpus),))
    return all(verdict.allows for verdict in judge_budget(snapshot, request, place, 1.0, policy))


def judge_terms(terms: Terms, request: JobRequest, say: str = "") -> tuple[Verdict, ...]:
    """The numbers of an offer, a verdict for each part of it."""
    numbers = {
        "cloud.price": {
            "each_gpu_hour_usd": terms.usd_per_gpu_hour,
            "asked_gpu_hours": terms.gpu_hours,
            "comes_to_usd": terms.compute_usd,
        },
        "cloud.reclaim": {
            "within_an_hour_fraction": terms.reclaim_per_hour,
            "notice_seconds": terms.notice_seconds,
            "rework_each_seconds": terms.rework_seconds,
            "comes_to_usd": terms.rework_usd,
        },
        "cloud.egress": {"comes_back_bytes": terms.egress_bytes, "comes_to_usd": terms.egress_usd},
    }
    return tuple(
        Verdict(
            rule=rule,
            subject=terms.site,
            outcome=Outcome.ALLOW,
            job=request.job,
            numbers=of_rule,
            say=say if rule == "cloud.price" else "",
        )
        for rule, of_rule in numbers.items()
    )


def _terms(snapshot: Snapshot, request: JobRequest, site: str, pool: int, saved: Saved | None) -> Terms:
    plant, hours = snapshot.plant, compared_hours(request)
    cloud = plant.clouds[site]
    first = plant.bays[plant.bays_of_pool[pool][0]].first
    each = plant.spots[first].node.gpus
    # Machines go whole: one that is taken back takes with it whoever has a GPU of it.
    gpus_at_risk = each * math.ceil(request.gpus / each)
    per_hour = cloud.reclaims_per_gpu_hour * gpus_at_risk
    size_bytes = brought_back_bytes(request, saved)
    egress = leaving_usd(plant, site, size_bytes)
    if saved is not None:
        egress += egress_usd(plant, saved.site, site, saved.size_bytes)
    used = most_used(request, Place(site, ((plant.spots[first].node.name, request.gpus),)), plant)
    return Terms(
        site=site,
        pool=pool,
        gpus=request.gpus,
        usd_per_gpu_hour=gpu_hour_usd(snapshot.readings, plant, site),
        gpu_hours=request.gpus * hours,
        reclaims=per_hour * hours,
        reclaim_per_hour=1.0 - math.exp(-per_hour),
        notice_seconds=cloud.notice_seconds,
        rework_seconds=_rework_seconds(request, saved, cloud.notice_seconds) if per_hour else 0.0,
        egress_bytes=size_bytes,
        egress_usd=egress,
        kg_co2e=used.kg_co2e,
    )


def _rework_seconds(request: JobRequest, saved: Saved | None, notice_seconds: float) -> float:
    """What a reclaim costs a job: nothing is lost that the notice lets it save, half an interval where it
    does not, half of all where it never saves; and it must start again."""
    if not request.checkpoints:
        return compared_hours(request) * SECONDS_PER_HOUR / 2.0 + RESTART_SECONDS
    save_seconds = saved.seconds if saved is not None and saved.seconds else _SAVE_SECONDS
    if save_seconds <= notice_seconds:
        return save_seconds + RESTART_SECONDS
    return (request.saves_every_seconds or _SAVES_EVERY_SECONDS) / 2.0 + RESTART_SECONDS
