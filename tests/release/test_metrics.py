"""What did an evaluation measure?"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import UnavailableError
from wattline.release import read_metrics

NAMES = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)


@given(st.dictionaries(NAMES, st.floats() | st.integers(), max_size=5))
def test_what_python_writes_is_read(metrics: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "metrics.json"
        path.write_text(json.dumps(metrics))
        read = read_metrics(path)
    assert read.keys() == metrics.keys()
    for key, value in metrics.items():
        assert read[key] == value or math.isnan(value) or abs(value) >= 2**53


def test_a_diverged_loss_is_read_so_that_its_gate_can_fail(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"loss": NaN, "top": -Infinity, "big": 1' + "0" * 400 + "}")
    metrics = read_metrics(tmp_path / "m.json")
    assert math.isnan(metrics["loss"])
    assert (metrics["top"], metrics["big"]) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "'a' is there twice"),
        ('{"a": {"b": 1}}', "'a' is an object, not a number"),
        ('{"a": [1]}', "'a' is a list, not a number"),
        ('{"a": true}', "'a' is true, not a number"),
        ('{"a": null}', "'a' is null, not a number"),
        ('{"a": "0.9"}', "'a' is \"0.9\", not a number"),
        ('{"": 1}', "1 to 200 printable characters"),
        ('{"a\\ud800": 1}', "1 to 200 printable characters"),
        ('{"a\\u001b": 1}', "1 to 200 printable characters"),
        ("[1, 2]", "not an object but a list"),
        ("0.9", "not an object but 0.9"),
        ('{"a": 1', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a": 1' + "0" * 5000 + "}", "not JSON"),
        (" " * 2**20 + "{}", "more than 1048576 bytes"),
    ],
)
def test_what_is_no_flat_object_of_numbers_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UnavailableError, match=message) as unavailable:
        read_metrics(tmp_path / "m.json")
    assert unavailable.value.hint


def test_a_file_that_is_missing_a_folder_a_pipe_or_not_text_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("missing", ".", "pipe", "bytes"):
        with pytest.raises(UnavailableError, match="metrics"):
            read_metrics(tmp_path / name)
