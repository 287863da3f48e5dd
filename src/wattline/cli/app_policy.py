"""Commands about policies, declared; each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from wattline.cli.options import POLICIES, Output, OutputOption

policy_app = typer.Typer(
    no_args_is_help=True,
    help="Policies as files that are tested, compared, tried in shadow and put in force.",
)

PolicyArgument = Annotated[
    str, typer.Argument(metavar="FILE", help=f"A policy document, or one that ships: {POLICIES}.")
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="From then on: 2026-05-01T14:20Z, or -2d; all that was recorded unless given."
    ),
]


@policy_app.command(
    "test", epilog="Example: wattline policy test strict.yaml --since -7d --scenario pump-trip"
)
def try_policy(
    file: PolicyArgument,
    since: SinceOption = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|PATH",
            help="A scenario, as for twin scenario; may be given more than once. burst, feed-loss, "
            "grid-event and pump-trip unless given; none for history alone.",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """What a policy would have done to recorded jobs, and does in scenarios; 1 if it would start nothing."""
    from wattline.cli.command_policy_test import test_policy

    as_json = output is Output.JSON
    raise typer.Exit(test_policy(file, since=since, scenarios=scenario or (), as_json=as_json))


@policy_app.command("diff", epilog="Example: wattline policy diff strict.yaml --since -7d")
def diff(
    first: Annotated[
        str, typer.Argument(metavar="FILE", help="A policy: against the one in force, or against SECOND.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="[SECOND]", help="With it, FILE is what SECOND is held against.")
    ] = None,
    since: SinceOption = None,
    seeds: Annotated[
        int,
        typer.Option(help="How many runs of each in the twin; 0 for decisions alone.", min=0, max=100),
    ] = 3,
    output: OutputOption = Output.TEXT,
) -> None:
    """Which recorded decisions would have differed, and what that costs."""
    from wattline.cli.command_policy_diff import diff_policies

    as_json = output is Output.JSON
    raise typer.Exit(diff_policies(first, second, since=since, seeds=seeds, as_json=as_json))


@policy_app.command(
    "canary", epilog="Example: wattline policy canary strict.yaml && wattline policy canary status"
)
def canary(
    asked: Annotated[
        str,
        typer.Argument(metavar="FILE|status|stop", help="A policy to try; or how one fares; or its end."),
    ],
    share: Annotated[
        str | None,
        typer.Option(help="It decides for so many of the GPUs, in whole racks, such as 10%; not in shadow."),
    ] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="… or for this site; may be given more than once."),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="… or for this rack or node; may be given more than once."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Let a candidate decide in shadow, where nothing of it is done, or for a share of the nodes."""
    from wattline.cli.command_policy_canary import run_canary

    on = (*(site or ()), *(nodes or ()))
    raise typer.Exit(run_canary(asked, share=share, on=on, as_json=output is Output.JSON))


@policy_app.command(
    "promote",
    epilog="Example: wattline policy promote strict.yaml --approved-by ada --because 'see review 12'",
)
def promote(
    file: PolicyArgument,
    approved_by: Annotated[str, typer.Option(help="Who approved it.")],
    because: Annotated[str, typer.Option(help="Why, for whoever reads the history.")],
    output: OutputOption = Output.TEXT,
) -> None:
    """Put a policy in force here, for every run that names none."""
    from wattline.cli.command_policy import promote_policy

    as_json = output is Output.JSON
    raise typer.Exit(promote_policy(file, approved_by=approved_by, because=because, as_json=as_json))


@policy_app.command(
    "rollback", epilog="Example: wattline policy rollback --because 'nothing starts any more'"
)
def rollback(
    because: Annotated[str, typer.Option(help="Why, for whoever reads the history.")] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take the policy in force back in one step, to the one before it."""
    from wattline.cli.command_policy import rollback_policy

    raise typer.Exit(rollback_policy(because=because, as_json=output is Output.JSON))


@policy_app.command("show", epilog="Example: wattline policy show --output json")
def show(output: OutputOption = Output.TEXT) -> None:
    """Which policy is in force here, and how that came."""
    from wattline.cli.command_policy import show_policy

    raise typer.Exit(show_policy(as_json=output is Output.JSON))
