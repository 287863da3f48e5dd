"""A replay on one page that can be mailed, printed and kept: no script, no request, nothing outside it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from wattline.errors import UnavailableError
from wattline.twin.figures import (
    Group,
    figures_of,
    side_by_side,
    site_table,
    size_table,
    slo_table,
    wait_table,
)
from wattline.twin.findings import find_excess, find_what_binds
from wattline.twin.plots import FOOTER, Picture, draw_pictures
from wattline.twin.report import Report
from wattline.twin.scenario import Played
from wattline.twin.theme import DARK, LIGHT, Theme
from wattline.twin.timeline import Timeline
from wattline.twin.wording import say_ratio

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_page(report: Report, timeline: Timeline, path: Path, played: Played | None = None) -> None:
    """Pictures twice, by day and by night; a browser shows those that fit."""
    series = timeline.series()
    by_day, by_night = (draw_pictures(report, series, theme) for theme in (LIGHT, DARK))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_page(report, by_day, by_night, played), encoding="utf-8")
    except OSError as error:
        raise UnavailableError(f"{path}: the page cannot be written: {error.strerror}") from error


def render_page(
    report: Report, by_day: Sequence[Picture], by_night: Sequence[Picture], played: Played | None = None
) -> str:
    title = f"{report.trace} on {report.facility} under {report.policy}"
    body = [
        f"<h1>{escape(title)}</h1>",
        "" if played is None else f"<p>{escape(played.say)}</p>",
        f'<p class="said">{escape(FOOTER)}</p>',
        "" if played is None else _scenario(played),
        *(show_picture(day, night) for day, night in zip(by_day, by_night, strict=True)),
        '<section class="figures"><h2>Figures</h2><div class="groups">',
        *(show_group(group) for group in figures_of(report)),
        "</div></section>",
        _sites(report),
        _sizes(report),
        _waits(report),
        _slos(report),
        _refusals(report),
        f"<footer>seed {report.seed}, digest <code>{escape(report.digest)}</code></footer>",
    ]
    return whole_page(title, body)


def whole_page(title: str, body: Iterable[str]) -> str:
    """Around what a page says: its style, and a word to the browser to run and fetch nothing."""
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            # Even if something slipped through escaping, the browser would neither run nor fetch it.
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
            *filter(None, body),
            "</main></body></html>\n",
        ]
    )


def show_picture(day: Picture, night: Picture) -> str:
    # Paper is white at night too.
    return (
        f'<figure><picture><source media="screen and (prefers-color-scheme: dark)" srcset="{_data(night)}">'
        f'<img src="{_data(day)}" alt="{escape(day.finding)}: {escape(day.shows)}"></picture></figure>'
    )


def _data(picture: Picture) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.png).decode('ascii')}"


def show_group(group: Group) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in group.figures
    )
    return f"<table><caption>{escape(group.title)}</caption><tbody>{rows}</tbody></table>"


def _scenario(played: Played) -> str:
    """Both policies side by side; nothing where one stands alone, as all of it is below."""
    if played.against is None:
        return ""
    ours, theirs = played.report, played.against
    table = show_table(("", ours.policy, theirs.policy), side_by_side([ours, theirs]))
    ratio = say_ratio(played.useful_gpu_hours_ratio)
    said = f"useful GPU-hours, {ours.policy} for each of {theirs.policy}: {ratio}"
    excess = find_excess(theirs)
    said = f"{said}. {excess}" if excess else said
    pictured = f"Pictures and figures below are those of {ours.policy}."
    heading = f"{ours.policy} beside {theirs.policy}"
    return f"<section><h2>{escape(heading)}</h2>{table}<p>{escape(said)}. {escape(pictured)}</p></section>"


def _sites(report: Report) -> str:
    header, rows = site_table(report)
    return f"<section><h2>Sites</h2>{show_table(header, rows)}</section>" if rows else ""


def _sizes(report: Report) -> str:
    header, rows = size_table(report)
    return f"<section><h2>Waits by size</h2>{show_table(header, rows)}</section>" if rows else ""


def _waits(report: Report) -> str:
    header, rows = wait_table(report)
    told = f"<p>{escape(find_what_binds(report))}.</p>"
    return f"<section><h2>What jobs waited for</h2>{show_table(header, rows)}{told}</section>" if rows else ""


def _slos(report: Report) -> str:
    header, rows = slo_table(report)
    return f"<section><h2>What teams may count on</h2>{show_table(header, rows)}</section>" if rows else ""


def _refusals(report: Report) -> str:
    if not report.refused_because:
        return ""
    most_first = sorted(report.refused_because.items(), key=lambda item: (-item[1], item[0]))
    rows = [(rule, f"{count:,}") for rule, count in most_first]
    return f"<section><h2>Why jobs were refused</h2>{show_table(('rule', 'jobs'), rows)}</section>"


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = ""
    for first, *cells in rows:
        values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body += f'<tr><th scope="row">{escape(first)}</th>{values}</tr>'
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _colours(theme: Theme) -> str:
    return f"--paper:{theme.paper};--ink:{theme.ink};--muted:{theme.muted};--line:{theme.grid}"


_STYLE = f"""
:root{{{_colours(LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_colours(DARK)}}}}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}}
main{{max-width:1200px;margin:0 auto;padding:1.5rem 1rem 3rem}}
h1{{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}}
h2{{font-size:1.15rem;margin:2rem 0 .5rem}}
.said,footer{{color:var(--muted);margin:0 0 1rem}}
footer{{font-size:.85rem;margin-top:2.5rem;overflow-wrap:anywhere}}
figure{{margin:1.5rem 0;break-inside:avoid}}
img{{max-width:100%;height:auto;display:block}}
.groups{{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:1rem 3rem}}
.groups>*{{align-self:start}}
.wide{{overflow-x:auto}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;break-inside:avoid}}
caption{{text-align:left;font-weight:600;padding:.5rem 0 .25rem}}
th,td{{padding:.3rem .75rem .3rem 0;border-bottom:1px solid var(--line);font-weight:400;text-align:right}}
th:first-child{{text-align:left;overflow-wrap:anywhere}}
td:last-child,thead th:last-child{{padding-right:0}}
thead th,tbody th{{color:var(--muted)}}
@media print{{main{{max-width:none;padding:0}}body{{font-size:11pt}}}}
"""
