"""What people copy into their CI: valid by the published schemas, safe by construction, and run here once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.runner import Runner
from wattline.checks.reading import read_report

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    "action.yml": "vendor.github-actions",
    "ci/github/wattline-check.yml": "vendor.github-workflows",
    "ci/github/wattline-comment.yml": "vendor.github-workflows",
    "ci/gitlab/wattline.gitlab-ci.yml": "vendor.gitlab-ci",
}
# No packaged schema of pre-commit's manifest: its required keys, and those used here.
HOOK_KEYS = {"id", "name", "entry", "language"}
KNOWN_HOOK_KEYS = HOOK_KEYS | {
    "description",
    "additional_dependencies",
    "pass_filenames",
    "types_or",
    "require_serial",
}


def load(name: str) -> Any:
    document = yaml.safe_load((ROOT / name).read_text())
    return {str(key): value for key, value in document.items()}  # YAML 1.1 reads `on` as true


def steps(name: str) -> list[dict[str, Any]]:
    document = load(name)
    found = (
        document["runs"]["steps"]
        if name == "action.yml"
        else [step for job in document["jobs"].values() for step in job["steps"]]
    )
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_files_are_valid_by_the_published_schemas(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[name], str(ROOT / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_has_what_pre_commit_requires() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert set(hook) >= HOOK_KEYS
    assert set(hook) <= KNOWN_HOOK_KEYS
    assert hook["id"] == "wattline-check"
    assert hook["entry"].split() == ["wattline", "check"]


@pytest.mark.parametrize("name", [name for name in SCHEMAS if "gitlab" not in name])
def test_actions_of_others_are_pinned_to_a_commit_with_the_version_beside_it(name: str) -> None:
    uses = re.findall(r"uses: (\S+)(.*)", (ROOT / name).read_text())
    assert uses
    for used, comment in uses:
        if not used.startswith("wattline/"):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), used
            assert re.match(r" # v\d+\.\d+\.\d+", comment), used


@pytest.mark.parametrize("name", [name for name in SCHEMAS if "gitlab" not in name])
def test_no_text_from_outside_is_written_into_a_script(name: str) -> None:
    scripts = [step["run"] for step in steps(name) if "run" in step]
    for script in scripts:
        assert "${{" not in script
        assert script.startswith("set -euo pipefail\n")


def test_the_job_that_runs_a_pull_request_may_only_read_and_has_no_secret() -> None:
    text = (ROOT / "ci/github/wattline-check.yml").read_text()
    document = load("ci/github/wattline-check.yml")
    assert document["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in text
    assert "secrets" not in text
    checkout = next(step for step in steps("ci/github/wattline-check.yml") if "checkout" in step["uses"])
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_the_job_that_may_write_runs_nothing_of_the_pull_request() -> None:
    document = load("ci/github/wattline-comment.yml")
    assert document["permissions"] == {}
    (job,) = document["jobs"].values()
    assert job["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    (posting,) = [step for step in job["steps"] if "wattline comment" in step.get("run", "")]
    assert "report.json" in posting["run"]
    assert "--pull-request" not in posting["run"]  # looked up, not read from the artifact
    assert posting["env"]["COMMIT"] == "${{ github.event.workflow_run.head_sha }}"


def test_the_two_workflows_speak_of_the_same_names() -> None:
    checked, comment = load("ci/github/wattline-check.yml"), load("ci/github/wattline-comment.yml")
    assert comment["True"]["workflow_run"]["workflows"] == [checked["name"]]
    download = next(
        step for step in steps("ci/github/wattline-comment.yml") if "download" in step.get("uses", "")
    )
    assert download["with"]["name"] == load("action.yml")["inputs"]["artifact"]["default"]


def test_gitlab_keeps_the_files_that_a_report_is_written_to() -> None:
    document = load("ci/gitlab/wattline.gitlab-ci.yml")
    reports = document["wattline-check"]["artifacts"]["reports"]
    assert reports == {
        "metrics": "wattline-report/metrics.txt",
        "codequality": "wattline-report/codequality.json",
        "junit": "wattline-report/junit.xml",
    }
    assert document["wattline-note"]["variables"]["GIT_STRATEGY"].startswith("none")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    shutil.copytree(ROOT / "examples" / "tiny-lm", folder / "models")
    return folder


@pytest.fixture
def runner(workspace: Path, tmp_path: Path) -> Runner:
    """A runner whose `python -m venv` makes an environment with this wattline in it; pip installs nothing."""
    tools, temporary = tmp_path / "tools", tmp_path / "runner temp"
    tools.mkdir()
    temporary.mkdir()
    wattline = Path(sys.executable).with_name("wattline")
    here = f'export WATTLINE_HOME="{tmp_path}/home"; printf "asked: %s\n" "$(printf "[%s]" "$@")" >&2'
    stub = f'{here}; exec "{wattline}" "$@"'
    python = tools / "python"
    python.write_text(
        "#!/usr/bin/env bash\nset -eu\n"
        '[[ $1 == -m && $2 == venv ]] || { echo "no: $*" >&2; exit 9; }\n'
        'mkdir -p "$3/bin"\n'
        'printf \'#!/usr/bin/env bash\\necho "pip: $*"\\n\' > "$3/bin/python"\n'
        f"cat > \"$3/bin/wattline\" <<'END'\n#!/usr/bin/env bash\n{stub}\nEND\n"
        'chmod +x "$3/bin/python" "$3/bin/wattline"\n'
    )
    python.chmod(0o755)
    return Runner(ROOT / "action.yml", workspace, temporary, f"{tools}:{os.environ['PATH']}")


RULE = "rules: [{{name: no, when: job.gpus > 0, say: not today, mode: {mode}}}]\n"


def test_the_action_checks_annotates_sums_up_and_keeps_the_report(workspace: Path, runner: Runner) -> None:
    (workspace / "models" / "warn.yaml").write_text(RULE.format(mode="warn"))
    played = runner.play(working_directory="models", policy="warn.yaml", facility="lab")
    assert played.failed is None, played.stderr
    assert played.used == ["actions/setup-python", "actions/upload-artifact"]
    assert f"{ROOT}[control]" in played.stdout
    assert "::warning file=wattline.yaml" in played.stdout
    assert "not today" in played.stdout
    assert played.summary.startswith("<!-- wattline:check:")
    report = read_report(Path(played.outputs["report"]) / "report.json")
    assert report.verdict == played.outputs["verdict"] == "warn"
    assert played.outputs["comment"] == "true"
    assert report.phases[1].gpu_hours == pytest.approx(8 / 3)  # its longest


def test_a_pull_request_is_compared_with_its_base_and_inputs_are_one_word_each(runner: Runner) -> None:
    played = runner.play(
        {"pull_request.base.sha": "abc123"},
        working_directory="models",
        facility="$(touch pwned); x y",
        rehearse="true",
        source="wattline[control]==0.1.0",
    )
    assert played.failed == "Verdict", "there is no such base"
    asked = "[--facility][$(touch pwned); x y][--base][abc123][--rehearse][--no-secrets]"
    assert asked in played.stderr
    assert "wattline[control]==0.1.0" in played.stdout
    assert str(ROOT) not in played.stdout


@pytest.mark.parametrize(
    ("verdict", "fail_on", "fails"),
    [
        ("pass", "block", False),
        ("warn", "block", False),
        ("block", "block", True),
        ("pass", "warn", False),
        ("warn", "warn", True),
        ("block", "warn", True),
        ("block", "never", False),
        ("pass", "nonsense", True),
    ],
)
def test_the_job_fails_when_it_is_asked_to(
    workspace: Path, runner: Runner, verdict: str, fail_on: str, fails: bool
) -> None:
    rules = "" if verdict == "pass" else RULE.format(mode=verdict)
    (workspace / "models" / "policy.yaml").write_text(f"policy: {verdict}\n{rules}")
    played = runner.play(working_directory="models", policy="policy.yaml", facility="lab", fail_on=fail_on)
    assert played.failed == ("Verdict" if fails else None), played.stderr
    assert played.outputs["verdict"] == verdict
    assert "actions/upload-artifact" in played.used  # a report is kept whatever it says


def test_a_check_that_cannot_be_made_fails_the_job_always(runner: Runner) -> None:
    played = runner.play(working_directory="models", pipeline="none.yaml", fail_on="never")
    assert played.failed == "Verdict"
    assert "the check could not be made (exit code 3)" in played.stdout


def test_without_an_artifact_and_a_python_nothing_else_is_used(runner: Runner) -> None:
    assert runner.play(working_directory="models", artifact="", python_version="").used == []


def test_gitlab_s_script_asks_for_the_same_check(workspace: Path, tmp_path: Path) -> None:
    job = load("ci/gitlab/wattline.gitlab-ci.yml")["wattline-check"]
    script = job["script"][0].replace("/tmp/wattline/bin/wattline", "echo asked:")
    environment = {
        "PATH": os.environ["PATH"],
        "WATTLINE_PIPELINE": "wattline.yaml",
        "WATTLINE_POLICY": "a b",
        "WATTLINE_FACILITY": "",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc",
    }
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (
        done.stdout
        == "asked: check wattline.yaml --no-secrets --report wattline-report --policy a b --base abc\n"
    )
