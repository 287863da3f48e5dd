from __future__ import annotations

from pathlib import Path

import pytest

from checks.asked import ask
from wattline.checks import Check
from wattline.checks.preflight.environment.importing import check_imports


def checked(folder: Path, run: str = "python train.py", image: str | None = None) -> list[Check]:
    return list(check_imports(ask(folder, phases={"train": {"run": run}}, image=image)))


def only(checks: list[Check]) -> Check:
    (check,) = checks
    return check


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    "run", ["true", "bash train.sh", "python -c 'import x'", "torchrun train.py", "python 'x"]
)
def test_what_is_no_python_script_is_skipped_and_told(tmp_path: Path, run: str) -> None:
    assert only(checked(tmp_path, run)).outcome == "skip"


def test_imports_are_followed_through_local_modules(tmp_path: Path) -> None:
    write(tmp_path, train="import os.path\nimport model\n", model="from layers.dense import Dense\n")
    write(
        tmp_path,
        layers__dense="import numpy\nfrom . import norm\nfrom .norm import x\n",
        layers__norm="x = 1\n",
    )
    check = only(checked(tmp_path))
    assert (check.outcome, check.message) == ("pass", "imports of 4 files resolve")


def test_a_module_that_nobody_provides_fails_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    write(tmp_path, train="import json\nimport modell\n", model="")
    check = only(checked(tmp_path))
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 2)
    assert check.fix == "did you mean model?"


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import nowhere\nexcept ImportError:\n    nowhere = None\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nowhere\n",
        "import sys\nif sys.version_info < (3, 0):\n    import nowhere\n",
        "def main():\n    import nowhere\n",
        "'import nowhere'\n",
    ],
)
def test_an_import_that_may_not_happen_is_left_alone(tmp_path: Path, code: str) -> None:
    write(tmp_path, train=code)
    assert only(checked(tmp_path)).outcome == "pass"


def test_a_script_that_python_warns_of_is_read(tmp_path: Path) -> None:
    write(tmp_path, train="import re\nre.compile('\\d')\n")
    assert only(checked(tmp_path)).outcome == "pass"


def test_an_import_behind_the_main_guard_happens(tmp_path: Path) -> None:
    write(tmp_path, train="if __name__ == '__main__':\n    import nowhere\n")
    assert only(checked(tmp_path)).line == 2


@pytest.mark.parametrize("code", ["def f(:\n", "\0", "(" * 5000])
def test_what_is_no_python_fails(tmp_path: Path, code: str) -> None:
    write(tmp_path, train=code)
    check = only(checked(tmp_path))
    assert check.outcome == "fail"
    assert check.message.startswith("train.py is no Python: ")


def test_nothing_is_run(tmp_path: Path) -> None:
    write(
        tmp_path, train="import side\nraise SystemExit(1)\n", side=f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    )
    assert only(checked(tmp_path)).outcome == "pass"
    assert not (tmp_path / "ran").exists()


def test_declared_distributions_provide_modules_of_other_names(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("opencv-python-headless==4\nhydra-core==1\nsome-thing==1\n")
    write(tmp_path, train="import cv2\nimport hydra\nimport some_thing.inner\n")
    assert only(checked(tmp_path)).outcome == "pass"


def test_what_is_not_declared_may_come_with_the_image(tmp_path: Path) -> None:
    write(tmp_path, train="import megatron_of_ours\n")
    assert only(checked(tmp_path)).outcome == "warn"
    (tmp_path / "requirements.txt").write_text("numpy==2\n")
    assert only(checked(tmp_path)).outcome == "fail"
    check = only(checked(tmp_path, image="registry/x@sha256:" + "0" * 64))
    assert (check.outcome, check.message) == (
        "skip",
        "megatron_of_ours: not declared here, may come with the image",
    )


def test_a_script_finds_its_neighbours_and_a_module_what_is_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, tools__train="import layers_of_ours\n", layers_of_ours="", tools____init__="")
    check = only(checked(tmp_path, "python tools/train.py"))
    assert (check.outcome, check.fix) == ("fail", "start it with `python -m` from the folder")
    assert only(checked(tmp_path, "python -m tools.train")).outcome == "pass"
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert only(checked(tmp_path, "python tools/train.py")).outcome == "pass"


def test_a_folder_of_data_hides_no_module(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "a.npy").write_bytes(b"")
    write(tmp_path, train="import numpy.linalg\n")
    assert only(checked(tmp_path)).outcome == "pass"
