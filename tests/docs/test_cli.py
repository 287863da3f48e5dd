"""The page about the command line names every command and option there is, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from wattline.cli.app import app

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### `wattline ([-a-z ]*[a-z]).*?`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
SECTIONS: dict[str, str] = dict(SECTION.findall(TEXT))
EVERYWHERE = {"--help", "-h", "--output", "-o"}


def commands_below(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    """By what groups have and commands lack: typer may bring a click of its own."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, below in inner.items():
        yield from commands_below(below, f"{words} {name}".strip())


COMMANDS = dict(commands_below(typer.main.get_command(app)))


def test_every_command_has_its_section_and_no_other_has() -> None:
    assert sorted(SECTIONS) == sorted(COMMANDS)


def test_every_option_stands_in_the_section_of_its_command_and_no_other_does() -> None:
    for words, command in COMMANDS.items():
        options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
        known = {spelling for option in options for spelling in (*option.opts, *option.secondary_opts)}
        rows = [line for line in SECTIONS[words].splitlines() if line.startswith("| `-")]
        told = {option for row in rows for option in re.findall(r"`(-[-a-z]*)`", row.split("|")[1])}
        assert told == known - EVERYWHERE, words
