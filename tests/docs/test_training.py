"""The page about training: its scripts run, and end in the same bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wattline import train
from wattline.spec import Pipeline, parse_document

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
TEXT = PAGE.read_text(encoding="utf-8")


def script(name: str) -> str:
    (found,) = re.findall(rf"^```python {name}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return str(found)


def run(source: str, folder: Path, **environment: str) -> int:
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(source)
    own = {name: value for name, value in os.environ.items() if not name.startswith("WATTLINE_")}
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=own | {"OMP_NUM_THREADS": "1"} | environment,
        check=False,
        timeout=120,
    )
    return done.returncode


def test_both_scripts_end_with_the_same_weights(tmp_path: Path) -> None:
    for name in ("before", "after"):
        assert run(script(name), tmp_path / name) == 0
    before, after = (tmp_path / name / "out" / "weights.npy" for name in ("before", "after"))
    assert before.read_bytes() == after.read_bytes()


def test_the_second_script_goes_on_after_a_pause_as_if_there_had_been_none(tmp_path: Path) -> None:
    assert run(script("after"), tmp_path / "alone") == 0
    attempt, checkpoints = tmp_path / "attempt", tmp_path / "checkpoints"
    attempt.mkdir()
    controlled = {"WATTLINE_ATTEMPT": str(attempt), "WATTLINE_CHECKPOINTS": str(checkpoints)}
    ask = f"open({str(attempt / 'desired.json')!r}, 'w').write('{{\"pause\": true}}')"
    pausing = script("after").replace("    run.log(", f"    if step == 20:\n        {ask}\n    run.log(")
    assert run(pausing, tmp_path / "paused", **controlled) == train.PAUSED_EXIT_CODE
    (attempt / "desired.json").unlink()
    assert run(script("after"), tmp_path / "paused", **controlled, WATTLINE_EPOCH="2") == 0
    resumed, alone = (tmp_path / name / "out" / "weights.npy" for name in ("paused", "alone"))
    assert resumed.read_bytes() == alone.read_bytes()


def test_the_exit_codes_are_told() -> None:
    for code in (train.PAUSED_EXIT_CODE, train.FENCED_EXIT_CODE):
        assert re.search(rf"^\| {code} \|", TEXT, re.MULTILINE)


def test_the_phase_with_signals_is_one() -> None:
    (phase,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    indented = "".join(f"  {line}\n" for line in phase.splitlines())
    document = f"pipeline: p\nmodel: m\nowner: o\nproject: o\nphases:\n{indented}"
    parse_document(document.encode(), Pipeline, file=PAGE.name)


@pytest.mark.parametrize("name", ["_environment", "_PASSED_ON", "_ONE_THREAD"])
def test_every_variable_that_an_attempt_is_given_is_named(name: str) -> None:
    source = (PAGE.parents[1] / "src" / "wattline" / "live" / "launching.py").read_text(encoding="utf-8")
    start = source.index(f"{name} =" if name.isupper() else f"def {name}(")
    variables = re.findall(
        r'"([A-Z][A-Z_]{1,})"', source[start:].partition("\n\n\n" if name.islower() else "\n)")[0]
    )
    assert variables
    assert [variable for variable in variables if f"`{variable}`" not in TEXT] == []
