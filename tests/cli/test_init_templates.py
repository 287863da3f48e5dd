"""`wattline init TEMPLATE`: what it writes reads, checks and runs at once, and nothing is written over."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.looking import COMMAND, Wattline
from cli.running import kill, wait_until
from wattline.errors import UsageError
from wattline.live import hash_data
from wattline.spec import read_pipeline, read_policy
from wattline.spec.shipped import find_template, shipped_templates

NAMES = ("evaluate", "fine-tune", "pretrain", "promote", "sweep")
SOURCE = find_template("sweep").parent


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_templates_are_these_and_each_says_what_it_is_for(wattline: Wattline) -> None:
    assert tuple(shipped_templates()) == NAMES
    told = {
        one["name"]: one["say"] for one in wattline("init", "--list", "--output", "json").json["templates"]
    }
    assert tuple(told) == NAMES
    listed = wattline("init", "--list")
    assert listed.code == 0
    for name, say in told.items():
        assert name.split("-")[0] in say.lower()
        assert name in listed.out


@pytest.mark.parametrize("template", NAMES)
def test_init_check_and_run_work_at_once_in_an_empty_folder(template: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {**os.environ, "WATTLINE_HOME": str(tmp_path / "home")}
    wattline = shlex.join(COMMAND)
    done = subprocess.run(
        f"{wattline} init {template} && {wattline} check -o json >checked && {wattline} run -o json >ran",
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "checked").read_text())["verdict"] == "pass"
    ran = json.loads((folder / "ran").read_text())
    assert ran["status"] == ("awaiting approval" if template == "promote" else "succeeded")
    assert ran["gates"]
    assert {gate["outcome"] for gate in ran["gates"]} == {"pass"}


@pytest.mark.parametrize("template", NAMES)
def test_its_own_policy_finds_nothing_wrong_with_it(
    template: str, in_folder: Path, home: Path, wattline: Wattline
) -> None:
    assert wattline("init", template).code == 0
    checked = wattline("check", "--policy", "policy.yaml", "--output", "json")
    assert checked.code == 0, checked.err
    assert checked.json["verdict"] == "pass"
    classes = read_policy(in_folder / "policy.yaml").classes
    assert {phase.class_ for phase in read_pipeline(in_folder / "wattline.yaml").phases.values()} <= set(
        classes
    )


@pytest.mark.parametrize("template", NAMES)
def test_what_is_written_carries_the_names_of_the_folder_and_the_user(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wattline: Wattline
) -> None:
    folder = tmp_path / "My Model (v2)"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LOGNAME", "Ada.Lovelace")
    told = wattline("init", template, "--output", "json").json
    pipeline = read_pipeline(folder / "wattline.yaml")
    assert (told["pipeline"], told["owner"]) == ("my-model-v2", "ada-lovelace")
    assert (pipeline.pipeline, pipeline.model, pipeline.owner) == (
        "my-model-v2",
        "my-model-v2",
        "ada-lovelace",
    )
    assert pipeline.release is None or pipeline.release.name == "my-model-v2"
    assert set(told["written"]) == files_below(folder)
    for path in folder.rglob("*"):
        if path.suffix in (".md", ".yaml", ".yml"):
            assert "your-model" not in path.read_text()
            assert "your-name" not in path.read_text()


@pytest.mark.parametrize("name", ["123", "1e5", "true", "no", "null", "…", "a" * 200, "0x1f"])
def test_a_folder_may_be_called_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wattline: Wattline
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert wattline("init", "promote").code == 0
    assert read_pipeline(folder / "wattline.yaml").pipeline in (name, "model", "a" * 60)


@pytest.mark.parametrize("template", NAMES)
def test_its_data_is_pinned_profiled_and_made_by_its_script(template: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(find_template(template), copy, ignore=shutil.ignore_patterns("__pycache__", "out"))
    before = {path: (copy / path).read_bytes() for path in files_below(copy)}
    subprocess.run([sys.executable, "make_data.py"], cwd=copy, check=True, capture_output=True, timeout=60)
    for data in read_pipeline(copy / "wattline.yaml").data:
        assert data.sha256 == hashlib.sha256(before[data.path]).hexdigest()
        if data.path.endswith(".npz"):  # another processor may round the last digit the other way
            with np.load(find_template(template) / data.path) as shipped, np.load(copy / data.path) as made:
                assert sorted(shipped) == sorted(made)
                for part in shipped:
                    np.testing.assert_allclose(shipped[part], made[part], atol=2e-3)
        else:
            assert data.sha256 == hash_data(copy / data.path)
            assert data.schema_ is not None
            assert data.schema_ in before


@pytest.mark.parametrize(
    ("template", "before", "script", "changes"),
    [
        ("pretrain", "prepare.py", "train.py", {"steps": 200}),
        ("fine-tune", "prepare.py", "train.py", {"base_steps": 20}),
        ("sweep", "make_data.py", "trial.py first 4", {"first_steps": 2500}),
    ],
)
def test_its_training_killed_and_begun_again_ends_in_the_same_bytes(
    template: str, before: str, script: str, changes: dict[str, int], tmp_path: Path
) -> None:
    made = []
    for name in ("undisturbed", "killed"):
        folder = tmp_path / name
        shutil.copytree(find_template(template), folder)
        settings = json.loads((folder / "params.json").read_text()) | changes
        (folder / "params.json").write_text(json.dumps(settings))
        by_hand(folder, before)
        if name == "killed":
            kill_once_saved(folder, script)
        by_hand(folder, script)
        made.append({path.name: path.read_bytes() for path in (folder / "out").glob("*.npz")})
    assert made[0]
    assert made[0] == made[1]


def by_hand(folder: Path, script: str) -> None:
    with start(folder, script) as process:
        assert process.wait(timeout=60) == 0


def kill_once_saved(folder: Path, script: str) -> None:
    process = start(folder, script)
    wait_until(lambda: any(kept_in(folder, script).glob("checkpoints/step-*")), process)
    kill(process)
    assert process.returncode != 0


def kept_in(folder: Path, script: str) -> Path:
    return folder / "checkpoints" / script.split(maxsplit=1)[0]


def start(folder: Path, script: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "WATTLINE_CHECKPOINTS": str(kept_in(folder, script)),
        "WATTLINE_CHECKPOINT_EVERY": "steps:30",
    }
    return subprocess.Popen(
        [sys.executable, *script.split()], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )


def test_what_templates_share_is_the_same_in_each() -> None:
    for path, sharing in (
        ("jobs.py", ("evaluate", "promote", "sweep")),
        ("model.py", ("evaluate", "promote")),
    ):
        assert len({(SOURCE / name / path).read_bytes() for name in sharing}) == 1


def test_requirements_are_pinned_to_what_is_installed(in_folder: Path, wattline: Wattline) -> None:
    assert wattline("init", "sweep").code == 0
    lines = (in_folder / "requirements.txt").read_text().splitlines()
    assert f"numpy=={np.__version__}" in lines
    assert any(line.startswith("wattline==") for line in lines)


def test_a_workflow_comes_with_it_unless_refused(in_folder: Path, wattline: Wattline) -> None:
    assert wattline("init", "evaluate", "--no-ci").code == 0
    assert not (in_folder / ".github").exists()
    assert wattline("init", "evaluate", "--force").code == 0
    workflows = in_folder / ".github" / "workflows"
    assert {path.name for path in workflows.iterdir()} == {"wattline-check.yml", "wattline-comment.yml"}
    assert "policy: policy.yaml" in (workflows / "wattline-check.yml").read_text()


def test_below_the_root_of_a_repository_it_says_where_workflows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wattline: Wattline
) -> None:
    folder = tmp_path / "models" / "one"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(folder)
    assert wattline("init", "evaluate", "--output", "json").json["repository"] == str(tmp_path)
    assert "move .github there" in wattline("init", "evaluate", "--force").out
    assert "move .github" not in wattline("init", "evaluate", "--force", "--no-ci").out


def test_a_file_that_is_there_is_named_and_nothing_is_written(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "train.py").write_text("mine")
    (in_folder / "notes.txt").write_text("mine too")
    refused = wattline("init", "pretrain")
    assert refused.code == 2
    assert "train.py already" in refused.err
    assert "--force" in refused.err
    assert files_below(in_folder) == {"train.py", "notes.txt"}
    assert wattline("init", "pretrain", "--force").code == 0
    assert "train.start" in (in_folder / "train.py").read_text()
    assert (in_folder / "notes.txt").read_text() == "mine too"


def test_a_link_is_never_written_through_even_by_force(
    in_folder: Path, tmp_path: Path, wattline: Wattline
) -> None:
    (tmp_path / "theirs").mkdir()
    (in_folder / "data").symlink_to(tmp_path / "theirs")
    (in_folder / "train.py").symlink_to(tmp_path / "nowhere")
    refused = wattline("init", "pretrain", "--force")
    assert refused.code == 2
    assert "data, train.py is in the way" in refused.err
    assert not list((tmp_path / "theirs").iterdir())
    assert not (in_folder / "wattline.yaml").exists()


def test_a_file_where_a_folder_must_be_is_named(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "data").write_text("not a folder")
    (in_folder / "wattline.yaml").mkdir()
    refused = wattline("init", "sweep", "--force")
    assert refused.code == 2
    assert "data, wattline.yaml is in the way" in refused.err
    assert files_below(in_folder) == {"data"}


def test_a_disk_that_is_full_leaves_nothing_behind(in_folder: Path) -> None:
    # Files of more than 20 KiB cannot be written; the corpus is larger.
    done = subprocess.run(
        ["/bin/bash", "-c", f"ulimit -f 20; exec {shlex.join(COMMAND)} init pretrain"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert not list(in_folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fine-tun",), "did you mean 'fine-tune'?"),
        (("zzzz",), f"name one of {', '.join(NAMES)}"),
        (("../sweep",), "there is no template '../sweep'"),
        (("shared",), "there is no template 'shared'"),
        (("sweep", "--script", "train.py"), "leave --script out"),
        (("--no-ci",), "--no-ci is for a template"),
        ((), "wattline init --list"),
    ],
)
def test_what_cannot_be_asked_is_told(
    arguments: tuple[str, ...], said: str, in_folder: Path, wattline: Wattline
) -> None:
    refused = wattline("init", *arguments)
    assert refused.code == 2
    assert said in refused.err
    assert not list(in_folder.iterdir())


def test_a_name_that_does_not_ship_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no template 'swep'") as raised:
        find_template("swep")
    assert raised.value.hint == "did you mean 'sweep'?"


def test_what_a_run_in_place_left_is_not_copied(in_folder: Path, wattline: Wattline) -> None:
    assert wattline("init", "sweep").code == 0
    assert not [path for path in files_below(in_folder) if "__pycache__" in path or path.startswith("out/")]
