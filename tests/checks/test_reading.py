from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.rendering.sample import BLOCKED
from wattline.checks.reading import LARGEST_BYTES, decode_report, encode_report, read_report
from wattline.errors import UnavailableError


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(encode_report(BLOCKED)) | fields).encode()


def test_a_report_is_read_as_it_was_written() -> None:
    assert decode_report(encode_report(BLOCKED), name="r") == BLOCKED


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        changed(verdict="fine"),
        changed(preflight=[{"check": 1}]),
        changed(pipeline=None),
    ],
)
def test_what_is_no_report_is_told_as_such(raw: bytes) -> None:
    with pytest.raises(UnavailableError, match="no report of `wattline check`"):
        decode_report(raw, name="r")


def test_another_version_is_told() -> None:
    with pytest.raises(UnavailableError, match="has version 9"):
        decode_report(changed(version=9), name="r")


@given(st.binary(max_size=200))
def test_bytes_are_a_report_or_refused(raw: bytes) -> None:
    with pytest.raises(UnavailableError):
        decode_report(raw, name="r")


def test_links_pipes_folders_and_large_files_are_not_read(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(encode_report(BLOCKED))
    assert read_report(target) == BLOCKED
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b" " * (LARGEST_BYTES + 1))
    for name in ("link", "pipe", "large", "none", "."):
        with pytest.raises(UnavailableError):
            read_report(tmp_path / name)
