from __future__ import annotations

import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import DocumentError, Problem
from wattline.spec import source
from wattline.spec.source import LARGEST_BYTES, parse_source
from wattline.spec.tree import Place, field_name


def problems_in(raw: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as raised:
        parse_source(raw.encode() if isinstance(raw, str) else raw, "f.yaml")
    return raised.value.problems


def test_every_value_and_key_keeps_its_place() -> None:
    root = parse_source(b"a: 1\nb:\n  - {c: x}\n  - 'no'\n", "f.yaml")
    assert root.value == {"a": 1, "b": [{"c": "x"}, "no"]}
    assert root.keys["b"] == Place(2, 1)
    assert root.children["b"].children[1].place == Place(4, 5)
    assert root.children["b"].children[0].keys["c"] == Place(3, 6)
    assert root.children["b"].children[0].children["c"].place == Place(3, 9)


def test_keys_are_text_whatever_they_look_like() -> None:
    assert parse_source(b"1: a\ntrue: b\n~: c\n", "f.yaml").value == {"1": "a", "true": "b", "~": "c"}


def test_a_quoted_scalar_is_text_and_a_byte_order_mark_is_nothing() -> None:
    assert parse_source("\ufeffa: '5'\nb: \"true\"\n".encode(), "f.yaml").value == {"a": "5", "b": "true"}


@pytest.mark.parametrize(
    ("raw", "line", "column", "field", "message"),
    [
        ("", 1, 1, "", "the file is empty"),
        ("# nothing\n", 1, 1, "", "the file is empty"),
        ("a: [1\n", 2, 1, "", "this is not YAML"),
        ("a: b: c", 1, 5, "", "this is not YAML"),
        ("@", 1, 1, "", "this is not YAML"),
        ("a: 'x", 1, 6, "", "this is not YAML"),
        (b"\x89PNG\r\n", 1, 1, "", "the file is not UTF-8 text"),
        (b"a: 1\nb: \xff\n", 2, 4, "", "the file is not UTF-8 text"),
        ("a:\n\tb: 1\n", 2, 1, "", "a tab cannot indent; use spaces"),
        ("a: 1\n  \tb: 2\n", 2, 3, "", "a tab cannot indent; use spaces"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, 3, "a.b", "this key stands here twice"),
        ("a: !!python/object:os.system x\n", 1, 4, "a", "tags are not allowed"),
        ("a: !!str 5\n", 1, 4, "a", "tags are not allowed"),
        ("a: ! 5\n", 1, 4, "a", "tags are not allowed"),
        ("a: &x 1\n", 1, 4, "a", "anchors and aliases are not allowed"),
        ("a: 1\n---\nb: 2\n", 2, 1, "", "a file holds one document"),
        ("? [a]\n: 1\n", 1, 3, "", "a key is a word"),
        ("a: x\u202ey\n", 1, 4, "a", "direction character"),
        ('a: "\\u202e"\n', 1, 4, "a", "direction character"),
        ('b: ["\\a"]\n', 1, 5, "b[0]", "control or direction character"),
        ("a\u202eb: 1\n", 1, 1, "['a\\u202eb']", "direction character"),
        ("a: 1 # \u2066\n", 1, 8, "", "direction character"),
        ("a: \x07\n", 1, 4, "", "control or direction character"),
        ("a: \x00\n", 1, 4, "", "control or direction character"),
    ],
)
def test_a_file_that_cannot_be_taken_says_where_and_why(
    raw: str | bytes, line: int, column: int, field: str, message: str
) -> None:
    (problem,) = problems_in(raw)
    assert (problem.line, problem.column) == (line, column)
    assert problem.field == field
    assert message in problem.message


def test_all_faults_are_told_at_once() -> None:
    problems = problems_in("a: &x 1\nb: *x\nb: !!int 3\n")
    assert [(problem.line, problem.column) for problem in problems] == [(1, 4), (2, 4), (3, 1), (3, 4)]


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    lines = ["a0: &a0 [lol]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    problems = problems_in("\n".join(lines))
    assert (problems[0].line, problems[0].column, problems[0].field) == (1, 5, "a0")
    assert "anchors and aliases" in problems[0].message


@pytest.mark.parametrize("raw", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "{" * 50_000, "? " * 50_000])
def test_fifty_thousand_brackets_cost_a_message(raw: str) -> None:
    began = time.monotonic()
    (problem,) = problems_in(raw)
    assert problem.line == 1
    assert time.monotonic() - began < 30


def test_depth_is_allowed_up_to_its_limit() -> None:
    assert parse_source(b"[" * 32 + b"]" * 32, "f.yaml").value
    (problem,) = problems_in("[" * 33 + "]" * 33)
    assert problem.column == 33
    assert "at most 32 levels" in problem.message


def test_a_file_holds_only_so_many_values() -> None:
    (problem,) = problems_in("[" + "1," * 200_000 + "]")
    assert "too many values; at most 200,000" in problem.message


def test_a_file_is_only_so_large() -> None:
    (problem,) = problems_in(b"#" * (LARGEST_BYTES + 1))
    assert problem.message == "the file is too large"
    assert problem.allowed == "at most 1 MiB"


def test_at_most_fifty_faults_are_told() -> None:
    assert len(problems_in("\n".join(["a: &x 1"] * 500))) == 50


def test_the_slower_parser_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)
    assert parse_source(b"a: [1, {b: no}]\n", "f.yaml").value == {"a": [1, {"b": "no"}]}
    (problem,) = problems_in("a:\n\tb: 1\n")
    assert problem.message == "a tab cannot indent; use spaces"


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with suppress(DocumentError):
        parse_source(raw, "f.yaml")


@given(st.text(st.sampled_from(" \n\t-:{}[]&*!|>'\"%@`#,?ab1\u202e\ufeff"), max_size=80))
def test_any_yaml_like_text_is_read_or_refused(text: str) -> None:
    with suppress(DocumentError):
        parse_source(text.encode(), "f.yaml")


def test_a_field_is_named_as_people_say_it() -> None:
    assert field_name(("phases", "train", "after", 0)) == "phases.train.after[0]"
    assert field_name(("phases", "../x\n", "run")) == "phases['../x\\n'].run"
