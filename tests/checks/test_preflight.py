from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from wattline.checks import Asking, Preflight, preflight
from wattline.spec import Pipeline, Policy


def checked(folder: Path, *, policy: dict[str, Any] | None = None, **more: Any) -> Preflight:
    head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q", "phases": {"train": {"run": "true"}}}
    pipeline = Pipeline.model_validate(head | more)
    return preflight(Asking(pipeline=pipeline, policy=Policy.model_validate(policy or {}), folder=folder))


def outcomes(found: Preflight) -> dict[str, str]:
    return {check.title: check.outcome for check in found.checks}


def phases(*commands: str) -> dict[str, Any]:
    return {f"p{number}": {"run": command} for number, command in enumerate(commands)}


def test_a_pipeline_with_nothing_amiss_passes(tmp_path: Path) -> None:
    found = checked(tmp_path)
    assert found.passed
    assert set(outcomes(found).values()) <= {"pass", "skip"}


def test_metadata_that_the_policy_requires_is_named_where_it_is_missing(tmp_path: Path) -> None:
    found = checked(tmp_path, policy={"required_metadata": ["owner", "intended_use", "data"]})
    assert not found.passed
    assert found.checks[0].message == "policy default requires intended_use, data"


@pytest.mark.parametrize("prefix", ["", "sha256:"])
def test_data_that_is_as_pinned_passes(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "words.txt").write_text("words")
    sha256 = hashlib.sha256(b"words").hexdigest()
    found = checked(tmp_path, data=[{"name": "words", "path": "words.txt", "sha256": prefix + sha256}])
    assert outcomes(found)["data.hash words"] == "pass"
    assert found.data_sha256 == {"words.txt": sha256}


def test_data_that_is_not_pinned_is_a_warning_and_its_hash_is_taken(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    found = checked(tmp_path, data=[{"name": "words", "path": "words.txt"}])
    assert found.passed
    assert outcomes(found)["data.hash words"] == "warn"
    assert found.data_sha256 == {"words.txt": hashlib.sha256(b"words").hexdigest()}


def test_every_fault_is_found_also_after_the_first(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    found = checked(
        tmp_path,
        data=[
            {"name": "words", "path": "words.txt", "sha256": "0" * 64},
            {"name": "more", "path": "more.txt"},
        ],
        params="params.yaml",
        phases=phases("python train.py"),
        policy={"required_metadata": ["image"]},
    )
    failed = [name for name, outcome in outcomes(found).items() if outcome == "fail"]
    assert failed == ["metadata", "data.hash words", "data.there more", "params", "entry p0"]


def test_params_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("rate: 1\n")
    found = checked(tmp_path, params="params.yaml")
    assert found.params_sha256 == hashlib.sha256(b"rate: 1\n").hexdigest()


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python3 -u train.py --rate 1",
        "/usr/bin/python -u -B train.py > log.txt",
        "bash -eu train.py",
        "python ./train.py && echo done",
    ],
)
def test_a_script_that_is_not_there_is_found(tmp_path: Path, command: str) -> None:
    assert outcomes(checked(tmp_path, phases=phases(command)))["entry p0"] == "fail"
    (tmp_path / "train.py").write_text("")
    assert outcomes(checked(tmp_path, phases=phases(command)))["entry p0"] == "pass"


@pytest.mark.parametrize(
    "command",
    [
        "python -m package.train",
        "python -c 'print(1)'",
        "bash -c 'python train.py'",
        "sh -ec 'python train.py'",
        "torchrun train.py",
        "python -X dev train.py",
        "bash -o pipefail train.sh",
        "python $SCRIPT",
        "python out/generated.py",
        "python /opt/train.py",
        "python",
        "RATE=1 python train.py",
    ],
)
def test_what_cannot_be_told_from_the_command_is_not_held_against_it(tmp_path: Path, command: str) -> None:
    assert checked(tmp_path, phases=phases(command)).passed


def test_a_command_that_no_shell_could_read_fails(tmp_path: Path) -> None:
    assert outcomes(checked(tmp_path, phases=phases("echo 'half")))["entry p0"] == "fail"


def test_a_site_that_the_facility_does_not_have_holds_no_replicas(tmp_path: Path) -> None:
    pipeline = Pipeline.model_validate(
        {
            "pipeline": "p",
            "model": "m",
            "owner": "o",
            "project": "q",
            "phases": {"train": {"run": "true", "checkpoint": {"replicate_to": ["zurich", "frankfrut"]}}},
        }
    )
    policy = Policy.model_validate({})
    asking = Asking(pipeline=pipeline, policy=policy, folder=tmp_path, sites=["zurich", "frankfurt"])
    found = preflight(asking)
    (failed,) = [check for check in found.checks if check.outcome == "fail"]
    assert "replicate_to names frankfrut" in failed.message
    assert failed.fix == "did you mean frankfurt?"
    assert preflight(Asking(pipeline=pipeline, policy=policy, folder=tmp_path)).passed
