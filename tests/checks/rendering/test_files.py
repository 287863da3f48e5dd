from __future__ import annotations

from pathlib import Path

import pytest

from checks.rendering.sample import BLOCKED, HOSTILE
from wattline.checks.reading import read_report
from wattline.checks.rendering import render_junit, write_renderings
from wattline.checks.rendering.files import FILES
from wattline.errors import UnavailableError


def test_every_rendering_is_written_and_the_report_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "report"
    write_renderings(BLOCKED, folder)
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert read_report(folder / "report.json") == BLOCKED
    assert (folder / "junit.xml").read_text() == render_junit(BLOCKED)


def test_a_report_with_half_a_character_in_it_is_written_too(tmp_path: Path) -> None:
    write_renderings(HOSTILE, tmp_path)
    assert read_report(tmp_path / "report.json").verdict == "block"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="cannot be written"):
        write_renderings(BLOCKED, tmp_path / "file" / "x")
