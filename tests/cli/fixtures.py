"""A state folder for tests: empty, with a writer in it, or one in which a pipeline really ran."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.looking import COMMAND, PIPELINE, TRAIN, Outcome, Wattline, Writing
from cli.running import Desk
from wattline.cli.app import run_app


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Where a test writes a pipeline and runs it; nothing is left running."""
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def wattline(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Wattline:
    """The command line in this process, through its real entry point."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("WATTLINE_DATABASE", raising=False)

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["wattline", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run_app()
        sys.stdout.flush()
        printed = capfd.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, printed.out, printed.err)

    return call


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder that does not exist yet."""
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder in which a small pipeline really ran once, and the pipeline's own folder beside it."""
    root = tmp_path_factory.mktemp("ran")
    team = root / "team"
    (team / "data").mkdir(parents=True)
    (team / "data" / "words.txt").write_text("one two three\n")
    (team / "train.py").write_text(TRAIN)
    (team / "wattline.yaml").write_text(PIPELINE)
    environment = {**os.environ, "WATTLINE_HOME": str(root / "home")}
    done = subprocess.run(
        [*COMMAND, "run"], cwd=team, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def ran(kept: Path, home: Path) -> str:
    """The id of the run in this test's own copy of that state folder."""
    shutil.copytree(kept / "home", home, symlinks=True)
    return next((home / "runs").iterdir()).name


@pytest.fixture
def writing(home: Path) -> Iterator[Writing]:
    home.parent.mkdir(exist_ok=True)
    writer = Writing(home)
    yield writer
    writer.session.close()
