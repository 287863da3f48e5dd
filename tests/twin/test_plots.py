from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from twin.recording import BEGINS_AT, a_layout, a_report, a_timeline
from wattline.errors import UnavailableError
from wattline.twin.plots import draw_pictures, write_plots
from wattline.twin.theme import DARK, LIGHT
from wattline.twin.timeline import Mark, Sample, Timeline

ALL = ["utilisation", "power", "heat", "queue", "carbon"]
SMALL = a_layout(("ashburn",), racks=3)


def width_of(png: bytes) -> int:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20], "big")


def test_every_question_has_a_picture_that_is_wide_enough(tmp_path: Path) -> None:
    paths = write_plots(a_report(), a_timeline(days=1), tmp_path / "new" / "folder")
    assert [path.stem for path in paths] == ALL
    assert all(width_of(path.read_bytes()) == 1200 for path in paths)


def test_the_same_replay_gives_the_same_bytes_whatever_a_user_has_set() -> None:
    series = a_timeline(days=0.1, layout=SMALL).series()
    first = draw_pictures(a_report(), series, LIGHT)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "green", "text.parse_math": True}):
        assert draw_pictures(a_report(), series, LIGHT) == first
    assert [each.png for each in draw_pictures(a_report(), series, DARK)] != [each.png for each in first]


def test_drawing_leaves_no_setting_behind_and_asks_for_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = mpl.rcParams.copy()  # reading them one by one would choose a backend
    draw_pictures(a_report(), a_timeline(days=0.1, layout=SMALL).series(), DARK)
    assert mpl.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules


def test_names_from_outside_are_names_whatever_they_look_like() -> None:
    layout = a_layout(("$\\frac$ 東京\nx" + "y" * 200, "$"), racks=2)
    report = a_report(trace="$\\alpha_{$ \x07", facility="<b>", policy="%s{}" * 100)
    assert len(draw_pictures(report, a_timeline(days=0.1, layout=layout).series(), LIGHT)) == len(ALL)


def test_what_is_not_known_is_left_out() -> None:
    timeline = Timeline(0.0, SMALL)
    timeline.finish(60.0, Sample(site_usd=(1.0,), site_kg=(1.0,)))
    pictures = draw_pictures(a_report(carbon_kg=None, cost_usd=None), timeline.series(), LIGHT)
    assert [picture.name for picture in pictures] == ["utilisation", "power", "queue"]


def test_many_sites_show_those_nearest_to_a_limit_and_say_so() -> None:
    layout = a_layout(tuple(f"site-{number:02d}" for number in range(9)), racks=1)
    pictures = {
        each.name: each
        for each in draw_pictures(a_report(), a_timeline(days=0.1, layout=layout).series(), LIGHT)
    }
    assert "6 of 9 sites" in pictures["power"].shows
    assert "6 of 9 sites" in pictures["heat"].shows


def test_a_price_below_zero_is_drawn_too() -> None:
    timeline = Timeline(0.0, SMALL)
    timeline.sample(30.0, Sample(site_usd=(-5.0,), site_kg=(1.0,)))
    timeline.finish(60.0, Sample(site_usd=(2.0,), site_kg=(2.0,)))
    assert "carbon" in {each.name for each in draw_pictures(a_report(), timeline.series(), LIGHT)}


def test_what_happened_is_marked_in_every_picture_also_where_it_does_not_end() -> None:
    def drawn(*marks: Mark) -> list[bytes]:
        timeline = Timeline(BEGINS_AT, SMALL, marks=marks)
        timeline.note_heat(0, 60.0)
        timeline.finish(BEGINS_AT + 600.0, Sample(site_usd=(1.0,), site_kg=(1.0,)))
        return [each.png for each in draw_pictures(a_report(), timeline.series(), LIGHT)]

    plain = drawn()
    five_minutes = drawn(Mark("pumps-stopped", BEGINS_AT + 60.0, BEGINS_AT + 360.0))
    for_good = drawn(Mark("pumps-stopped", BEGINS_AT + 60.0, math.inf))
    after_the_end = drawn(Mark("pumps-stopped", BEGINS_AT + 600.0, math.inf))
    assert len(plain) == len(ALL)
    assert all(len(set(each)) == 3 for each in zip(plain, five_minutes, for_good, strict=True))
    assert after_the_end == plain


def test_nothing_recorded_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="nothing to draw"):
        write_plots(a_report(), Timeline(0.0, SMALL), tmp_path)


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(UnavailableError, match=r"pip install 'wattline\[plots\]'"):
        write_plots(a_report(), a_timeline(days=0.05, layout=SMALL), tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="file"):
        write_plots(a_report(), a_timeline(days=0.05, layout=SMALL), tmp_path / "file")
