"""The observe command, declared; it imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

observe_app = typer.Typer()


@observe_app.command(
    epilog="Example: wattline observe --slurm --prometheus http://prometheus:9090 --racks racks.csv"
)
def observe(
    slurm: Annotated[
        bool, typer.Option("--slurm", metavar="", help="Ask the Slurm that this machine is a client of.")
    ] = False,
    prometheus: Annotated[
        str | None, typer.Option(metavar="URL", help="Where DCGM series are kept: http://host:9090.")
    ] = None,
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back to look.")] = "7d",
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Where the window ends; now, unless said (ISO 8601).")
    ] = None,
    sacct: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Saved accounting (sacct --parsable2), not asked.")
    ] = None,
    scontrol: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `scontrol show` printed, not asked.")
    ] = None,
    racks: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Who stands where: node,rack[,pdu,loop,row,site,cap].")
    ] = None,
    facility: Annotated[
        str | None, typer.Option(metavar="FILE", help="The facility's document, instead of proposing one.")
    ] = None,
    gpu: Annotated[
        str, typer.Option(metavar="MODEL", help="What all GPUs are, where neither GRES nor DCGM says.")
    ] = "",
    match: Annotated[
        str,
        typer.Option(metavar="LABELS", help='Narrows every series, where others are kept too: cluster="a".'),
    ] = "",
    secret_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Holds the bearer token of the Prometheus.")
    ] = None,
    write_facility: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the proposed facility there; a new file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page with figures and pictures.")
    ] = None,
    no_replay: Annotated[
        bool, typer.Option("--no-replay", metavar="", help="Leave out what Wattline would have decided.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """What did a cluster lose, and what would Wattline have decided? Looks only; nothing is changed."""
    from wattline.cli.command_observe import ObserveAsked, observe_cluster

    asked = ObserveAsked(
        slurm=slurm,
        prometheus=prometheus,
        since=since,
        until=until,
        sacct=sacct,
        scontrol=scontrol,
        racks=racks,
        facility=facility,
        gpu=gpu,
        match=match,
        secret_file=secret_file,
        write_facility=write_facility,
        html=html,
        replays=not no_replay,
    )
    raise typer.Exit(observe_cluster(asked, as_json=output is Output.JSON))
