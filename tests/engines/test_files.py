"""A document in the attempt's directory is whole or absent."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from wattline.engines.files import DOCUMENT_LIMIT_BYTES, read_bounded, write_document


def test_a_reader_never_sees_half_a_document(tmp_path: Path) -> None:
    write_document(tmp_path, "desired.json", {"serial": 0})

    def write_many() -> None:
        for serial in range(300):
            write_document(tmp_path, "desired.json", {"serial": serial, "padding": "x" * 20_000})

    writer = threading.Thread(target=write_many)
    writer.start()
    while writer.is_alive():
        assert "serial" in json.loads((tmp_path / "desired.json").read_text())
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["desired.json"]


def test_a_missing_document_is_none(tmp_path: Path) -> None:
    assert read_bounded(tmp_path, "result.json") is None


def test_a_huge_document_is_read_only_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b" " * (DOCUMENT_LIMIT_BYTES + 1))
    assert len(read_bounded(tmp_path, "result.json") or b"") == DOCUMENT_LIMIT_BYTES


def test_a_link_in_the_place_of_a_document_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / "result.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        read_bounded(tmp_path, "result.json")
