"""Packing: on which free GPUs would a job go, where nothing but their number counts?

Racks and switches are not looked at; a job that must stay on one node does. Pools (GPUs of one kind at one
site) are tried in the facility's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from wattline.state import ONE_NODE, JobRequest, Place, Plant, Snapshot, Verdict


def find_tightest(snapshot: Snapshot, request: JobRequest) -> Iterator[Place]:
    """In each pool the node it fits best; where none holds it the roomiest nodes, so that few are shared."""
    for pool in pools_for(snapshot.plant, request):
        node = _fits_best(snapshot, request, pool)
        if node is not None:
            yield _place(snapshot, pool, {node: request.gpus})
        elif (place := choose_roomiest(snapshot, request, pool)) is not None:
            yield place


def choose_roomiest(snapshot: Snapshot, request: JobRequest, pool: int) -> Place | None:
    """The nodes of a pool with most GPUs free. The first carries the job's CPUs."""
    if snapshot.free_in(pool) < request.gpus:
        return None
    one_node = request.locality in ONE_NODE
    taken: dict[int, int] = {}
    left = request.gpus
    for count in range(snapshot.plant.biggest_of_pool[pool], -1, -1):
        for node in snapshot.nodes_with(pool, count):
            if not taken and snapshot.cpus_free(node) < request.cpus:
                continue
            if count == 0 < left or (one_node and count < left):
                return None
            taken[node] = min(left, count)
            left -= taken[node]
            if left == 0:
                return _place(snapshot, pool, taken)
    return None


def pools_for(plant: Plant, request: JobRequest) -> tuple[int, ...]:
    """Where a job would fit if nothing else ran."""
    return _pools_for(
        plant,
        request.gpus,
        request.cpus,
        request.gpu_models,
        request.residency,
        request.locality in ONE_NODE,
    )


def pool_of(plant: Plant, place: Place) -> int:
    return plant.pool_of(place.nodes[0][0])


def judge_size(plant: Plant, request: JobRequest) -> Verdict | None:
    """A refusal for what no pool holds even when it is empty; None where one does."""
    if pools_for(plant, request):
        return None
    return Verdict.refuse(
        "gpus",
        ", ".join(plant.sites),
        change="ask for less",
        asked_gpus=float(request.gpus),
        most_gpus=float(max(gpus_of_pools(plant), default=0)),
    )


@lru_cache(maxsize=8)
def gpus_of_pools(plant: Plant) -> tuple[int, ...]:
    """GPUs of each pool, free or not."""
    gpus = [0] * len(plant.pools)
    for spot in plant.spots:
        gpus[spot.pool] += spot.node.gpus
    return tuple(gpus)


@lru_cache(maxsize=4096)
def _pools_for(
    plant: Plant,
    gpus: int,
    cpus: float,
    models: tuple[str, ...],
    residency: tuple[str, ...],
    one_node: bool,
) -> tuple[int, ...]:
    able = {  # pools with a node that can carry the job's CPUs, and all its GPUs if it must
        spot.pool
        for spot in plant.spots
        if spot.node.cpus >= cpus and (spot.node.gpus >= gpus or not one_node)
    }
    return tuple(
        pool
        for pool, (site, device) in enumerate(plant.pools)
        if pool in able
        and site not in plant.clouds
        and gpus_of_pools(plant)[pool] >= gpus
        and (not models or device in models)
        and (not residency or plant.sites[site].region in residency)
    )


def _fits_best(snapshot: Snapshot, request: JobRequest, pool: int) -> int | None:
    for count in range(request.gpus, snapshot.plant.biggest_of_pool[pool] + 1):
        for node in snapshot.nodes_with(pool, count):
            if snapshot.cpus_free(node) >= request.cpus:
                return node
    return None


def _place(snapshot: Snapshot, pool: int, taken: dict[int, int]) -> Place:
    spots = snapshot.plant.spots
    nodes = tuple((spots[node].node.name, gpus) for node, gpus in taken.items())
    return Place(snapshot.plant.pools[pool][0], nodes)
