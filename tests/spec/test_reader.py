from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.spec import (
    FacilityDocument,
    Faults,
    Pipeline,
    Policy,
    parse_document,
    read_facility,
    read_faults,
    read_pipeline,
    read_policy,
    shipped_facilities,
    shipped_policies,
)

MODELS: tuple[type[BaseModel], ...] = (Pipeline, Policy, Faults, FacilityDocument)
SHIPPED = [path.read_bytes() for path in (*shipped_facilities().values(), *shipped_policies().values())]


def test_each_kind_of_document_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "wattline.yaml").write_text(
        "pipeline: p\nmodel: m\nowner: o\nproject: r\nphases: {a: {run: x}}\n"
    )
    (tmp_path / "policy.yaml").write_text("policy: mine\n")
    (tmp_path / "faults.yaml").write_text("faults: [{name: f, at: {after: 1s}, loop: x, flow: 0%}]\n")
    (tmp_path / "hall.yaml").write_bytes(shipped_facilities()["lab"].read_bytes())
    assert read_pipeline(tmp_path / "wattline.yaml").pipeline == "p"
    assert read_policy(tmp_path / "policy.yaml").policy == "mine"
    assert read_faults(str(tmp_path / "faults.yaml")).faults[0].name == "f"
    hall = read_facility(tmp_path / "hall.yaml")
    assert hall == read_facility("lab")
    assert hall.source == str(tmp_path / "hall.yaml")


def test_a_fault_names_the_file_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("policy: mine\nthreshold: {}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError) as raised:
        read_policy("mine.yaml")
    assert str(raised.value).startswith("mine.yaml:2:1: threshold: unknown field; allowed: policy, ")
    assert str(raised.value).endswith("did you mean 'thresholds'?")


def test_a_missing_file_is_missing_and_not_wrong(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no such file") as raised:
        read_pipeline(tmp_path / "wattline.yaml")
    assert raised.value.exit_code == 3
    assert raised.value.hint == "`wattline init` writes a first one"


def test_a_directory_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="this is a directory"):
        read_faults(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("policy: mine\n")
    path.chmod(0)
    with pytest.raises(UnavailableError, match="cannot be read"):
        read_policy(path)


@pytest.mark.parametrize("path", ["a\0b.yaml", "x" * 5000 + ".yaml", "/dev/null/x.yaml"])
def test_a_path_that_cannot_be_one_is_unavailable(path: str) -> None:
    with pytest.raises(UnavailableError):
        read_faults(path)


def test_a_stream_without_end_is_read_only_so_far() -> None:
    with pytest.raises(DocumentError, match="too large"):
        read_faults("/dev/zero")


@pytest.mark.parametrize("text", ["[1]", "hello", "5", "---", "~"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_document_is_a_mapping(text: str, model: type[BaseModel]) -> None:
    with pytest.raises(DocumentError, match="this is a mapping of fields"):
        parse_document(text.encode(), model, file="f.yaml")


@given(raw=st.binary(max_size=300) | st.text(max_size=300).map(str.encode), model=st.sampled_from(MODELS))
def test_any_bytes_are_a_document_or_a_wrong_one(raw: bytes, model: type[BaseModel]) -> None:
    began = time.monotonic()
    with suppress(DocumentError):
        parse_document(raw, model, file="f.yaml")
    assert time.monotonic() - began < 10


def values(depth: int = 3) -> st.SearchStrategy[object]:
    scalars = st.sampled_from(
        [
            "",
            "~",
            "true",
            "5",
            "-1",
            ".nan",
            "1e400",
            "70%",
            "6.5kW",
            "6h",
            "a",
            "..",
            "job.gpus > 3",
            "'\\x'",
            "é",
        ]
    )
    fields = st.sampled_from(
        [
            *(field.alias or name for model in MODELS for name, field in model.model_fields.items()),
            *("run", "after", "when", "racks", "nodes", "cap", "r1..r3", "at", "quota", "every", "x"),
        ]
    )
    if depth == 0:
        return scalars
    inner = values(depth - 1)
    return scalars | st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4)


def written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(value=values(), model=st.sampled_from(MODELS))
def test_any_shape_of_known_words_is_a_document_or_a_wrong_one(value: object, model: type[BaseModel]) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        parse_document(written(value).encode(), model, file="f.yaml")
    except DocumentError as error:
        problems = error.problems
    assert all(problem.line == 1 and problem.column >= 1 for problem in problems)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_shipped_document_with_a_piece_cut_out_is_a_document_or_a_wrong_one(data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(SHIPPED))
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, min(len(raw), start + 200)))
    patch = data.draw(st.sampled_from([b"", b"-", b": ", b"0", b"\t", b"'", b"\xff", b"[", b"x"]))
    with suppress(DocumentError):
        parse_document(raw[:start] + patch + raw[stop:], data.draw(st.sampled_from(MODELS)), file="f.yaml")
