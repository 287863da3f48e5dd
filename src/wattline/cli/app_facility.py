"""Commands about facilities, declared; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import FACILITIES, Output, OutputOption

facility_app = typer.Typer(
    no_args_is_help=True, help="What exists, how full it is, and whether its document holds together."
)


@facility_app.command(epilog="Example: wattline facility show three-sites")
def show(
    facility: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PATH",
            help=f"A facility document, or one that ships: {FACILITIES}.",
        ),
    ] = "lab",
    unfold: Annotated[
        bool, typer.Option("--all", metavar="", help="Every rack and node, also those that are alike.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Sites, feeds, loops, racks and nodes with their headroom, and this machine's NVIDIA GPUs."""
    from wattline.cli.command_facility import show_facility

    raise typer.Exit(show_facility(facility, unfold=unfold, as_json=output is Output.JSON))


@facility_app.command(epilog="Example: wattline facility check facility.yaml")
def check(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A facility document.")],
    policy: Annotated[
        str | None, typer.Option(help="Also whether this policy's quotas add up to more than there is.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Whether a facility document is right, what it adds up to, and where it promises more than it has."""
    from wattline.cli.command_facility import check_facility

    raise typer.Exit(check_facility(path, policy, as_json=output is Output.JSON))


@facility_app.command(
    epilog="Example: wattline facility calibrate facility.yaml --telemetry march.csv.gz --write fitted.yaml"
)
def calibrate(
    facility: Annotated[
        str, typer.Argument(metavar="NAME|PATH", help="A facility document, or one that ships.")
    ],
    telemetry: Annotated[
        Path,
        typer.Option(
            help="Readings: CSV (at,subject,quantity,value) or JSON lines, also .gz; a state folder."
        ),
    ],
    write: Annotated[
        Path | None, typer.Option(help="Where to write the document with the fitted figures; a new file.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """What telemetry says about resistances, time constants, draw and caps, and what it cannot tell."""
    from wattline.cli.command_calibrate import calibrate_facility

    as_json = output is Output.JSON
    raise typer.Exit(calibrate_facility(facility, telemetry=telemetry, write=write, as_json=as_json))
