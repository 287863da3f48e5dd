"""What did the run find, in numbers that a gate can read; and with which parameters?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattline import train
from wattline.train.results import merge_metrics, plain_numbers


def read(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads((path / "metrics.json").read_text(), parse_constant=refuse)


def test_metrics_of_several_reports_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTLINE_OUT", str(tmp_path / "out"))
    train.report(loss=0.5, accuracy=np.float32(0.25))
    train.report(accuracy=0.75, passed=True, count=np.int64(3))
    assert read(tmp_path / "out") == {"loss": 0.5, "accuracy": 0.75, "passed": True, "count": 3}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["metrics.json"]


def test_a_value_that_is_not_finite_is_null_and_named_until_it_is_finite_again(tmp_path: Path) -> None:
    merge_metrics(tmp_path, {"loss": math.nan, "gap": -math.inf, "accuracy": 1.0})
    assert read(tmp_path) == {"loss": None, "gap": None, "accuracy": 1.0, "not_finite": ["gap", "loss"]}
    merge_metrics(tmp_path, {"loss": 2.0})
    assert read(tmp_path) == {"loss": 2.0, "gap": None, "accuracy": 1.0, "not_finite": ["gap"]}


@pytest.mark.parametrize("value", ["0.5", None, [1], np.ones(2), 1j])
def test_a_metric_is_one_number(value: object) -> None:
    assert plain_numbers({"a": np.ones(1)}) == {"a": 1.0}
    with pytest.raises(train.ScriptError, match="metric 'a'"):
        plain_numbers({"a": value})


def test_the_name_of_the_list_of_lost_values_is_taken(tmp_path: Path) -> None:
    with pytest.raises(train.ScriptError, match="not_finite"):
        merge_metrics(tmp_path, {"not_finite": 1.0})


def test_parameters_come_from_the_environment_or_from_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WATTLINE_PARAMS", raising=False)
    with pytest.raises(train.ScriptError, match="there are no parameters"):
        train.params()
    Path("params.json").write_text('{"steps": 1}')
    Path("other.json").write_text('{"steps": 2}')
    assert train.params() == {"steps": 1}
    assert train.params("other.json") == {"steps": 2}
    monkeypatch.setenv("WATTLINE_PARAMS", str(tmp_path / "other.json"))
    assert train.params() == {"steps": 2}


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"a":"' + "x" * 2**20 + '"}'], ids=range(5))
def test_parameters_that_are_not_an_object_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "params.json"
    path.write_text(text)
    with pytest.raises(train.ScriptError, match=r"params\.json"):
        train.params(path)
