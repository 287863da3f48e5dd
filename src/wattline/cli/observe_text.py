"""What does an observation say to people? The biggest loss first; at the end, all that was asked."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from wattline.cli.printing import columns, plain, stdout_console
from wattline.observing.report import Report
from wattline.observing.wording import (
    Table,
    asked_rows,
    limit_rows,
    loss_rows,
    replay_rows,
    say_headline,
    say_not_known,
    say_window,
    state_rows,
)
from wattline.twin.wording import say_gpu_hours


def print_observation(report: Report) -> None:
    console = stdout_console()
    console.print(Text(plain(say_headline(report)), style="bold"))
    console.print(plain(say_window(report)), style="dim")
    _print_table(console, loss_rows(report))
    if not report.losses:
        console.print("no loss could be counted: neither accounting nor meters are there")
    if report.free_while_waiting_gpu_hours:
        free = say_gpu_hours(report.free_while_waiting_gpu_hours)
        console.print(f"while jobs waited, {free} GPU-hours went by on GPUs that nobody held", style="dim")
    _print_table(console, state_rows(report))
    _print_table(console, limit_rows(report))
    if report.replay is not None:
        title = f"\nWhat Wattline would have decided (emulated: {report.replay.jobs:,} jobs in the twin)"
        console.print(Text(title, style="bold"))
        console.print(f"{report.replay.say}; {report.replay.how_sure}")
        _print_table(console, replay_rows(report.replay))
        console.print(f"not in it: {'; '.join(report.replay.left_out)}", style="dim")
    if report.remarks:
        console.print(Text("\nWhat to know about these figures", style="bold"))
        for remark in report.remarks:
            console.print(Text.assemble(("! ", "yellow"), plain(remark)))
    for line in say_not_known(report):
        console.print(plain(line), style="dim")
    console.print(Text("\nNext", style="bold"))
    for number, step in enumerate(report.next_steps, 1):
        console.print(f"{number}. {step}")
    _print_asked(console, report)


def _print_table(console: Console, told: Table) -> None:
    header, rows = told
    if not rows:
        return
    table = columns(*header)
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    console.print()
    console.print(table)


def _print_asked(console: Console, report: Report) -> None:
    console.print(Text("\nAll that was asked; nothing was changed", style="bold"))
    if not report.asked:
        console.print("nothing: only files were read", style="dim")
    for what, times, seconds, unanswered in asked_rows(report)[1]:
        failed = f", {unanswered} without an answer" if unanswered else ""
        count = "" if times == "1" else f"{times} × "
        console.print(plain(f"{count}{what}  ({seconds} s{failed})"), style="dim", soft_wrap=True)
