"""An observation on one page that can be mailed and kept: no script, no request, nothing outside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from wattline.errors import UnavailableError
from wattline.observing.observing import Seen
from wattline.observing.plots import draw_observation
from wattline.observing.report import Report
from wattline.observing.wording import (
    asked_rows,
    limit_rows,
    loss_rows,
    replay_rows,
    say_headline,
    say_not_known,
    say_window,
    state_rows,
)
from wattline.twin.page import show_picture, show_table, whole_page
from wattline.twin.theme import DARK, LIGHT


def write_observation(report: Report, seen: Seen, path: Path) -> None:
    by_day, by_night = (draw_observation(report, seen, theme) for theme in (LIGHT, DARK))
    pictures = [show_picture(day, night) for day, night in zip(by_day, by_night, strict=True)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(whole_page(say_headline(report), _body(report, pictures)), encoding="utf-8")
    except OSError as error:
        raise UnavailableError(f"{path}: the page cannot be written: {error.strerror}") from error


def _body(report: Report, pictures: Sequence[str]) -> Iterator[str]:
    yield f"<h1>{escape(say_headline(report))}</h1>"
    yield f'<p class="said">{escape(say_window(report))}</p>'
    yield from pictures
    yield _section("What was lost", *loss_rows(report))
    yield _section("GPUs at work", *state_rows(report))
    yield _section("Racks, supplies and loops", *limit_rows(report))
    if report.replay is not None:
        title = f"What Wattline would have decided (emulated: {report.replay.jobs:,} jobs in the twin)"
        said = f"{report.replay.say}; {report.replay.how_sure}"
        yield f"<section><h2>{escape(title)}</h2><p>{escape(said)}</p>"
        yield show_table(*replay_rows(report.replay))
        yield f'<p class="said">not in it: {escape("; ".join(report.replay.left_out))}</p></section>'
    yield _list("What to know about these figures", report.remarks)
    yield _list("What is not known", say_not_known(report))
    yield _list("Next", report.next_steps)
    yield _section("All that was asked; nothing was changed", *asked_rows(report))


def _section(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"<section><h2>{escape(title)}</h2>{show_table(header, rows)}</section>" if rows else ""


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>{escape(title)}</h2><ul>{items}</ul></section>" if lines else ""
