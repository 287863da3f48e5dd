"""Commands that ask the twin, declared; each imports what it needs when it runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import FACILITIES, PLANS, POLICIES, SCENARIOS, Output, OutputOption

_FIRST_DAY = "2024-01-01"

twin_app = typer.Typer(no_args_is_help=True, help="Ask a facility in software before you ask the real one.")


class TruthChoice(StrEnum):
    PERTURBED = "perturbed"
    EXACT = "exact"


TraceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help="Recorded jobs: Philly, Pollux, Gavel, SWF, Slurm accounting, plain or .gz; or a state folder.",
    ),
]
FacilityOption = Annotated[str, typer.Option(help=f"A facility document, or one that ships: {FACILITIES}.")]
ScaleOption = Annotated[float, typer.Option(help="How many times as fast jobs arrive.")]
SkipOption = Annotated[float, typer.Option(help="Leave out the first days of the trace.")]
MostJobsOption = Annotated[
    int | None, typer.Option(help="Replay no more jobs than this; all by default.", min=1)
]
TruthOption = Annotated[
    TruthChoice,
    typer.Option(help="May the facility and its meters differ from what its document says?"),
]


def _seconds(text: str) -> float:
    from wattline.units import DURATION, QuantityError

    try:
        seconds = DURATION.parse(text)
    except QuantityError as error:
        raise typer.BadParameter(str(error)) from error
    if not seconds:
        raise typer.BadParameter("nothing happens in no time; give it some, such as 36h")
    return seconds


UntilOption = Annotated[
    float | None,
    typer.Option(
        parser=_seconds,
        metavar="DURATION",
        help="Stop after so long in the twin, such as 36h; by default, when all jobs have ended.",
    ),
]


def _day(text: str) -> float:
    from wattline.spec.quantities import parse_day

    try:
        return parse_day(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


BeginsOption = Annotated[
    float,
    typer.Option(
        "--begins",
        parser=_day,
        metavar="DAY",
        help="The day on which the twin begins, for weather, prices and carbon.",
    ),
]


@twin_app.callback()
def _group() -> None:
    """Ask a facility in software before you ask the real one."""


@twin_app.command(
    epilog="Example: wattline twin replay philly.csv.gz --facility three-sites --skip-days 20 --plots out"
)
def replay(
    trace: TraceArgument,
    facility: FacilityOption = "three-sites",
    policy: Annotated[
        str,
        typer.Option(
            help=f"A policy document, one that ships ({POLICIES}), or what people run today: "
            "fifo, easy, tiresias, power-blind."
        ),
    ] = "default",
    arrival_scale: ScaleOption = 1.0,
    skip_days: SkipOption = 0.0,
    most_jobs: MostJobsOption = None,
    seed: Annotated[int, typer.Option(help="For what is random: truth, meters, what jobs draw.")] = 0,
    truth: TruthOption = TruthChoice.PERTURBED,
    until: UntilOption = None,
    begins: BeginsOption = _FIRST_DAY,  # type: ignore[assignment]
    slo: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SLOs to count on what happens: a document with `slos`."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write pictures there, one for each question.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page that holds figures and pictures.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replay recorded jobs on a facility under a policy: waits, energy, heat, cost and carbon."""
    from wattline.cli.command_replay import replay_trace
    from wattline.twin.replaying import Question

    question = Question(
        trace=trace,
        facility=facility,
        policy=policy,
        arrival_scale=arrival_scale,
        skip_days=skip_days,
        most_jobs=most_jobs,
        seed=seed,
        exact=truth is TruthChoice.EXACT,
        until_seconds=until,
        begins_at=begins,
        slo=slo,
    )
    raise typer.Exit(replay_trace(question, plots=plots, html=html, as_json=output is Output.JSON))


