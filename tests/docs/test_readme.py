"""What the README asks the twin runs as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_questions_to_the_twin_are_answered(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Ask the twin\n")[2]
    found = re.search(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        ["sh", "-e", "-c", found[1]],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "two-days on lab under default" in done.stdout
    assert "differences are against power-blind" in done.stdout
    assert "</html>" in (tmp_path / "feed-loss.html").read_text(encoding="utf-8")
