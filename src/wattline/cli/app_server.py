"""Commands of a server and its clients, declared: serve, submit, tokens, and a word about a job."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wattline.cli.options import JobArgument, Output, OutputOption, PipelineArgument

server_app = typer.Typer()
token_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of a server.")


class RoleName(StrEnum):
    READER = "reader"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    AGENT = "agent"


@server_app.command(epilog="Example: wattline serve --listen 127.0.0.1:8080 --facility three-sites")
def serve(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where; port 0 takes any that is free.")
    ] = "127.0.0.1:8080",
    facility: Annotated[
        str | None,
        typer.Option(help="A facility document, or one that ships; the one in force unless named, else lab."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="A policy document, or one that ships; what is promoted unless named.")
    ] = None,
    faults: Annotated[
        Path | None, typer.Option(help="What breaks, where and when (emulated facilities).")
    ] = None,
    seed: Annotated[int, typer.Option(help="For what is random in an emulated facility.")] = 0,
    pass_secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A variable of this environment that jobs may ask for; may be given again."
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=1, help="Calls a second that one token may make, twice as many at once.")
    ] = 1000.0,
    largest_object: Annotated[
        float, typer.Option(min=0.001, metavar="GB", help="The largest file that is taken in.")
    ] = 4.0,
    receive: Annotated[
        str | None,
        typer.Option(
            "--receive",
            metavar="HOST:PORT",
            help="Hand over checkpoints to agents and take theirs here; all share WATTLINE_RECEIVER_TOKEN.",
        ),
    ] = None,
) -> None:
    """Conduct for many: an HTTP API, runs that go on without who submitted them, and a second server that
    stands by."""
    from wattline.cli.command_serve import ServeAsked, serve

    raise typer.Exit(
        serve(
            ServeAsked(
                listen=listen,
                facility=facility,
                policy=policy,
                faults=faults,
                seed=seed,
                pass_secrets=pass_secret or (),
                calls_per_second=rate,
                object_gigabytes=largest_object,
                receive=receive,
            )
        )
    )


@server_app.command(epilog="Example: WATTLINE_URL=https://wattline.example.org wattline submit --wait")
def submit(
    pipeline: PipelineArgument = Path("wattline.yaml"),
    wait: Annotated[
        bool, typer.Option("--wait", metavar="", help="Until it has ended; exit as `wattline run` does.")
    ] = False,
    approved: Annotated[
        bool, typer.Option("--approved", metavar="", help="As its approver: needs an operator's token.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(help="The same key again is the same submission, such as a build's number."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Hand a pipeline to the server at WATTLINE_URL, or to whoever conducts here, and go."""
    from wattline.cli.command_submit import submit_pipeline

    raise typer.Exit(
        submit_pipeline(
            pipeline=pipeline, approved=approved, wait=wait, key=key, as_json=output is Output.JSON
        )
    )


@server_app.command(epilog="Example: wattline pause train")
def pause(job: JobArgument = None, output: OutputOption = Output.TEXT) -> None:
    """Let a job, or all jobs of a run, save and wait until somebody resumes it."""
    _steer(job, "pause", output)


@server_app.command(epilog="Example: wattline resume tiny-lm-0501-093000-1a2b")
def resume(job: JobArgument = None, output: OutputOption = Output.TEXT) -> None:
    """Let what was paused go on."""
    _steer(job, "resume", output)


@server_app.command(epilog="Example: wattline cancel tiny-lm-0501-093000-1a2b")
def cancel(job: JobArgument = None, output: OutputOption = Output.TEXT) -> None:
    """End a job, or all jobs of a run, for good."""
    _steer(job, "cancel", output)


@server_app.command(epilog="Example: wattline migrate train --to oslo")
def migrate(
    job: JobArgument = None,
    to: Annotated[str | None, typer.Option(metavar="SITE", help="Where; any other site unless said.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Move a running job to another site: it saves, and goes on there from its checkpoint."""
    _steer(job, "migrate", output, to)


def _steer(job: str | None, want: str, output: Output, to: str | None = None) -> None:
    from wattline.cli.command_steer import steer

    raise typer.Exit(steer(job, want, to=to, as_json=output is Output.JSON))


@token_app.command(epilog="Example: wattline token create ci-nlp --role submitter --project nlp")
def create(
    name: Annotated[str, typer.Argument(help="For who bears it; never given twice.")],
    role: Annotated[
        RoleName, typer.Option(help="reader looks, submitter also submits and steers, operator may all.")
    ] = RoleName.SUBMITTER,
    project: Annotated[str | None, typer.Option(help="The only project it is good for.")] = None,
    site: Annotated[str | None, typer.Option(help="Of an agent: the site it speaks for.")] = None,
    expires: Annotated[str, typer.Option(metavar="DURATION", help="After how long; a year at most.")] = "30d",
    output: OutputOption = Output.TEXT,
) -> None:
    """Make a token and show its secret once."""
    from wattline.cli.command_token import create_token

    raise typer.Exit(
        create_token(
            name, role=role, project=project, site=site, expires=expires, as_json=output is Output.JSON
        )
    )


@token_app.command("list", epilog="Example: wattline token list")
def list_all(output: OutputOption = Output.TEXT) -> None:
    """All that were ever made, without their secrets."""
    from wattline.cli.command_token import list_tokens

    raise typer.Exit(list_tokens(as_json=output is Output.JSON))


@token_app.command(epilog="Example: wattline token revoke ci-nlp")
def revoke(
    name: Annotated[str, typer.Argument(help="Which; by its name.")], output: OutputOption = Output.TEXT
) -> None:
    """Make a token useless, within a second."""
    from wattline.cli.command_token import revoke_token

    raise typer.Exit(revoke_token(name, as_json=output is Output.JSON))
