"""Pricing: how much training would the money for one save pay for?

What is kept takes the same room however often it is saved, so storage decides nothing. Copies to other sites
are paid for each time.
"""

from __future__ import annotations

from wattline.checkpoint.cadence import price_in_seconds
from wattline.state import Job, Place, Plant
from wattline.units import SECONDS_PER_HOUR


def price_save_seconds(job: Job, place: Place, plant: Plant) -> float:
    """Zero until a save has shown its size, and where copies cost nothing or the GPUs have no price."""
    device = plant.spots[plant.node_number[place.nodes[0][0]]].node.device
    links = [plant.links.get(frozenset((place.site, site))) for site in job.request.replicate_to]
    usd_per_gigabyte = sum(link.usd_per_gigabyte for link in links if link is not None)
    if job.saved is None or device is None or not device.usd_per_hour or not job.request.gpus:
        return 0.0
    return price_in_seconds(
        job.saved.size_bytes / 1e9 * usd_per_gigabyte,
        gpu_second_usd=device.usd_per_hour / SECONDS_PER_HOUR,
        gpus=job.request.gpus,
    )
