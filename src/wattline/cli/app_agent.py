"""`wattline agent` and `wattline site`, declared."""

from __future__ import annotations

from typing import Annotated

import typer

from wattline.cli.options import Output, OutputOption

agent_app = typer.Typer()
site_app = typer.Typer(no_args_is_help=True, help="What a person says of a site that has an agent.")

SiteArgument = Annotated[str, typer.Argument(help="The site, as the facility calls it.")]


@agent_app.command(epilog="Example: wattline agent --site frankfurt --server https://wattline.example.org")
def agent(
    site: Annotated[str, typer.Option("--site", help="The site of the facility that this agent runs.")],
    server: Annotated[
        str,
        typer.Option(
            "--server", envvar="WATTLINE_URL", help="The control plane; several servers with commas between."
        ),
    ],
    receive: Annotated[
        str | None,
        typer.Option(
            "--receive",
            metavar="HOST:PORT",
            help="Take checkpoints of other sites here; all share WATTLINE_RECEIVER_TOKEN.",
        ),
    ] = None,
) -> None:
    """Run one site: pull what it is to do, tell what happens, keep its limits when it is cut off."""
    from wattline.cli.command_agent import run_agent

    raise typer.Exit(run_agent(site, server, receive=receive))


@site_app.command("give-up", epilog="Example: wattline site give-up frankfurt")
def give_up(site: SiteArgument, output: OutputOption = Output.TEXT) -> None:
    """Say that nothing runs at a site any more, whatever its agent thinks: all it held may go on elsewhere.

    Only after somebody made sure: a job that still runs there would run twice, though only one of them can
    publish.
    """
    from wattline.cli.command_site import say_of_site

    raise typer.Exit(say_of_site(site, "give_up", as_json=output is Output.JSON))


@site_app.command(epilog="Example: wattline site reviewed frankfurt")
def reviewed(site: SiteArgument, output: OutputOption = Output.TEXT) -> None:
    """Say that what should have ended at a site was looked at: it takes work again."""
    from wattline.cli.command_site import say_of_site

    raise typer.Exit(say_of_site(site, "reviewed", as_json=output is Output.JSON))
