from __future__ import annotations

from pathlib import Path

import pytest

from checks.asked import ask, outcomes
from wattline.checks.preflight.environment.image import check_image

DIGEST = "@sha256:" + "0f" * 32


def test_an_image_is_named_by_its_digest(tmp_path: Path) -> None:
    (check,) = check_image(ask(tmp_path, image=f"registry/ml{DIGEST}"))
    assert (check.outcome, check.message) == ("pass", "registry/ml by digest 0f0f0f0f0f0f…")


def test_without_an_image_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    assert outcomes(check_image(ask(tmp_path))) == {"image": "skip"}


@pytest.mark.parametrize(
    "recipe",
    [
        f"FROM python:3.11{DIGEST}",
        "FROM scratch",
        f"FROM python{DIGEST} AS build\nFROM build",
        f"ARG BASE=python{DIGEST}\nFROM ${{BASE}}",
        "ARG BASE\nFROM $BASE",
        f"FROM --platform=linux/amd64 python{DIGEST}",
        "# FROM python",
    ],
)
def test_bases_that_cannot_move_pass(tmp_path: Path, recipe: str) -> None:
    (tmp_path / "Dockerfile").write_text(recipe + "\n")
    assert outcomes(check_image(ask(tmp_path)))["image.base Dockerfile"] == "pass"


@pytest.mark.parametrize(
    "recipe",
    [
        "\nFROM python:3.11",
        "\nfrom python as build",
        "ARG BASE=python:3.11\nFROM ${BASE}",
        f"FROM python{DIGEST} AS build\nFROM python",
    ],
)
def test_a_base_that_can_move_is_a_warning_with_its_line(tmp_path: Path, recipe: str) -> None:
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "train.Dockerfile").write_text(recipe + "\n")
    (check,) = [check for check in check_image(ask(tmp_path)) if check.check == "image.base"]
    assert (check.outcome, check.file, check.line) == ("warn", "docker/train.Dockerfile", 2)
