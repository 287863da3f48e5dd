"""What does each option of a plan buy? Bars that one would show in a meeting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wattline.errors import UnavailableError
from wattline.twin.plan_report import OptionReport, PlanReport, Weighed
from wattline.twin.plots import draw_framed
from wattline.twin.theme import LIGHT, Theme
from wattline.twin.wording import one_line, say_gpu_hours
from wattline.units import SECONDS_PER_HOUR, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = (
    ("useful_gpu_hours", "useful GPU-hours gained", "useful GPU-hours, against the facility as it is"),
    ("usd", "dollars more", "USD, energy and the option's own cost"),
    ("energy_kwh", "energy more", "kWh"),
)


def write_plan_plot(report: PlanReport, folder: Path) -> Path:
    """One PNG: what is gained and what is spent for it, option by option."""
    path = folder / "plan.png"
    png = draw_plan(report, LIGHT)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
    except OSError as error:
        raise UnavailableError(f"{folder}: pictures cannot be written: {error.strerror}") from error
    return path


def draw_plan(report: PlanReport, theme: Theme) -> bytes:
    import matplotlib.style

    first, *_ = report.recommendation.split("; then ")  # a title is one line; the bars show the rest
    horizon = f"{format_seconds(SECONDS_PER_HOUR * report.horizon_hours)} from {report.begins_at[:10]}"
    seeds = f"{len(report.seeds)} seed{'' if len(report.seeds) == 1 else 's'}"
    with matplotlib.style.context(["default", theme.settings()], after_reset=True):
        return draw_framed(
            lambda figure: _draw(figure, report, theme),
            finding=first[:1].upper() + first[1:],
            shows=f"differences over {horizon}, {seeds}; whiskers: 95 % intervals; pale: not clear of zero",
            run=f"{report.trace} on {report.facility} under {report.policy}",
            height_inches=1.8 + len(_PANELS) * (0.55 + 0.3 * len(report.options)),
            theme=theme,
        )


def _draw(figure: Figure, report: PlanReport, theme: Theme) -> None:
    panels = figure.subplots(len(_PANELS), 1, squeeze=False)[:, 0]
    for axes, (name, title, unit) in zip(panels, _PANELS, strict=True):
        for row, option in enumerate(report.options):
            _draw_bar(axes, row, option.figures[name], theme)
            _label(axes, row, option, name)
        axes.axvline(0.0, color=theme.muted, linewidth=0.8)
        axes.set_yticks(range(len(report.options)), [one_line(option.name, 28) for option in report.options])
        axes.set_ylim(len(report.options) - 0.5, -0.5)  # the first on top, as one reads
        axes.margins(x=0.2)  # room for what stands beside the longest
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(lambda value, _: say_gpu_hours(value))
        axes.set_title(title, fontweight="bold")
        axes.set_xlabel(unit)


def _draw_bar(axes: Axes, row: int, figure: Weighed, theme: Theme) -> None:
    if figure.difference is None:
        return
    alpha = 0.35 if figure.is_clear is False else 0.9
    axes.barh(row, figure.difference, height=0.6, color=theme.sites[0], alpha=alpha)
    if figure.low is not None and figure.high is not None:
        axes.plot([figure.low, figure.high], [row, row], color=theme.ink, linewidth=1.4)


def _label(axes: Axes, row: int, option: OptionReport, name: str) -> None:
    """What is gained for each dollar or kilowatt-hour stands beside what is spent; else how much that is:
    a bar may be too short to see.
    """
    gained = {
        "usd": (option.gained_gpu_hours_per_usd, "USD"),
        "energy_kwh": (option.gained_gpu_hours_per_kwh, "kWh"),
    }
    value, unit = gained.get(name, (None, ""))
    figure = option.figures[name]
    said = "" if value is None else f"{value:,.3g} GPU-h per {unit}"
    if not said and figure.is_clear and figure.difference is not None:
        said = say_gpu_hours(figure.difference)
    if said and figure.high is not None:
        axes.annotate(
            said,
            (max(0.0, figure.high), row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
