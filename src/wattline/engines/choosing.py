"""Choosing: which engines does a facility name, and do they agree with what it says?"""

from __future__ import annotations

from collections.abc import Collection

from wattline.engines.contract import Engine, LeasedEngine
from wattline.engines.local import LocalEngine
from wattline.engines.routing import RoutedEngine
from wattline.engines.slurm import SlurmClient, SlurmDownError, SlurmEngine, SlurmOptions, SlurmRest
from wattline.engines.slurm.checking import check_site
from wattline.engines.slurm.cluster import Cluster
from wattline.facility import Facility, Site


def engines_of(facility: Facility, *, was_checked: bool = False, agents: Collection[str] = ()) -> Engine:
    """One engine for all sites; a facility that contradicts one of them is refused before anything starts.

    Where the same document was in force before, a Slurm that is away keeps nobody from the other sites. What
    agents run is theirs to ask.
    """
    local = LocalEngine()
    by_site: dict[str, Engine] = {
        site.name: local
        if site.engine == "local"
        else slurm_engine_of(site, facility.name, was_checked=was_checked)
        for site in facility.sites
        if site.name not in agents
    }
    engines = set(by_site.values()) or {local}
    return engines.pop() if len(engines) == 1 else RoutedEngine(by_site)


def leased_engine_of(site: Site, facility: str, *, was_checked: bool = False) -> LeasedEngine:
    """For an agent: what runs at its site goes on without it for as long as its lease."""
    return (
        LocalEngine() if site.engine == "local" else slurm_engine_of(site, facility, was_checked=was_checked)
    )


def slurm_engine_of(
    site: Site, facility: str, cluster: Cluster | None = None, *, was_checked: bool = False
) -> SlurmEngine:
    """A site's Slurm, once it was asked for the nodes that the document names."""
    is_away, rest = False, site.slurm.rest
    if cluster is None:
        cluster = SlurmClient() if rest is None else SlurmRest(rest)
    try:
        check_site(site, cluster, facility)
    except SlurmDownError:
        if not was_checked:
            raise
        is_away = True  # what it tells first is that it does not answer
    slurm = site.slurm
    engine = SlurmEngine(
        SlurmOptions(
            partition=slurm.partition,
            account=slurm.account,
            user=slurm.user,
            license=slurm.power_license,
            watts_per_license=slurm.watts_per_license,
            python=slurm.python,
            extra=slurm.sbatch,
            properties={} if rest is None else dict(rest.job),
            hosts={node.name: node.hostname for rack in site.racks for node in rack.nodes},
        ),
        cluster,
    )
    if not is_away:
        engine.look_now()
    return engine
