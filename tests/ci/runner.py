"""Plays the runner of a composite action: expressions, environment, bash, outputs. `uses:` is only noted."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from checks.rendering.test_github import read_outputs

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")


@dataclass(slots=True)
class Played:
    """What a run of the action came to."""

    failed: str | None = None  # the step
    stdout: str = ""
    stderr: str = ""
    summary: str = ""
    used: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)


class Runner:
    def __init__(self, action: Path, workspace: Path, temporary: Path, path: str) -> None:
        self._action: dict[str, Any] = yaml.safe_load(action.read_text())
        self._workspace, self._temporary, self._path = workspace, temporary, path
        self._known: dict[str, str] = {
            "github.action_path": str(action.parent),
            "runner.temp": str(temporary),
        }

    def play(self, event: dict[str, str] | None = None, **inputs: str) -> Played:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        unknown = set(given) - set(self._action["inputs"])
        assert not unknown, unknown
        self._known |= {f"github.event.{name}": value for name, value in (event or {}).items()}
        for name, declared in self._action["inputs"].items():
            self._known[f"inputs.{name}"] = given.get(name, str(declared["default"]))
        played = Played()
        for step in self._action["runs"]["steps"]:
            if "if" in step and self._value(step["if"]) != "true":
                continue
            if "uses" in step:
                played.used.append(step["uses"].partition("@")[0])
            elif not self._run(step, played):
                played.failed = step["name"]
                break
        for name, declared in self._action["outputs"].items():
            played.outputs[name] = self._value(declared["value"])
        return played

    def _run(self, step: dict[str, Any], played: Played) -> bool:
        output, summary = self._temporary / "output", self._temporary / "summary"
        output.write_text("")
        summary.touch()
        script = self._temporary / "step.sh"
        script.write_text(step["run"])
        environment = {
            "PATH": self._path,
            "HOME": os.environ.get("HOME", "/"),
            "RUNNER_TEMP": str(self._temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self._workspace),
            **{name: self._value(str(value)) for name, value in step.get("env", {}).items()},
        }
        folder = self._workspace / self._value(step.get("working-directory", "."))
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        played.stdout += done.stdout
        played.stderr += done.stderr
        played.summary = summary.read_text()
        for name, value in _outputs(output.read_text()).items():
            self._known[f"steps.{step.get('id', '')}.outputs.{name}"] = value
        return done.returncode == 0

    def _value(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self._evaluate(found[1]), text)

    def _evaluate(self, expression: str) -> str:
        """Names, texts, `||` and `!=`: what the action uses."""
        if "!=" in expression:
            left, right = expression.split("!=")
            return "true" if self._evaluate(left) != self._evaluate(right) else "false"
        for part in expression.split("||"):
            name = part.strip()
            value = name[1:-1] if name.startswith("'") else self._known.get(name, "")
            if value:
                return value
        return ""


def _outputs(text: str) -> dict[str, str]:
    """Both forms: name=value, and the one of several lines."""
    plain = [line for line in text.splitlines() if re.fullmatch(r"[a-z-]+=.*", line)]
    values = {name: value for name, _, value in (line.partition("=") for line in plain)}
    rest = "\n".join(line for line in text.splitlines() if line not in plain)
    return values | read_outputs(rest)
