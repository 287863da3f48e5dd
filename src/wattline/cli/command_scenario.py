"""The scenario command: what happens under a policy when something goes wrong, and under another one?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from wattline.cli.command_replay import prepare_pictures, write_pictures
from wattline.cli.printing import plain, print_json, stdout_console
from wattline.cli.twin_progress import TwinProgress
from wattline.errors import UsageError
from wattline.twin.figures import side_by_side
from wattline.twin.findings import find_excess, find_what_binds
from wattline.twin.left_out import say_never_begun
from wattline.twin.plots import FOOTER
from wattline.twin.replaying import read_rules
from wattline.twin.run import Outcome, Setting, run
from wattline.twin.scenario import Played, read_stage, set_side_by_side, setting_of
from wattline.twin.wording import one_line, say_count, say_ratio

NOBODY = "none"
_WIDEST_POLICY = 22  # what a label leaves of eighty columns


def play_scenario(
    name_or_path: str,
    *,
    facility: str | None,
    begins_at: float,
    policy: str,
    against: str,
    seed: int,
    exact: bool,
    plots: Path | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Pictures are of the first policy."""
    with TwinProgress() as progress:
        prepare_pictures(plots, html)
        stage = read_stage(name_or_path, facility, begins_at)
        first = read_rules(policy)
        second = None if against == NOBODY else read_rules(against)
        if second is not None and second.name == first.name:
            raise UsageError(
                f"policy {first.name} beside itself shows nothing",
                hint=f"name another with --against, or {NOBODY}",
            )
        pictured = plots is not None or html is not None
        outcome = _run(setting_of(stage, first, seed=seed, exact=exact), progress, recorded=pictured)
        other = None
        if second is not None:
            other = _run(setting_of(stage, second, seed=seed, exact=exact), progress, recorded=False).report
        played = set_side_by_side(stage, outcome.report, other)
        if pictured:
            progress.say("drawing pictures")
        written = write_pictures(outcome, plots, html, played)
    if as_json:
        print_json(played)
    else:
        print_played(played)
    for path in written:
        progress.say(f"wrote {path}")
    return 0


def _run(setting: Setting, progress: TwinProgress, *, recorded: bool) -> Outcome:
    label = setting.decided_by
    jobs = sum(1 for _ in setting.arrivals())
    tell = partial(progress.tell, label, jobs=max(1, jobs), until_seconds=setting.until_seconds)
    outcome = run(setting, recorded=recorded, tell=tell)
    progress.end(label)
    return outcome


def print_played(played: Played) -> None:
    """Both policies in columns, figure by figure."""
    console = stdout_console()
    report, against = played.report, played.against
    console.print(plain(f"{played.scenario} on {report.facility}"), style="bold")
    console.print(plain(played.say))
    length = f"{report.simulated_hours:.3g} h from {report.begins_at[:10]}"
    size = f"{length}, {say_count(report.jobs.submitted)} jobs, {report.gpus:,} GPUs"
    console.print(f"{size}, {report.truth}; {FOOTER}", style="dim")
    console.print()
    reports = [report] if against is None else [report, against]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for each in reports:
        table.add_column(one_line(plain(each.policy), _WIDEST_POLICY), justify="right", no_wrap=True)
    for row in side_by_side(reports):
        table.add_row(*row)
    console.print(table)
    for each in reports:
        if left_out := say_never_begun(each):
            console.print(plain(f"{each.policy}: {left_out}"))
    console.print()
    if against is not None:
        ratio = played.useful_gpu_hours_ratio
        style = "" if ratio is None else "green" if ratio > 1 else "bold red"
        console.print(
            Text.assemble(
                f"useful GPU-hours, {report.policy} for each of {plain(against.policy)}: ",
                (say_ratio(ratio), style),
            )
        )
    for said in (find_excess(against) if against is not None else "", find_what_binds(report)):
        if said:
            console.print(plain(said))
    console.print(plain(f"seed {report.seed}, digest {report.digest}"), style="dim", soft_wrap=True)
