"""Pictures of a window: what was lost, and when GPUs were held, at work and waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from wattline.observing.observing import Seen
from wattline.observing.report import Report
from wattline.observing.series import Matrix
from wattline.observing.throttling import find_held
from wattline.twin.plots import Picture, draw_framed
from wattline.twin.theme import Theme
from wattline.twin.wording import say_gpu_hours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOOTER = "from Slurm's accounting and Prometheus"


def draw_observation(report: Report, seen: Seen, theme: Theme) -> list[Picture]:
    """What there is something to draw for."""
    import matplotlib.style

    known = [loss for loss in report.losses if loss.gpu_hours]
    pictures = []
    with matplotlib.style.context(["default", theme.settings()], after_reset=True):
        if known:
            worst = known[0]
            finding = f"The most was lost to {worst.name}: {say_gpu_hours(worst.gpu_hours)} GPU-hours"
            pale = "; paler: estimated" if any(loss.is_estimated for loss in known) else ""
            shows = f"GPU-hours lost, by what{pale}"
            png = _framed(
                lambda figure: _draw_losses(figure, report, theme), finding, shows, report, theme, 3.0
            )
            pictures.append(Picture(name="losses", shows=shows, finding=finding, png=png))
        shows = "GPUs that jobs held, of these at work, held back, and GPUs waited for"
        finding = _find_hours(report)
        png = _framed(lambda figure: _draw_hours(figure, seen, theme), finding, shows, report, theme, 4.2)
        pictures.append(Picture(name="hours", shows=shows, finding=finding, png=png))
    return pictures


def _framed(
    draw: Callable[[Figure], None], finding: str, shows: str, report: Report, theme: Theme, height: float
) -> bytes:
    return draw_framed(
        draw,
        finding=finding,
        shows=shows,
        run=f"{report.cluster or 'cluster'}, {report.begins_at} to {report.ends_at}",
        height_inches=height,
        theme=theme,
        footer=_FOOTER,
    )


def _find_hours(report: Report) -> str:
    if report.allocated_gpu_hours is None or not report.available_gpu_hours:
        return "What GPUs did in the window"
    held = report.allocated_gpu_hours / report.available_gpu_hours
    busy = "" if report.busy_fraction is None else f", and those were busy {report.busy_fraction:.0%}"
    return f"Jobs held {held:.0%} of the GPUs{busy}"


def _draw_losses(figure: Figure, report: Report, theme: Theme) -> None:
    axes = figure.subplots()
    losses = [loss for loss in report.losses if loss.gpu_hours is not None]
    hours = [loss.gpu_hours or 0.0 for loss in losses]
    bars = axes.barh(range(len(losses)), hours, color=theme.sites[0], height=0.6)
    for bar, loss in zip(bars, losses, strict=True):
        bar.set_alpha(0.5 if loss.is_estimated else 0.95)
        axes.annotate(
            say_gpu_hours(loss.gpu_hours),
            (bar.get_width(), bar.get_y() + bar.get_height() / 2),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    axes.set_yticks(range(len(losses)), [loss.name for loss in losses])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("GPU-hours")


def _draw_hours(figure: Figure, seen: Seen, theme: Theme) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    window, meters = seen.window, seen.meters
    middles = window.begins_at + (np.arange(window.steps) + 0.5) * window.step_seconds
    at = (1000 * middles).astype("datetime64[ms]")
    axes = figure.subplots()
    lines: list[tuple[str, Matrix, str, str]] = []
    if seen.accounts is not None:
        lines.append(("held by jobs", seen.held.sum(axis=0), theme.sites[0], "-"))
        lines.append(("waited for", seen.waiting, theme.sites[1], "-"))
    idle = meters.get("idle_fraction")
    if idle is not None:
        lines.append(("at work", np.nansum(1.0 - idle, axis=0), theme.sites[2], "-"))
    held = find_held(meters, window.step_seconds)
    if held is not None:
        back = (held.power_seconds + held.heat_seconds).sum(axis=0) / window.step_seconds
        lines.append(("held back", back, theme.throttled, "-"))
    lines.append(("in the cluster", np.full(window.steps, float(seen.gpus)), theme.limit, "--"))
    for name, values, colour, style in lines:
        axes.plot(at, values, label=name, color=colour, linestyle=style, linewidth=1.4, drawstyle="steps-mid")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GPUs")
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.legend(loc="upper left", ncols=len(lines), bbox_to_anchor=(0.0, 1.14), borderaxespad=0.0)
