"""Which number each reading changes: draw and caps in the ledger, heat in the conditions.

What the readings leave behind does not depend on the order in which they came.
"""

from __future__ import annotations

import math

from wattline.physics import predict_capacity_watts
from wattline.state.market import GPU_HOUR_PRICE
from wattline.state.plant import Plant
from wattline.state.standing import SiteRecord
from wattline.state.tables import Tables

_DRAWN = frozenset({"rack_watts", "supply_watts", "loop_heat_watts"})
_CAPS = ("cap_watts", "cap_bits_per_second")
OTHERS_GPUS = "others_gpus"
"""Of a node: how many GPUs somebody holds there whom Wattline did not start."""
LEASED = "lease_watts"  # what a site may carry of a feed or a loop, whatever that could carry itself
_OF_GPUS = frozenset({"gpu_celsius", "gpu_watts"})


def fold_reading(state: Tables, subject: str, quantity: str, value: float, at: float) -> None:
    """Readings of things this facility does not have are kept and change nothing."""
    if quantity in _OF_GPUS:
        node = node_of_gpu(state.plant, subject)
        if node is not None:
            _fold_gpu(state, node, quantity, value, at)
        return
    if quantity in _DRAWN:
        resource = state.plant.resource_number.get(subject)
        if resource is not None:
            _fold_drawn(state, resource, value, at)
        return
    if quantity == "node_up":
        node = state.plant.node_number.get(subject)
        if node is not None:
            state.ledger.set_up(node, is_up=is_node_up(state, subject))
        return
    if quantity == OTHERS_GPUS:
        node = state.plant.node_number.get(subject)
        if node is not None:
            _fold_others(state, node, int(value))
        return
    if quantity == GPU_HOUR_PRICE:
        if subject in state.plant.clouds:  # who waited for a better price may go now
            state.ledger.loosened.add(state.plant.site_numbers[subject])
        return
    resource = state.plant.resource_number.get(subject)
    if resource is None:
        return
    conditions = state.conditions
    if quantity == "coolant_celsius":
        muted = resource in state.ledger.mute
        _loosen(state, resource, conditions.coolant_celsius.get(resource), value, muted=muted)
        conditions.coolant_celsius[resource] = (value, at)
        state.ledger.touched.add(resource)
    elif quantity == "supply_celsius":
        conditions.supply_celsius[resource] = value
        state.ledger.touched.add(resource)
        state.ledger.relieve(resource)
    elif quantity in _CAPS or quantity in ("flow_fraction", LEASED):
        _fold_cap(state, subject, resource)


def node_of_gpu(plant: Plant, subject: str) -> int | None:
    """The node of `node/gpu0`; None where this facility has none of that name."""
    known = plant.node_of_gpu.get(subject)
    if known is None:
        known = plant.node_number.get(subject.rsplit("/gpu", 1)[0])
        if known is not None:
            plant.node_of_gpu[subject] = known
    return known


def _fold_drawn(state: Tables, resource: int, value: float, at: float) -> None:
    ledger = state.ledger
    read_at = ledger.read_at(resource)
    if read_at is not None:
        state.doubt(state.plant.site_number_of_resource[resource], read_at)
    was_believed = read_at is not None and read_at >= state.decided_at
    ledger.measure(resource, value, at, was_believed=was_believed)


def put_standing(state: Tables, record: SiteRecord) -> None:
    """Where an agent does not hold its lease, nothing begins; what runs there runs on."""
    state.put_site(record)
    for node in state.plant.nodes_of_site.get(record.site, ()):
        state.ledger.set_up(node, is_up=is_node_up(state, state.plant.spots[node].node.name))


def is_node_up(state: Tables, name: str) -> bool:
    """Whether a node takes work: it was not said to be off, nobody has taken it back, its site is reached."""
    said, reclaim = state.readings.get((name, "node_up")), state.reclaims.get(name)
    if state.sites:
        site = state.sites.get(state.plant.spots[state.plant.node_number[name]].site.name)
        if site is not None and not site.takes_work:
            return False
    return (said is None or said[0] > 0.0) and (reclaim is None or reclaim.leaves_at is None)


def _fold_others(state: Tables, node: int, gpus: int) -> None:
    """They may draw all that their GPUs can: nobody promised anything less."""
    spot = state.plant.spots[node]
    gpus = min(max(0, gpus), spot.node.gpus)
    before = state.ledger.others.get(node, 0)
    if gpus == before or spot.node.device is None:
        return
    each_watts = spot.node.device.limit_watts - spot.node.device.idle_watts
    amounts = [
        (resource, math.ceil(share * gpus * each_watts) - math.ceil(share * before * each_watts))
        for resource, share in (*spot.power, (spot.loop_resource, 1.0))
    ]
    state.ledger.set_others(node, gpus, amounts)


def _fold_gpu(state: Tables, node: int, quantity: str, value: float, at: float) -> None:
    columns, is_heat = state.conditions, quantity == "gpu_celsius"
    column = columns.node_celsius if is_heat else columns.node_gpu_watts
    before = column.get(node)
    worst = value
    if before is not None:
        if at < before[1]:
            return
        # One node's GPUs arrive one by one: keep the worst of one moment.
        if before[1] == at and before[0] > value:
            worst = before[0]
    muted = node in columns.mute
    if muted:
        columns.speak_again(node, state.plant.spots[node].loop_resource)
    if before is not None:
        del column[node]  # the last that was read is the last in line
    column[node] = (worst, at)
    columns.touched.add(node)
    if is_heat:
        _loosen(state, state.plant.spots[node].power[0][0], before, worst, muted=muted)


def fold_silence(state: Tables, subject: str, quantity: str) -> None:
    """A meter said that it cannot read: its site no longer vouches for what it said before."""
    if quantity in _OF_GPUS:
        node = node_of_gpu(state.plant, subject)
        if node is not None:
            state.conditions.fall_silent(node, state.plant.spots[node].loop_resource)
            state.conditions.touched.add(node)
    elif quantity in _DRAWN:
        resource = state.plant.resource_number.get(subject)
        if resource is not None:
            state.ledger.set_mute(resource, is_mute=True)
            state.ledger.touched.add(resource)


def _fold_cap(state: Tables, subject: str, resource: int) -> None:
    """A cap is what was last said of it; a loop's is what its flow leaves of that."""
    said = [state.readings[subject, quantity] for quantity in _CAPS if (subject, quantity) in state.readings]
    cap = max(said, key=lambda reading: reading[1])[0] if said else float(state.plant.resources[resource].cap)
    leased = state.readings.get((subject, LEASED))
    if leased is not None:
        cap = min(cap, leased[0])
    flow = state.readings.get((subject, "flow_fraction"))
    if flow is not None and resource in state.plant.loop_of_resource:
        left = max(0.0, flow[0])
        state.conditions.flow_fraction[resource] = left
        state.ledger.relieve(resource)
        cap = predict_capacity_watts(cap, left)
    state.ledger.set_cap(resource, int(cap))


def _loosen(
    state: Tables, resource: int, before: tuple[float, float] | None, celsius: float, *, muted: bool
) -> None:
    """What is cooler than it was, or was not known, may take what it could not take before."""
    if before is not None:
        site = state.plant.site_number_of_resource[resource]
        state.doubt(site, before[1] if muted else max(before[1], state.ledger.heard(site)))
    if before is None or celsius < before[0]:
        state.ledger.relieve(resource)
