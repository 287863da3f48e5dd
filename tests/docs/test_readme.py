"""What the README asks the twin runs as it is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_questions_to_the_twin_are_answered() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Ask the twin\n")[2]
    found = re.search(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", found[1]],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "two-days on lab under default" in done.stdout
    assert "differences are against power-blind" in done.stdout
