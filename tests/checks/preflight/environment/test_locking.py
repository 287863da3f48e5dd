from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.asked import ask
from wattline.checks import Check
from wattline.checks.preflight.environment.dependencies import poetry_specifiers
from wattline.checks.preflight.environment.locking import check_lock

PYLOCK = 'lock-version = "1.0"\n[[packages]]\nname = "numpy"\nversion = "2.1.3"\n'


def locked(folder: Path, **files: str) -> list[Check]:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return list(check_lock(ask(folder)))


def project(*dependencies: str) -> str:
    listed = "".join(f"  {one!r},\n" for one in dependencies)
    return f'[project]\nname = "p"\ndependencies = [\n{listed}]\n'


def test_a_project_without_dependencies_is_skipped(tmp_path: Path) -> None:
    (check,) = locked(tmp_path)
    assert check.outcome == "skip"


def test_a_lock_in_step_passes(tmp_path: Path) -> None:
    (check,) = locked(tmp_path, pyproject__toml=project("NumPy>=2"), pylock__toml=PYLOCK)
    assert (check.outcome, check.message) == ("pass", "1 dependencies as declared")


def test_every_fault_has_its_line(tmp_path: Path) -> None:
    found = locked(tmp_path, pyproject__toml=project("numpy>=3", "scipy"), pylock__toml=PYLOCK)
    assert [(check.outcome, check.line) for check in found] == [("fail", 4), ("fail", 5)]
    assert found[0].message == "numpy is 2.1.3 in pylock.toml, which >=3 does not allow"
    assert found[1].message == "scipy is not in pylock.toml"


def test_a_dependency_of_another_platform_may_be_missing(tmp_path: Path) -> None:
    dependencies = project("numpy", 'pywin32; sys_platform == "win32"')
    (check,) = locked(tmp_path, pyproject__toml=dependencies, pylock__toml=PYLOCK)
    assert check.outcome == "pass"


def test_a_lock_may_hold_one_version_for_each_platform(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "numpy"\nversion = "1.26.4"\n[[package]]\nname = "numpy"\nversion = "2.1.3"\n'
    (check,) = locked(tmp_path, pyproject__toml=project("numpy>=2"), uv__lock=lock)
    assert check.outcome == "pass"


def test_what_comes_from_a_path_has_no_version_to_hold_against_it(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "mine"\nsource = { editable = "mine" }\n'
    (check,) = locked(tmp_path, pyproject__toml=project("mine>=3"), uv__lock=lock)
    assert check.outcome == "pass"


@pytest.mark.parametrize("text", ["no TOML", "[[package]\n", '[package]\nname = "x"\n'])
def test_a_lock_that_makes_no_sense_never_passes(tmp_path: Path, text: str) -> None:
    (check,) = locked(tmp_path, pyproject__toml=project("numpy"), uv__lock=text)
    assert check.outcome == "fail"
    assert check.fix


def test_pinned_requirements_need_no_lock_and_loose_ones_are_a_warning(tmp_path: Path) -> None:
    text = "numpy==2.1.3 \\\n    --hash=sha256:00\n-r more.txt\n"
    (check,) = locked(tmp_path, requirements__txt=text)
    assert check.outcome == "pass"
    (check,) = locked(tmp_path, requirements__txt=text + "scipy>=1  # any\n")
    assert (check.outcome, check.line) == ("warn", 4)
    assert check.message == "no lock file: scipy may be another version at every run"


def test_requirements_compiled_from_a_project_are_its_lock(tmp_path: Path) -> None:
    found = locked(tmp_path, pyproject__toml=project("numpy>=2"), requirements__txt="numpy==1.26.4\n")
    assert [check.message for check in found] == [
        "numpy is 1.26.4 in requirements.txt, which >=2 does not allow"
    ]
    (check,) = locked(tmp_path, requirements__txt="numpy==2.1.3\nmine @ git+https://example.org/mine@0a1b\n")
    assert (check.outcome, check.subject) == ("pass", "requirements.txt")
    (check,) = locked(tmp_path, requirements__txt="numpy>=2\n")
    assert (check.outcome, check.subject) == ("warn", "")


@pytest.mark.parametrize(
    ("written", "allowed", "refused"),
    [
        ("^1.2", "1.9.1", "2.0"),
        ("^0.3.1", "0.3.9", "0.4.0"),
        ("~1.2.3", "1.2.9", "1.3.0"),
        ("~1", "1.9", "2.0"),
        ("1.2.*", "1.2.9", "1.3"),
        ("2.1.3", "2.1.3", "2.1.4"),
        (">=1,<3", "2.9", "3.0"),
        ("~=1.4", "1.9", "2.0"),
    ],
)
def test_poetry_bounds_mean_what_poetry_means(written: str, allowed: str, refused: str) -> None:
    assert poetry_specifiers(written).contains(allowed)
    assert not poetry_specifiers(written).contains(refused)


FILES = ["pyproject.toml", "uv.lock", "poetry.lock", "pylock.toml", "requirements.in", "requirements.txt"]
WORDS = [
    "[project]\n",
    "dependencies = ",
    "[[package]]\n",
    'name = "a"\n',
    '"a>=1"',
    "a==1\n",
    "[",
    "]",
    "\\\n",
    "; x",
]


@given(texts=st.dictionaries(st.sampled_from(FILES), st.lists(st.sampled_from(WORDS) | st.text(max_size=5))))
def test_no_file_however_broken_stops_the_others(texts: dict[str, list[str]]) -> None:
    with TemporaryDirectory() as folder:
        for file, parts in texts.items():
            (Path(folder) / file).write_text("".join(parts), encoding="utf-8", errors="replace")
        found = list(check_lock(ask(Path(folder))))
    assert found
    assert all(check.fix for check in found if check.outcome == "fail")


@pytest.mark.parametrize("written", ["*", "", "^1.2 || ^3", "nonsense"])
def test_bounds_that_are_not_understood_allow_all(written: str) -> None:
    assert poetry_specifiers(written).contains("7.0")
