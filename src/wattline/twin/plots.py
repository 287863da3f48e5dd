"""Pictures that one would show in a meeting: each says its finding, its units, and that it is emulated."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wattline.errors import UnavailableError
from wattline.twin.findings import find_carbon, find_heat, find_power, find_queue, find_utilisation
from wattline.twin.report import Report
from wattline.twin.theme import LIGHT, Theme
from wattline.twin.timeline import Series, Timeline
from wattline.twin.wording import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOOTER = "emulated: a twin, not measurements"
_WIDTH_INCHES, _DOTS_PER_INCH = 8.0, 150  # 1200 pixels
_MARGIN_INCHES = 0.12
_HEADER_INCHES, _FOOTER_INCHES = 0.62, 0.26
_LETTERS_ABREAST = 70  # of a title in its usual size


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawn figure: what it is called, what it shows, what it says."""

    name: str
    shows: str
    finding: str
    png: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    name: str
    shows: str
    finding: str
    height_inches: float
    draw: Callable[[Figure, Report, Series, Theme], None]


def write_plots(report: Report, timeline: Timeline, folder: Path) -> list[Path]:
    """One PNG for each question; a picture that there is nothing to draw for is left out."""
    pictures = draw_pictures(report, timeline.series(), LIGHT)
    paths = [folder / f"{picture.name}.png" for picture in pictures]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, picture in zip(paths, pictures, strict=True):
            path.write_bytes(picture.png)
    except OSError as error:
        raise UnavailableError(f"{folder}: pictures cannot be written: {error.strerror}") from error
    return paths


def draw_pictures(report: Report, series: Series, theme: Theme) -> list[Picture]:
    """All pictures of a replay, as PNG."""
    try:
        import matplotlib.style
    except ImportError as error:
        raise UnavailableError(
            "pictures need matplotlib, which is not installed", hint="pip install 'wattline[plots]'"
        ) from error
    if len(series.counts) == 0:
        raise UnavailableError("the replay ended where it began: there is nothing to draw")
    # After "default", nothing of a user's matplotlibrc is left; leaving the context brings all of it back.
    with matplotlib.style.context(["default", theme.settings()], after_reset=True):
        return [
            Picture(
                name=plan.name, shows=plan.shows, finding=plan.finding, png=_draw(plan, report, series, theme)
            )
            for plan in _plans(report, series)
        ]


def _plans(report: Report, series: Series) -> list[_Plan]:
    from wattline.twin import charts

    panels = charts.panels_of(series)
    places, sites = len(series.layout.places), len(series.layout.sites)
    some = "" if panels == sites else f"; {panels} of {sites} sites, those nearest to a limit"
    plans = [
        _Plan(
            name="utilisation",
            shows="GPUs busy and in service",
            finding=find_utilisation(report, series),
            height_inches=3.9,
            draw=charts.draw_utilisation,
        ),
        _Plan(
            name="power",
            shows=f"power on each feed: mean (line), highest (band) and cap (dashed){some}",
            finding=find_power(report, series),
            height_inches=1.6 + 1.75 * panels,
            draw=charts.draw_power,
        ),
    ]
    if places and not np.isnan(series.place_celsius).all():
        plans.append(
            _Plan(
                name="heat",
                shows=f"hottest GPU of each {series.layout.place_kind} over time{some}",
                finding=find_heat(series),
                height_inches=1.6 + 0.45 * panels + min(10.0, max(1.2 * panels, 0.055 * places)),
                draw=charts.draw_heat,
            )
        )
    plans.append(
        _Plan(
            name="queue",
            shows="jobs that wait or are paused, and jobs that run",
            finding=find_queue(report, series),
            height_inches=5.0,
            draw=charts.draw_queue,
        )
    )
    known = (report.carbon_kg is not None) + (report.energy_usd is not None)
    if known:
        plans.append(
            _Plan(
                name="carbon",
                shows="what the sites emit and pay by the hour, stacked",
                finding=find_carbon(report),
                height_inches=1.6 + 1.9 * known,
                draw=charts.draw_carbon,
            )
        )
    return plans


def _draw(plan: _Plan, report: Report, series: Series, theme: Theme) -> bytes:
    return draw_framed(
        lambda figure: plan.draw(figure, report, series, theme),
        finding=plan.finding,
        shows=plan.shows,
        run=f"{report.trace} on {report.facility} under {report.policy}, seed {report.seed}",
        height_inches=plan.height_inches,
        theme=theme,
    )


def draw_framed(
    draw: Callable[[Figure], None],
    *,
    finding: str,
    shows: str,
    run: str,
    height_inches: float,
    theme: Theme,
    footer: str = FOOTER,
) -> bytes:
    """A picture between what it says and where it comes from; inside the theme's style context."""
    from matplotlib.figure import Figure

    height, margin = height_inches, _MARGIN_INCHES
    figure = Figure(figsize=(_WIDTH_INCHES, height), dpi=_DOTS_PER_INCH)
    left = margin / _WIDTH_INCHES
    body = height - _HEADER_INCHES - _FOOTER_INCHES
    figure.set_layout_engine(
        "constrained", rect=(left, _FOOTER_INCHES / height, 1 - 2 * left, body / height), hspace=0.04
    )
    draw(figure)
    finding = one_line(finding, 110)
    size = 12.5 * min(1.0, _LETTERS_ABREAST / len(finding))
    figure.text(left, 1 - margin / height, finding, va="top", fontsize=size, fontweight="bold")
    figure.text(left, 1 - 0.4 / height, shows, va="top", fontsize=9, color=theme.muted)
    figure.text(left, 0.09 / height, one_line(run, 90), va="bottom", fontsize=7.5, color=theme.muted)
    figure.text(1 - left, 0.09 / height, footer, va="bottom", ha="right", fontsize=7.5, color=theme.muted)
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to disturb anyone.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()
