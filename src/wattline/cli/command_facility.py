"""The facility commands: what exists and how full it is, and whether a document holds together."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.text import Text

from wattline.cli.facility_facts import describe_facts, read_facts
from wattline.cli.facility_review import Review, review_facility
from wattline.cli.facility_tree import facility_tree
from wattline.cli.printing import columns, plain, print_json, stdout_console
from wattline.policy.explaining.reviewing import review_policy
from wattline.spec import read_facility, read_policy
from wattline.state import Plant
from wattline.telemetry.nvml import NvmlDevice, nvml_unavailable_reason, read_nvml_devices
from wattline.units import format_celsius, format_watts

_WIDE_CELLS = 100


def show_facility(name_or_path: str, *, unfold: bool, as_json: bool) -> int:
    facts = read_facts(name_or_path)
    devices = read_nvml_devices()
    reason = None if devices else nvml_unavailable_reason() or "the driver answers and counts no GPU"
    if as_json:
        print_json({**describe_facts(facts), "nvml": {"devices": devices, "reason": reason}})
        return 0
    console = stdout_console()
    console.print(facility_tree(facts, bar_cells=20 if console.width >= _WIDE_CELLS else 10, unfold=unfold))
    _show_devices(console, devices, reason)
    return 0


def check_facility(path: str, policy: str | None = None, *, as_json: bool) -> int:
    facility = read_facility(path)
    review = review_facility(facility)
    if policy is not None:
        found = review_policy(read_policy(policy), Plant(facility))
        review = replace(review, warnings=(*review.warnings, *found))
    if as_json:
        print_json({"source": facility.source, "outcome": "pass", "review": review})
    else:
        _show_review(stdout_console(), review)
    return 0


def _show_devices(console: Console, devices: list[NvmlDevice], reason: str | None) -> None:
    if reason is not None:
        console.print(f"NVIDIA GPUs of this machine: none ({plain(reason)})", style="dim")
        return
    table = columns("gpu", "name", "power", "limit", "temperature", last_ratio=False)
    for device in devices:
        table.add_row(
            str(device.index),
            plain(device.name or device.fault or "not known"),
            "" if device.power_watts is None else format_watts(device.power_watts),
            "" if device.limit_watts is None else format_watts(device.limit_watts),
            "" if device.celsius is None else format_celsius(device.celsius),
        )
    console.print(Text("NVIDIA GPUs of this machine (measured)", style="bold"))
    console.print(table)


def _show_review(console: Console, review: Review) -> None:
    sites = "1 site" if len(review.sites) == 1 else f"{len(review.sites)} sites"
    console.print(
        Text.assemble(
            (review.facility, "bold"),
            f"  {sites}, {review.gpus:,} GPUs; the document is right",
        )
    )
    table = columns("site", "meters", "racks", "nodes", "GPUs", "flat out", "feeds", "loops", "over")
    for site in review.sites:
        ratios = (site.feed_oversubscription, site.loop_oversubscription, site.rack_oversubscription)
        table.add_row(
            site.site,
            site.telemetry,
            str(site.racks),
            str(site.nodes),
            str(site.gpus),
            format_watts(site.nameplate_watts),
            format_watts(site.feed_watts),
            format_watts(site.loop_watts),
            " ".join(f"{ratio:.3g}" for ratio in ratios),
        )
    console.print(table)
    console.print("over: flat out by cap, of the worst feed or PDU, loop and rack", style="dim")
    for warning in review.warnings:
        console.print(Text.assemble(("! ", "yellow"), warning))
