from __future__ import annotations

import subprocess
import sys

import pytest

from cli.looking import Wattline

COMMANDS = [
    ("init",),
    ("run",),
    ("status",),
    ("explain",),
    ("logs",),
    ("promote",),
    ("rollback",),
    ("lineage",),
    ("facility", "show"),
    ("facility", "check"),
    ("data", "pin"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_an_output_format(
    command: tuple[str, ...], wattline: Wattline
) -> None:
    helped = wattline(*command, "--help")
    assert helped.code == 0
    assert f"Example: wattline {' '.join(command)}" in helped.out
    assert "--output" in helped.out


def test_the_help_lists_every_command(wattline: Wattline) -> None:
    helped = wattline("--help")
    assert all(command[0] in helped.out for command in COMMANDS)


def test_the_version_is_told(wattline: Wattline) -> None:
    from wattline import __version__

    assert wattline("--version").out == f"wattline {__version__}\n"


def test_help_imports_almost_nothing() -> None:
    heavy = [
        "numpy",
        "sqlalchemy",
        "pydantic",
        "msgspec",
        "alembic",
        "cel_expr_python",
        "yaml",
        "pynvml",
    ]
    program = f"""
import sys
sys.argv = ["wattline", "--help"]
from wattline.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


def test_wrong_usage_has_exit_code_2(wattline: Wattline) -> None:
    assert wattline("stauts").code == 2
    assert wattline("status", "--output", "xml").code == 2
    assert wattline("logs", "--attempt", "0").code == 2
