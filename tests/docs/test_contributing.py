"""The judge in CONTRIBUTING.md works, and its test passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def block(mark: str) -> str:
    (found,) = re.findall(
        rf"^```python {mark}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(found)


def test_the_judge_that_is_shown_passes_the_test_that_is_shown(tmp_path: Path) -> None:
    (tmp_path / "size.py").write_text(block("judge"))
    (tmp_path / "test_size.py").write_text(f"from size import judge_size\n{block('test')}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
