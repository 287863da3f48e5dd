"""A plan as people read it in a terminal: what each option buys, what it costs, and what is sure."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wattline.cli.printing import plain, stdout_console
from wattline.twin.plan import AS_IT_IS
from wattline.twin.plan_report import OptionReport, PlanReport, Weighed
from wattline.twin.plots import FOOTER
from wattline.twin.wording import one_line, say_energy, say_gpu_hours, say_minutes, say_power
from wattline.units import SECONDS_PER_HOUR, format_seconds

_WIDEST_NAME = 23  # what figures leave of eighty columns
_DASH = "–"


def print_plan(report: PlanReport) -> None:
    console = stdout_console()
    seeds = f"{len(report.seeds)} seed{'' if len(report.seeds) == 1 else 's'}"
    horizon = f"{format_seconds(SECONDS_PER_HOUR * report.horizon_hours)} from {report.begins_at[:10]}"
    console.print(
        plain(f"{report.trace} on {report.facility} under {report.policy}: {horizon}, {seeds}"), style="bold"
    )
    console.print(f"dollars: energy and an option's own cost; {FOOTER}", style="dim")
    console.print()
    console.print(_gains(report))
    console.print()
    console.print(_standings(report))
    if any(left_out := [told["jobs_never_begun"] or 0.0 for _, told in _rows(report)]):
        few, many = (f"{jobs:,.0f}" for jobs in (min(left_out), max(left_out)))
        count = few if few == many else f"{few} to {many}"
        console.print(f"waits leave out those of {count} jobs that had not begun by the end", style="dim")
    console.print()
    for option in report.options:
        _print_option(console, option)
    console.print(Text.assemble(("recommendation: ", "bold"), plain(report.recommendation)))
    if len(report.seeds) == 1:
        console.print("one seed: nothing says whether another would give the same", style="yellow")
    else:
        console.print("± spans a 95 % confidence interval over seeds (Student's t, paired)", style="dim")


def _gains(report: PlanReport) -> Table:
    """Against the facility as it is."""
    table = _table("what it buys", "useful GPU-h", "±", "USD", "energy", "GPU-h/USD", "GPU-h/kWh")
    for option in report.options:
        gain = option.figures["useful_gpu_hours"]
        table.add_row(
            _name(option.name),
            _more(gain, say_gpu_hours),
            _half(gain, say_gpu_hours),
            _more(option.figures["usd"], _say_usd),
            _more(option.figures["energy_kwh"], say_energy),
            _ratio(option.gained_gpu_hours_per_usd),
            _ratio(option.gained_gpu_hours_per_kwh),
        )
    return table


def _rows(report: PlanReport) -> list[tuple[str, dict[str, float | None]]]:
    return [
        (AS_IT_IS, report.base),
        *(
            (option.name, {name: figure.option for name, figure in option.figures.items()})
            for option in report.options
        ),
    ]


def _standings(report: PlanReport) -> Table:
    """The whole facility, as it is and with each option."""
    table = _table("all in all", "GPU-h/USD", "GPU-h/kWh", "wait, mean", "p95", "peak", "PUE")
    for name, told in _rows(report):
        table.add_row(
            _name(name),
            _ratio(told["useful_gpu_hours_per_usd"]),
            _ratio(told["useful_gpu_hours_per_kwh"]),
            _or_dash(told["wait_minutes_mean"], say_minutes),
            _or_dash(told["wait_minutes_p95"], say_minutes),
            _or_dash(told["peak_kw"], say_power),
            _or_dash(told["pue"], lambda pue: f"{pue:.3f}"),
        )
    return table


def _print_option(console: Console, option: OptionReport) -> None:
    # The table has a dash for what was gained for each dollar or kWh: that needs no line.
    unknown = [each for each in option.not_estimated if not each.startswith("gained_")]
    told = Text("\n".join(plain(line) for line in (*option.changes, option.says)))
    told.append("".join(f"\n{plain(_say_unknown(each))}" for each in unknown), style="yellow")
    console.print(Text(plain(option.name), style="bold"))
    console.print(Padding(told, (0, 0, 0, 2), expand=False))


def _say_unknown(unknown: str) -> str:
    """The figure by a name that people use, and why."""
    figure, _, why = unknown.partition(": ")
    if figure == "option_usd":
        return why
    return f"PUE {why}" if figure == "pue" else f"{figure.replace('_', ' ')}: {why}"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(names):
        table.add_column(name, justify="right" if at else "left", no_wrap=True)
    return table


def _name(name: str) -> str:
    return one_line(plain(name), _WIDEST_NAME)


def _more(figure: Weighed, say: Callable[[float], str]) -> Text:
    """A difference; dim where it cannot be told from none."""
    if figure.difference is None:
        return Text(_DASH)
    said = f"{'+' if figure.difference > 0 else ''}{say(figure.difference)}"
    return Text(said, style="" if figure.is_clear else "dim")


def _half(figure: Weighed, say: Callable[[float], str]) -> str:
    return _DASH if figure.low is None or figure.high is None else say((figure.high - figure.low) / 2)


def _ratio(value: float | None) -> str:
    return _or_dash(value, lambda ratio: f"{ratio:,.3g}")


def _say_usd(usd: float) -> str:
    return f"{usd:,.0f}" if abs(usd) >= 10 else f"{usd:,.2f}"


def _or_dash(value: float | None, say: Callable[[float], str]) -> str:
    return _DASH if value is None else say(value)
