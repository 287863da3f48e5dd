"""How is each picture of a replay drawn? On a figure of its own, with no word to pyplot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from wattline.twin.report import Report
from wattline.twin.theme import Theme
from wattline.twin.timeline import Column, Count, Series
from wattline.twin.wording import one_line, say_power
from wattline.units import format_seconds

MOST_PANELS = 6  # sites that a picture has room for; those nearest to a limit are shown
_MOST_HEAT_COLUMNS = 600  # fewer than pixels, so that a single hot cell is never lost between two of them
_MOST_RACK_NAMES = 10
_NAME_INCHES = 0.2  # of a picture's height, headings and all, for the name of a row


def draw_utilisation(figure: Figure, report: Report, series: Series, theme: Theme) -> None:
    axes = figure.subplots()
    sides, gpus = _sides(series), max(report.gpus, 1)
    busy, up = _held(series.counts[:, Count.GPUS_BUSY]), _held(series.counts[:, Count.GPUS_UP])
    axes.fill_between(sides, busy, color=theme.sites[0], alpha=0.85, linewidth=0, label="busy")
    axes.plot(sides, up, color=theme.ink, linewidth=1.2, label="in service")
    axes.set_ylim(0, 1.04 * gpus)
    axes.set_ylabel("GPUs")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.0f}"))
    share = axes.secondary_yaxis("right", functions=(_scale(1 / gpus), _scale(gpus)))
    share.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    share.spines["right"].set_visible(False)
    _legend_above(axes)
    _time_axis([axes], sides, series, theme)


def draw_power(figure: Figure, report: Report, series: Series, theme: Theme) -> None:
    """A panel for each site."""
    del report
    feeds = series.layout.feeds
    tightness = series.tightness
    columns = {
        site: [at for at, feed in enumerate(feeds) if feed.site == site] for site in series.layout.sites
    }
    tightest = {site: max((float(tightness[at]) for at in of), default=-1.0) for site, of in columns.items()}
    sites = _nearest([site for site in series.layout.sites if columns[site]], tightest)
    panels = figure.subplots(len(sites), 1, sharex=True, squeeze=False)[:, 0]
    for axes, site in zip(panels, sites, strict=True):
        _draw_feeds(axes, series, columns[site], theme)
        axes.set_title(one_line(site, 40), fontweight="bold")
        _legend_above(axes)
    _time_axis(list(panels), _sides(series), series, theme)


def _draw_feeds(axes: Axes, series: Series, columns: Sequence[int], theme: Theme) -> None:
    """Each under its cap; feeds that carry the same, as A and B do, are one line."""
    sides, feeds = _sides(series), series.layout.feeds
    kilowatts = [
        _held(each) / 1e3 for each in (series.feed_watts, series.feed_peak_watts, series.feed_cap_watts)
    ]
    for number, alike in enumerate(_alike(series, columns)):
        colour = theme.sites[number % len(theme.sites)]
        mean, peak, cap = (each[:, alike[0]] for each in kilowatts)
        axes.fill_between(sides, mean, peak, color=colour, alpha=0.4, linewidth=0)
        names = " and ".join(_within(feeds[at].name, feeds[at].site) for at in alike)
        names += " alike" if len(alike) > 1 else ""
        most, of = series.tightest_watts[alike[0]] / 1e3
        said = f"{names}: tightest {say_power(float(most))} of {say_power(float(of))}"
        axes.plot(sides, mean, color=colour, linewidth=1.3, label=said)
        axes.plot(sides, cap, color=theme.limit, linewidth=1.2, linestyle=(0, (5, 3)))
    axes.set_ylim(0, 1.1 * max(float(each[:, columns].max()) for each in kilowatts))
    axes.set_ylabel("kW")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda kw, _: f"{kw:,.4g}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def draw_heat(figure: Figure, report: Report, series: Series, theme: Theme) -> None:
    """A row for each rack, a panel for each site; what throttled is in a colour of its own."""
    del report
    places = series.layout.places
    limits = np.array([place.throttle_celsius for place in places])
    edges, celsius = _coarser(_times(series), series.place_celsius)
    rows = {
        site: [at for at, place in enumerate(places) if place.site == site] for site in series.layout.sites
    }
    closest = {
        site: float(np.nanmax([-np.inf, *(celsius - limits)[:, at].ravel()])) for site, at in rows.items()
    }
    sites = _nearest([site for site in series.layout.sites if rows[site]], closest)
    ratios = [max(4, len(rows[site])) for site in sites]
    rows_per_name = math.ceil(_NAME_INCHES * sum(ratios) / figure.get_figheight())
    panels = figure.subplots(len(sites), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    norm = Normalize(float(np.nanmin(celsius)), float(limits.max()))
    colours = LinearSegmentedColormap.from_list("heat", theme.heat).with_extremes(over=theme.throttled)
    for axes, site in zip(panels, sites, strict=True):
        at = rows[site]
        _draw_racks(axes, edges, celsius[:, at], norm, colours)
        # Where limits differ, one scale cannot show them all: what is at its own is painted over.
        throttled = np.where(celsius >= limits, 1.0, np.nan)[:, at]
        axes.pcolormesh(edges, np.arange(len(at) + 1), throttled.T, cmap=ListedColormap([theme.throttled]))
        every = max(rows_per_name, -(-len(at) // _MOST_RACK_NAMES))
        names = [_within(places[one].name, site) for one in at[::every]]
        axes.set_yticks(np.arange(0, len(at), every) + 0.5, names)
        kind = series.layout.place_kind
        axes.set_title(f"{one_line(site, 40)}, {len(at)} {kind}{'' if len(at) == 1 else 's'}")
    height = figure.get_figheight()
    bar = figure.colorbar(
        ScalarMappable(norm, colours),
        ax=list(panels),
        aspect=6 * height,
        pad=0.015,
        extend="max",
        extendfrac=0.2 / height,
    )
    bar.set_label("hottest GPU, °C")
    bar.outline.set_visible(False)
    for limit in np.unique(limits):
        bar.ax.axhline(limit, color=theme.throttled, linewidth=2)
    shown = Patch(color=theme.throttled, label=f"throttled: at its limit of {_limits(limits)}")
    panels[0].legend(handles=[shown], loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    _time_axis(list(panels), edges, series, theme)


def _draw_racks(axes: Axes, edges: Column, celsius: Column, norm: Normalize, colours: Colormap) -> None:
    axes.pcolormesh(edges, np.arange(celsius.shape[1] + 1), celsius.T, cmap=colours, norm=norm)
    axes.invert_yaxis()  # the first rack on top, as one reads
    axes.grid(visible=False)
    axes.tick_params(axis="y", labelsize=7)


def draw_queue(figure: Figure, report: Report, series: Series, theme: Theme) -> None:
    del report
    panels = figure.subplots(2, 1, sharex=True)
    sides = _sides(series)
    for axes, count, title, colour in (
        (panels[0], Count.JOBS_WAITING, "waiting or paused", theme.sites[1]),
        (panels[1], Count.JOBS_RUNNING, "running", theme.sites[0]),
    ):
        most, mean = _held(series.most_counts[:, count]), _held(series.counts[:, count])
        axes.fill_between(sides, most, color=colour, alpha=0.3, linewidth=0, label="at most")
        axes.plot(sides, mean, color=colour, linewidth=1.3, label="on average")
        axes.set_ylim(bottom=0, top=max(1.0, 1.05 * float(most.max())))
        axes.set_ylabel("jobs")
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda jobs, _: f"{jobs:,.0f}"))
        axes.set_title(title, fontweight="bold")
        _legend_above(axes)
    _time_axis(list(panels), sides, series, theme)


def draw_carbon(figure: Figure, report: Report, series: Series, theme: Theme) -> None:
    """By the hour, sites upon each other; what a negative price earns hangs below zero."""
    shown = [(series.kg_per_hour, "carbon", "kg CO₂e per hour")] if report.carbon_kg is not None else []
    if report.energy_usd is not None:
        shown.append((series.usd_per_hour, "cost of energy", "USD per hour"))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    sides = _sides(series)
    for axes, (rates, title, unit) in zip(panels, shown, strict=True):
        names, layers, colours = _layers(series.layout.sites, rates, theme)
        steps = _held(layers).T
        axes.stackplot(sides, np.maximum(steps, 0), colors=colours, labels=names, linewidth=0)
        if (steps < 0).any():
            axes.stackplot(sides, np.minimum(steps, 0), colors=colours, linewidth=0)
        axes.set_ylabel(unit)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.4g}"))
        axes.set_title(title, fontweight="bold")
    _legend_above(panels[0])
    _time_axis(list(panels), sides, series, theme)


def panels_of(series: Series) -> int:
    """How many sites a picture with a panel for each shows."""
    return min(MOST_PANELS, len(series.layout.sites))


def _times(series: Series) -> Column:
    return np.asarray(date2num((series.edges * 1000).astype("datetime64[ms]")), dtype=np.float64)


def _sides(series: Series) -> Column:
    """Where each cell begins and ends."""
    return np.repeat(_times(series), 2)[1:-1]


def _held(values: Column) -> Column:
    """Each row twice: a mean holds from one side of its cell to the other."""
    return np.repeat(values, 2, axis=0)


def _time_axis(panels: Sequence[Axes], times: Column, series: Series, theme: Theme) -> None:
    """Times are in days, as matplotlib counts them; the first two are the sides of the first cell."""
    axes = panels[-1]
    locator = AutoDateLocator(tz=UTC, minticks=4, maxticks=10)
    axes.set_xlim(times[0], times[-1])
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC, show_offset=False))
    begins, ends = (moment.strftime("%Y-%m-%d %H:%M") for moment in num2date(times[[0, -1]], tz=UTC))
    each = format_seconds(round(86400 * float(times[1] - times[0]), 3))
    axes.set_xlabel(f"from {begins} to {ends} in the twin, UTC; a point for each {each}")
    _mark(panels, times, series, theme)


def _mark(panels: Sequence[Axes], times: Column, series: Series, theme: Theme) -> None:
    """Dotted lines where something begins and ends; its name on top, where it begins."""
    names: dict[float, list[str]] = {}
    for mark in series.marks:
        begins, ends = (_days(min(at, series.edges[-1])) for at in (mark.begins_at, mark.ends_at))
        if begins < times[-1]:
            names.setdefault(begins, []).append(mark.name)
            for axes in panels:
                for moment in (begins, ends) if ends < times[-1] else (begins,):
                    axes.axvline(moment, color=theme.ink, linewidth=0.9, linestyle=":")
    for row, (begins, called) in enumerate(sorted(names.items())):
        is_late = begins > (times[0] + times[-1]) / 2
        label = panels[0].annotate(
            one_line(", ".join(called), 60),
            (begins, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if is_late else 3, -3 - 10 * (row % 3)),
            textcoords="offset points",
            ha="right" if is_late else "left",
            va="top",
            fontsize=7.5,
            bbox={"facecolor": theme.paper, "alpha": 0.75, "linewidth": 0, "pad": 1.0},
        )
        label.set_in_layout(False)


def _days(at: float) -> float:
    return float(date2num(np.float64(at * 1000).astype("datetime64[ms]")))


def _legend_above(axes: Axes) -> None:
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        borderaxespad=0.2,
        handlelength=1.2,
        columnspacing=1.4,
    )


def _nearest(sites: Sequence[str], nearness: dict[str, float]) -> list[str]:
    """Those nearest to a limit, in their usual order."""
    kept = sorted(sites, key=lambda site: -nearness[site])[:MOST_PANELS]
    return [site for site in sites if site in kept]


def _alike(series: Series, columns: Sequence[int]) -> list[list[int]]:
    """Columns of feeds that carry the same under the same cap, taken together."""
    groups: list[list[int]] = []
    for column in columns:
        for group in groups:
            if all(
                np.allclose(table[:, column], table[:, group[0]], rtol=1e-3)
                for table in (series.feed_watts, series.feed_peak_watts, series.feed_cap_watts)
            ):
                group.append(column)
                break
        else:
            groups.append([column])
    return groups


def _coarser(edges: Column, celsius: Column) -> tuple[Column, Column]:
    """Cells joined until there are few enough; the highest is kept."""
    each = -(-len(celsius) // _MOST_HEAT_COLUMNS)
    starts = np.arange(0, len(celsius), each)
    return np.append(edges[starts], edges[-1]), np.fmax.reduceat(celsius, starts, axis=0)


def _layers(sites: Sequence[str], rates: Column, theme: Theme) -> tuple[list[str], Column, list[str]]:
    """One layer for each of the largest sites, in their usual order, and one for all the others."""
    if len(sites) <= len(theme.sites):
        return [one_line(site, 40) for site in sites], rates, list(theme.sites[: len(sites)])
    largest = sorted(np.argsort(-np.abs(rates).sum(axis=0), kind="stable")[: len(theme.sites)])
    others = np.setdiff1d(np.arange(len(sites)), largest)
    layers = np.column_stack([rates[:, largest], rates[:, others].sum(axis=1)])
    names = [one_line(sites[at], 40) for at in largest] + [f"{len(others)} others"]
    return names, layers, [*theme.sites, theme.rest]


def _limits(limits: Column) -> str:
    known = [f"{limit:g}" for limit in np.unique(limits)]
    return f"{' or '.join(known[:3])}{' …' if len(known) > 3 else ''} °C"


def _scale(factor: float) -> Callable[[ArrayLike], Column]:
    return lambda values: np.asarray(values, dtype=np.float64) * factor


def _within(name: str, site: str) -> str:
    return one_line(name.removeprefix(f"{site}/"), 24)
