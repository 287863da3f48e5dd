from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checks.asked import ask, outcomes
from wattline.checks import Check
from wattline.checks.preflight.environment.compatibility import check_runtime
from wattline.checks.preflight.environment.released import (
    DRIVER_OF_TOOLKIT,
    GPUS,
    LEAST_DRIVER_OF_MAJOR,
    TORCH,
    version,
)
from wattline.facility import DEVICES


def checked(folder: Path, gpu: list[str] | None = None, **runtime: str) -> list[Check]:
    resources: dict[str, Any] = {"gpus": 1, "gpu": gpu} if gpu is not None else {}
    phases = {"train": {"run": "true", "resources": resources}}
    return list(check_runtime(ask(folder, runtime=runtime, phases=phases)))


def test_a_pipeline_without_gpus_has_nothing_to_match(tmp_path: Path) -> None:
    assert list(check_runtime(ask(tmp_path))) == []


def test_gpus_without_a_runtime_are_told(tmp_path: Path) -> None:
    phases = {"train": {"run": "true", "resources": {"gpus": 1}}}
    assert outcomes(check_runtime(ask(tmp_path, phases=phases))) == {"runtime.driver": "skip"}


@pytest.mark.parametrize(
    ("cuda", "driver", "outcome"),
    [
        ("12.4", "525.60.12", "fail"),
        ("12.4", "525.60.13", "pass"),  # minor-version compatibility
        ("12.4", "550.54.14", "pass"),
        ("13.0", "575.51.03", "fail"),
        ("13.0.2", "580.65.06", "pass"),
        ("14.0", "999.0", "skip"),
    ],
)
def test_a_driver_runs_cuda_from_the_first_of_its_major_on(
    tmp_path: Path, cuda: str, driver: str, outcome: str
) -> None:
    assert outcomes(checked(tmp_path, cuda=cuda, driver=driver))["runtime.driver"] == outcome


def test_minor_version_compatibility_is_told(tmp_path: Path) -> None:
    check = checked(tmp_path, cuda="12.4", driver="535.54.03")[0]
    assert check.message.endswith("by minor-version compatibility; code shipped as PTX would need 550.54.14")


@pytest.mark.parametrize(
    ("torch", "cuda", "outcome"),
    [
        ("2.5.1", "12.4", "pass"),
        ("2.5.1", "12.6", "warn"),
        ("2.5.1", "13.0", "fail"),
        ("2.8", "11.8", "fail"),
        ("9.9", "12.4", "skip"),
    ],
)
def test_torch_is_published_for_some_versions_of_cuda(
    tmp_path: Path, torch: str, cuda: str, outcome: str
) -> None:
    assert outcomes(checked(tmp_path, torch=torch, cuda=cuda))["runtime.torch"] == outcome


@pytest.mark.parametrize(
    ("python", "outcome"), [("3.8", "fail"), ("3.9", "pass"), ("3.13.1", "pass"), ("3.14", "fail")]
)
def test_torch_is_published_for_some_versions_of_python(tmp_path: Path, python: str, outcome: str) -> None:
    assert outcomes(checked(tmp_path, torch="2.7.0", python=python))["runtime.python"] == outcome


@pytest.mark.parametrize(("python", "outcome"), [("3.11", "fail"), ("3.12", "pass"), ("3.12.4", "pass")])
def test_the_project_may_require_a_python(tmp_path: Path, python: str, outcome: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.12.1"\n')
    assert outcomes(checked(tmp_path, python=python))["runtime.python"] == outcome


@pytest.mark.parametrize(
    ("gpu", "cuda", "outcome"),
    [
        (["V100"], "12.9", "pass"),
        (["V100"], "13.0", "fail"),
        (["H100"], "11.7", "fail"),
        (["H100"], "11.8", "pass"),
        (["H100", "B200"], "12.6", "fail"),
        (["B200"], "12.8", "pass"),
        ([], "12.8", "pass"),
        ([], "13.0", "warn"),  # it may be placed on a V100
        (["Unheard-Of"], "12.8", "skip"),
    ],
)
def test_a_gpu_needs_a_cuda_that_knows_it(tmp_path: Path, gpu: list[str], cuda: str, outcome: str) -> None:
    assert outcomes(checked(tmp_path, gpu, cuda=cuda))["runtime.gpu train"] == outcome


def test_what_is_not_said_is_skipped(tmp_path: Path) -> None:
    found = outcomes(checked(tmp_path, ["H100"], driver="550.54.14"))
    assert set(found.values()) == {"skip"}
    assert len(found) == 4


def test_the_table_agrees_with_itself() -> None:
    drivers = [version(driver) for driver in DRIVER_OF_TOOLKIT.values()]
    assert drivers == sorted(drivers)
    assert set(GPUS) >= set(DEVICES)
    for torch in TORCH.values():
        assert set(torch.cuda) <= set(DRIVER_OF_TOOLKIT)
        assert version(torch.first_python) < version(torch.last_python)
    assert {version(cuda)[0] for cuda in DRIVER_OF_TOOLKIT} == set(LEAST_DRIVER_OF_MAJOR)
