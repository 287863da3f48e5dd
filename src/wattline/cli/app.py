"""Which command was meant? Each imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Never

import typer
from typer.core import TyperGroup

from wattline import __version__
from wattline.cli.app_agent import agent_app, site_app
from wattline.cli.app_checkpoint import checkpoint_app
from wattline.cli.app_data import data_app
from wattline.cli.app_facility import facility_app
from wattline.cli.app_observe import observe_app
from wattline.cli.app_policy import policy_app
from wattline.cli.app_release import release_app
from wattline.cli.app_server import server_app, token_app
from wattline.cli.app_store import store_app
from wattline.cli.app_teams import exception_app, report_app
from wattline.cli.app_twin import twin_app
from wattline.cli.options import (
    FACILITIES,
    POLICIES,
    CheckOutput,
    JobArgument,
    Output,
    OutputOption,
    PipelineArgument,
)
from wattline.errors import UsageError, WattlineError


class _InOurWords(TyperGroup):
    """What a flag may not be is said as it is of a document's field."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            from wattline.spec.problems import say_findings

            if isinstance(error.__cause__, ValidationError):
                error.message = say_findings(error.__cause__)
            raise


app = typer.Typer(
    name="wattline",
    cls=_InOurWords,
    help="The control plane between your repository and your GPU halls.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"wattline {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Say which version this is.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Training under real limits: power, heat, network, quota, cost and carbon."""


@app.command(epilog="Example: wattline init fine-tune && wattline check && wattline run")
def init(
    template: Annotated[
        str | None,
        typer.Argument(help="A paved road for an empty folder; --list names them.", show_default=False),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(help="The training script; train.py, main.py or the only one unless named."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write over files that are there.")
    ] = False,
    no_ci: Annotated[
        bool, typer.Option("--no-ci", metavar="", help="With a template: without its GitHub workflow.")
    ] = False,
    lists: Annotated[bool, typer.Option("--list", metavar="", help="Only name the templates.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a pipeline for the training script in this folder, or begin with a template."""
    from wattline.cli.command_init import begin

    raise typer.Exit(
        begin(
            Path(),
            template=template,
            script=script,
            lists=lists,
            no_ci=no_ci,
            force=force,
            as_json=output is Output.JSON,
        )
    )


@app.command(
    epilog="Example: wattline run examples/tiny-lm/wattline.yaml --faults examples/tiny-lm/faults.yaml"
)
def run(
    pipeline: PipelineArgument = Path("wattline.yaml"),
    facility: Annotated[
        str | None,
        typer.Option(help=f"A facility document, or one that ships; lab unless named: {FACILITIES}."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=f"A policy document, or one that ships: {POLICIES}.")
    ] = None,
    faults: Annotated[
        Path | None, typer.Option(help="What breaks, where and when (emulated facilities).")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", metavar="", help="Go on with this pipeline's newest run, if it has not ended."
        ),
    ] = False,
    run_id: Annotated[
        str | None, typer.Option("--run", help="With --resume: which run; the newest by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For what is random in an emulated facility.")] = 0,
    approved_by: Annotated[
        str | None, typer.Option(help="Who approved the run, for rules that speak of job.approved.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check, admit, place, train, gate and release a pipeline, here, embedded."""
    from wattline.cli.command_run import run_pipeline

    raise typer.Exit(
        run_pipeline(
            pipeline=pipeline,
            facility=facility,
            policy=policy,
            faults=faults,
            resume=resume,
            run_id=run_id,
            seed=seed,
            approved_by=approved_by,
            as_json=output is Output.JSON,
        )
    )


@app.command(epilog="Example: wattline check --facility three-sites --output json")
def check(
    pipeline: PipelineArgument = Path("wattline.yaml"),
    facility: Annotated[
        str | None,
        typer.Option(
            help="A facility document, or one that ships, with nothing running; the state folder's own "
            "facility and queue unless named."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=f"A policy document, or one that ships: {POLICIES}.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF|FILE", help="Compare with a commit or branch, or with an earlier report."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL", help="A snapshot of a queue, as `wattline snapshot` wrote it, or a server."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the report in every form into a folder.")
    ] = None,
    approved: Annotated[
        bool, typer.Option("--approved", metavar="", help="As if the run were approved.")
    ] = False,
    no_secrets: Annotated[
        bool,
        typer.Option("--no-secrets", metavar="", help="Do not ask for its secrets: a pull request has none."),
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", metavar="", help="Also make a tiny pass of its code, on a processor."),
    ] = False,
    output: Annotated[
        CheckOutput, typer.Option("--output", "-o", help="The form in which the report goes to stdout.")
    ] = CheckOutput.TEXT,
) -> None:
    """Would this pipeline run here, when, at what cost, and what changed? Nothing is submitted."""
    from wattline.cli.command_check import CheckAsked, check_pipeline

    raise typer.Exit(
        check_pipeline(
            CheckAsked(
                pipeline=pipeline,
                facility=facility,
                policy=policy,
                base=base,
                against=against,
                report=report,
                approved=approved,
                has_secrets=not no_secrets,
                rehearse=rehearse,
                output=output,
            )
        )
    )


@app.command(epilog="Example: wattline comment report.json --repository acme/models --pull-request 7")
def comment(
    report: Annotated[Path, typer.Argument(help="What `wattline check --output json` wrote.")],
    repository: Annotated[
        str | None, typer.Option(help="GitHub: owner/name; GITHUB_REPOSITORY unless given.")
    ] = None,
    pull_request: Annotated[int | None, typer.Option(min=1, help="GitHub: its number.")] = None,
    head: Annotated[
        str | None, typer.Option(help="GitHub: owner:branch, to look the pull request up.")
    ] = None,
    commit: Annotated[str | None, typer.Option(help="With --head: the commit that was checked.")] = None,
    project: Annotated[
        str | None, typer.Option(help="GitLab: number or path; CI_PROJECT_ID unless given.")
    ] = None,
    merge_request: Annotated[int | None, typer.Option(min=1, help="GitLab: its number.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say on a pull request or merge request what a check reported; one comment, updated in place."""
    from wattline.cli.command_comment import comment_report

    raise typer.Exit(
        comment_report(
            report,
            repository=repository,
            pull_request=pull_request,
            head=head,
            commit=commit,
            project=project,
            merge_request=merge_request,
            as_json=output is Output.JSON,
        )
    )


@app.command(epilog="Example: wattline snapshot /srv/share/queue.json")
def snapshot(
    file: Annotated[Path, typer.Argument(help="The file to write; replaced whole.")],
    output: OutputOption = Output.TEXT,
) -> None:
    """Write what stands here, so that `wattline check --against` elsewhere can be held against it."""
    from wattline.cli.command_snapshot import snapshot_to

    raise typer.Exit(snapshot_to(file, as_json=output is Output.JSON))


@app.command(epilog="Example: wattline status tiny-lm-0501-093000-1a2b")
def status(
    run: Annotated[str | None, typer.Argument(help="One run with its phases and attempts.")] = None,
    site: Annotated[str | None, typer.Option(help="What room a site has left, and what follows.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """What runs, what waits and why, newest first, and who conducts it; or how a site stands."""
    if site is not None:
        from wattline.cli.command_conditions import show_conditions

        if run is not None:
            raise UsageError("status is of a run or of a site, not of both", hint="leave one of them out")
        raise typer.Exit(show_conditions(site, as_json=output is Output.JSON))
    from wattline.cli.command_status import show_status

    raise typer.Exit(show_status(run, as_json=output is Output.JSON))


@app.command("node-helper", epilog="Example: ssh gpu-07 sudo -n wattline node-helper")
def node_helper(
    state: Annotated[
        Path, typer.Option(metavar="FILE", help="Where it writes down what it has capped.")
    ] = Path("/run/wattline-node-helper.json"),
) -> None:
    """Sets power limits of this machine's GPUs for whoever is at its input; put back when that ends."""
    from wattline.actuators.node import run

    raise typer.Exit(run(state))


@app.command(epilog="Example: wattline explain train --at -2h --if policy=strict.yaml")
def explain(
    job: JobArgument = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="As of then: 2026-05-01T14:20Z, or -2h for so long ago."),
    ] = None,
    otherwise: Annotated[
        str | None,
        typer.Option("--if", metavar="policy=FILE", help="And what this policy would have decided."),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Why a job waits and what would start it, or what happened to it and why it moved."""
    if at is not None or otherwise is not None:
        from wattline.cli.command_explain_past import explain_past

        raise typer.Exit(explain_past(job, at=at, otherwise=otherwise, as_json=output is Output.JSON))
    from wattline.cli.command_explain import explain_job

    raise typer.Exit(explain_job(job, as_json=output is Output.JSON))


@app.command(epilog="Example: wattline burst train")
def burst(job: JobArgument = None, output: OutputOption = Output.TEXT) -> None:
    """Let a job that waits go to a cloud region now, at its price of now."""
    from wattline.cli.command_burst import burst_jobs

    raise typer.Exit(burst_jobs(job, as_json=output is Output.JSON))


@app.command(epilog="Example: wattline logs train --follow")
def logs(
    job: JobArgument = None,
    attempt: Annotated[
        int | None, typer.Option(help="Which attempt of a job; the newest by default.", min=1)
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar="", help="Go on until it has ended; Ctrl-C stops looking."),
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """What a job printed; on a terminal as text only, whatever the script wrote."""
    from wattline.cli.command_logs import show_logs

    raise typer.Exit(show_logs(job, attempt=attempt, follow=follow, as_json=output is Output.JSON))


app.add_typer(agent_app)
app.add_typer(site_app, name="site")
app.add_typer(server_app)
app.add_typer(token_app, name="token")
app.add_typer(observe_app)
app.add_typer(release_app)
app.add_typer(report_app)
app.add_typer(exception_app, name="exception")
app.add_typer(facility_app, name="facility")
app.add_typer(data_app, name="data")
app.add_typer(policy_app, name="policy")
app.add_typer(twin_app, name="twin")
app.add_typer(checkpoint_app, name="checkpoint")
app.add_typer(store_app, name="store")


def run_app() -> None:
    """Any error that has a sentence is told as one, with its exit code; nobody sees a traceback for it."""
    try:
        app()
    except WattlineError as error:
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        raise SystemExit(1) from None
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}", 3)
    finally:
        _let_go()


def _let_go() -> None:
    """A reader that went away early (`| head -1`) must not change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(message: str, exit_code: int) -> Never:
    from wattline.cli.printing import plain

    sys.stderr.write(f"wattline: {plain(message)}\n")
    raise SystemExit(exit_code) from None
