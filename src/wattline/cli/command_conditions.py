"""The status of a site: what room is left, in kilowatts and minutes, and who would still fit?"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.remote import find_server, path_part
from wattline.plane.conditions import describe_conditions, find_conditions
from wattline.plane.finding import open_view
from wattline.plane.moments import clock
from wattline.policy import SiteConditions

_MOST_RACKS = 5


def show_conditions(site: str, *, as_json: bool) -> int:
    server = find_server()
    if server is not None:
        server.show(f"/api/v1/sites/{path_part('site', site)}/conditions", as_json=as_json)
        return 0
    with open_view() as view:
        conditions = find_conditions(view, site)
        if as_json:
            print_json(describe_conditions(conditions))
        else:
            print_conditions(stdout_console(), conditions)
    return 0


def print_conditions(console: Console, conditions: SiteConditions) -> None:
    note = ", emulated" if conditions.emulated else ""
    console.print(
        Text.assemble(
            (conditions.site, "bold"),
            f"  {conditions.gpus_free:,} of {conditions.gpus:,} GPUs free, {clock(conditions.at)}{note}",
        )
    )
    agent = conditions.agent
    if agent is not None:
        stands = Text(str(agent.standing), style="" if agent.takes_work else "yellow")
        since = f" since {clock(agent.since)}, lease epoch {agent.epoch}: {plain(agent.say)}"
        console.print(Text.assemble("stands as ", stands, since))
    if conditions.others_gpus:
        console.print(f"GPUs that others hold, not through Wattline: {conditions.others_gpus:,}")
    if conditions.nodes_off:
        console.print(f"nodes that are off: {conditions.nodes_off:,}")
    if not conditions.caps_power:
        console.print("nothing here sets power limits: no job is capped", style="dim")
    pressing = set(conditions.say)
    for say in conditions.say:
        console.print(Text.assemble(("! ", "yellow"), plain(say)))
    racks = 0
    for room in conditions.rooms:
        if room.kind == "rack":
            racks += 1
            if racks > _MOST_RACKS:
                continue
        if room.say not in pressing:
            console.print(f"  {plain(room.say)}")
    if racks > _MOST_RACKS:
        console.print(f"  {racks - _MOST_RACKS:,} more racks with more left", style="dim")
