from __future__ import annotations

from pathlib import Path

import pytest

from checks.asked import ask, outcomes
from wattline.checks.preflight.environment.secrets import check_secrets

TOKEN = "gh" + "p_" + "a1B2" * 9


def test_a_secret_that_is_set_passes_and_one_that_is_missing_or_empty_fails(tmp_path: Path) -> None:
    asking = ask(tmp_path, secrets=["THERE", "EMPTY", "ABSENT"], environment={"THERE": "x", "EMPTY": ""})
    assert outcomes(check_secrets(asking)) == {
        "secrets THERE": "pass",
        "secrets EMPTY": "fail",
        "secrets ABSENT": "fail",
        "secrets.written": "pass",
    }


def test_a_value_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"# one\ntoken = '{TOKEN}'\n")
    asking = ask(tmp_path, secrets=["TOKEN"], environment={"TOKEN": TOKEN})
    checks = list(check_secrets(asking))
    assert TOKEN not in repr(checks)
    (written,) = [check for check in checks if check.check == "secrets.written"]
    assert (written.outcome, written.file, written.line) == ("warn", "a.py", 2)
    assert "a GitHub token" in written.message


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "IOSFODNN7EXAMPLE",  # as manuals print it
        "gh" + "p_short",
        "hf" + "_hub_download",
        "-----BEGIN PUBLIC KEY-----",
        "sha256:" + "ab" * 32,
    ],
)
def test_what_only_resembles_a_token_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.md").write_text(text)
    assert outcomes(check_secrets(ask(tmp_path))) == {"secrets.written": "pass"}


def test_only_text_that_travels_is_read(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\0" + TOKEN.encode())
    (tmp_path / "ignored.txt").write_text(TOKEN)
    (tmp_path / "words.txt").write_text(TOKEN)
    data = [{"name": "words", "path": "words.txt"}]
    asking = ask(tmp_path, data=data, source={"weights.bin", "words.txt"})
    assert outcomes(check_secrets(asking)) == {"secrets.written": "pass"}