@twin_app.command(
    epilog="Example: wattline twin compare philly.csv.gz --policy easy --policy default --jobs 2"
)
def compare(
    trace: TraceArgument,
    policy: Annotated[
        list[str],
        typer.Option(help="As for replay; two or more. Differences are against the first."),
    ],
    facility: FacilityOption = "three-sites",
    seeds: Annotated[
        int,
        typer.Option(help="How many runs of each policy; each begins with another seed.", min=1, max=1000),
    ] = 5,
    seed: Annotated[int, typer.Option(help="The first of these seeds.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="How many runs at once.", min=1, max=256)] = 1,
    arrival_scale: ScaleOption = 1.0,
    skip_days: SkipOption = 0.0,
    most_jobs: MostJobsOption = None,
    truth: TruthOption = TruthChoice.PERTURBED,
    until: UntilOption = None,
    begins: BeginsOption = _FIRST_DAY,  # type: ignore[assignment]
    output: OutputOption = Output.TEXT,
) -> None:
    """Replay under several policies with the same seeds: differences, and how sure they are."""
    from wattline.cli.command_compare import compare_policies
    from wattline.twin.replaying import Question

    question = Question(
        trace=trace,
        facility=facility,
        arrival_scale=arrival_scale,
        skip_days=skip_days,
        most_jobs=most_jobs,
        seed=seed,
        exact=truth is TruthChoice.EXACT,
        until_seconds=until,
        begins_at=begins,
    )
    as_json = output is Output.JSON
    raise typer.Exit(compare_policies(question, policy, seeds=seeds, lanes=jobs, as_json=as_json))


@twin_app.command(epilog="Example: wattline twin scenario pump-trip --seed 1 --html pump-trip.html")
def scenario(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PATH",
            help=f"A scenario document, or one that ships: {SCENARIOS}.",
        ),
    ],
    facility: Annotated[str | None, typer.Option(help="Instead of the scenario's own.")] = None,
    policy: Annotated[str, typer.Option(help="As for replay.")] = "default",
    against: Annotated[
        str, typer.Option(help="A policy to set beside it, as for replay; or none.")
    ] = "power-blind",
    begins: BeginsOption = _FIRST_DAY,  # type: ignore[assignment]
    seed: Annotated[int, typer.Option(help="For what is random: jobs, truth and meters.")] = 0,
    truth: TruthOption = TruthChoice.PERTURBED,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write pictures of the first policy there.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page about the first policy.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Play through what may happen to a facility, under a policy and beside another."""
    from wattline.cli.command_scenario import play_scenario

    raise typer.Exit(
        play_scenario(
            scenario,
            facility=facility,
            begins_at=begins,
            policy=policy,
            against=against,
            seed=seed,
            exact=truth is TruthChoice.EXACT,
            plots=plots,
            html=html,
            as_json=output is Output.JSON,
        )
    )


@twin_app.command(epilog="Example: wattline twin plan --uplink 'ash-lul*2' --trace philly.csv.gz")
def plan(
    document: Annotated[
        str | None,
        typer.Argument(
            metavar="PLAN", help=f"A plan document, or one that ships ({PLANS}); or ask with the flags below."
        ),
    ] = None,
    add_racks: Annotated[
        list[str] | None,
        typer.Option(metavar="SITE/RACK*20[@LOOP]", help="So many copies of a rack with its nodes."),
    ] = None,
    grow: Annotated[
        bool,
        typer.Option("--grow", metavar="", help="With --add-racks: their loop and supplies are built out."),
    ] = False,
    supply_temperature: Annotated[
        list[str] | None, typer.Option(metavar="SITE/LOOP:+2K", help="A loop's supply, warmer or colder.")
    ] = None,
    loop_capacity: Annotated[
        list[str] | None, typer.Option(metavar="SITE/LOOP*1.2", help="A loop that takes more heat away.")
    ] = None,
    feed: Annotated[
        list[str] | None, typer.Option(metavar="SITE/FEED*1.5", help="A feed or PDU with a higher rating.")
    ] = None,
    cap: Annotated[
        list[str] | None, typer.Option(metavar="SITE/RACK*1.1", help="A rack that may draw more or less.")
    ] = None,
    uplink: Annotated[
        list[str] | None, typer.Option(metavar="LINK*2", help="A link with so many times its bandwidth.")
    ] = None,
    facility: Annotated[
        str | None, typer.Option(help="Instead of the plan's; three-sites where neither says.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Instead of the plan's; as for replay.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Jobs, instead of the plan's; as for replay.")
    ] = None,
    arrival_scale: Annotated[float | None, typer.Option(help="How many times as fast jobs arrive.")] = None,
    skip_days: Annotated[float | None, typer.Option(help="Leave out the first days of the trace.")] = None,
    most_jobs: MostJobsOption = None,
    horizon: Annotated[
        float | None,
        typer.Option(
            parser=_seconds, metavar="DURATION", help="How long to look; by default while jobs arrive."
        ),
    ] = None,
    begins: Annotated[
        float | None,
        typer.Option(
            parser=_day, metavar="DAY", help="Instead of the plan's; 2024-01-01 where neither says."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many runs of each option; 5 by default.", min=1, max=100)
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a picture there.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """What would more racks, warmer water or another uplink buy for each dollar and each kWh?"""
    from wattline.cli.command_plan import plan_capacity
    from wattline.cli.plan_flags import options_of
    from wattline.twin.planning import Asked

    written = {
        "--add-racks": add_racks,
        "--supply-temperature": supply_temperature,
        "--loop-capacity": loop_capacity,
        "--feed": feed,
        "--cap": cap,
        "--uplink": uplink,
    }
    asked = Asked(
        plan=document,
        options=options_of(written, grow=grow),
        facility=facility,
        policy=policy,
        trace=trace,
        arrival_scale=arrival_scale,
        skip_days=skip_days,
        most_jobs=most_jobs,
        horizon_seconds=horizon,
        begins_at=begins,
        seeds=seeds,
    )
    raise typer.Exit(plan_capacity(asked, plots=plots, as_json=output is Output.JSON))
