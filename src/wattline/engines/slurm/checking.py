"""Checking: does Slurm have the nodes, GPUs, partition and license that the facility document speaks of?

Where they contradict each other, neither is believed: a person says which one is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from wattline.engines.slurm.cluster import Cluster
from wattline.engines.slurm.listing import SlurmNode
from wattline.errors import DocumentError, Problem
from wattline.facility import Node, Site

_MOST_PROBLEMS = 20


def check_site(site: Site, cluster: Cluster, facility: str) -> None:
    """Raise with every contradiction, up to a number that can be read."""
    nodes = cluster.nodes(site.slurm.partition)
    licenses = cluster.licenses() if site.slurm.power_license else frozenset()
    problems = list(problems_of(site, nodes, licenses, f"facility {facility}"))
    if problems:
        raise DocumentError(*problems[:_MOST_PROBLEMS])


def problems_of(
    site: Site, nodes: dict[str, SlurmNode], licenses: frozenset[str], file: str
) -> Iterator[Problem]:
    """What the document says and Slurm does not."""
    partition = site.slurm.partition
    where = f"Slurm's partition {partition}" if partition else "Slurm"
    if not nodes:
        yield Problem(file=file, field=f"sites.{site.name}.slurm", message=f"{where} has no nodes")
        return
    for rack in site.racks:
        for node in rack.nodes:
            host = node.hostname
            field = f"sites.{site.name}.racks.{rack.name.rpartition('/')[2]}.nodes"
            found = nodes.get(host)
            if found is None:
                near = get_close_matches(host, nodes, n=1)
                yield Problem(
                    file=file,
                    field=f"{field}.hosts",
                    message=f"{where} has no node of this name, which {node.name} is said to be",
                    value=host,
                    nearest=near[0] if near else None,
                )
            else:
                yield from _differences(node, found, file, field)
    name = site.slurm.power_license
    if name and name not in licenses:
        message = "Slurm has no license of this name"
        yield Problem(file=file, field=f"sites.{site.name}.slurm.power_license", message=message, value=name)


def _differences(node: Node, found: SlurmNode, file: str, field: str) -> Iterator[Problem]:
    for name, said, true in (("gpus", node.gpus, found.gpus), ("cpus", node.cpus, found.cpus)):
        if said > true or (name == "gpus" and said != true):
            message = f"{node.name} is {found.host} in Slurm, which has {true} {name}"
            yield Problem(file=file, field=f"{field}.{name}", message=message, value=str(said))
