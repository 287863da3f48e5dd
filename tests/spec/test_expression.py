from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.spec import RULE_STRUCTS, ExpressionError, compile_expression
from wattline.spec.expression import LONGEST_EXPRESSION, spoken_names
from wattline.spec.literals import SpellingError

VARIABLES = ("power_headroom", "minutes_to_throttle", "accuracy")
JOB = {"gpus": 8, "gpu": ["H100", "A100"], "class": "batch", "approved": False, "peak_watts": 6500.0}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("power_headroom < 15%", True),
        ("power_headroom < 5%", False),
        ("power_headroom * 100 < 11", True),
        ("minutes_to_throttle > 3 && !(accuracy > 0.5)", False),
        ("job.gpus > 3", True),
        ("job.gpus in [4, 8]", True),
        ("job.gpus == 2 * 4", True),
        ("job.gpu[0] == 'H100'", True),
        ("'A100' in job.gpu && size(job.gpu) == 2 && job.gpu.size() > 1", True),
        ("job.peak_watts > 6kW", True),
        ("job.class == 'batch' && !job.approved", True),
        ("job.gpu.all(model, model.startsWith('H'))", False),
        ("has(job.owner)", False),
    ],
)
def test_an_expression_holds_by_its_values(text: str, answer: bool) -> None:
    values = {"power_headroom": 0.1, "minutes_to_throttle": 4, "accuracy": 0.93, "job": JOB}
    assert compile_expression(text, VARIABLES, ["job"]).holds(values) is answer


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "says something"),
        ("   ", "says something"),
        ("power_headroom <", "at column 17: .*end of expression"),
        (
            "accuracy > 15% && power_hedroom < 3",
            "at column 19: unknown name 'power_hedroom'; .*'power_headroom'",
        ),
        ("accuracy > 15% &&\n  acuracy < 3", "at line 2, column 3: unknown name 'acuracy'; .*'accuracy'"),
        ("jobs.gpus > 3", "unknown name 'jobs.gpus'; .*did you mean 'job'"),
        ("accuracy + 1", "true or false, this one is a double"),
        ("'yes'", "true or false, this one is a string"),
        ("accuracy == 'high'", "at column 10: found no matching overload"),
        ("(" * 100 + "accuracy > 1" + ")" * 100, "nested too deep"),
        ("accuracy" + " + accuracy" * 100 + " > 1", "nested too deep"),
        ("a" * (LONGEST_EXPRESSION + 1), "at most 2000 characters"),
        ("import os", "at column"),
        ("accuracy > 1; accuracy < 2", "at column 13"),
    ],
)
def test_what_does_not_compile_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){complaint}"):
        compile_expression(text, VARIABLES, ["job"])


def test_an_unknown_field_of_a_known_struct_is_refused_before_it_is_ever_evaluated() -> None:
    with pytest.raises(
        ValueError, match=r"at column 5: job has no 'gpuz'; known: gpus, .*did you mean 'gpu'"
    ):
        compile_expression("job.gpuz > 3", (), RULE_STRUCTS)
    assert compile_expression("team.usd_left < 10", (), RULE_STRUCTS).holds({"team": {"usd_left": 5}})


@pytest.mark.parametrize(
    ("text", "values", "message", "hint"),
    [
        ("accuracy > 1", {"acuracy": 2.0}, "no value named 'accuracy'", "'acuracy'"),
        ("job.gpus > 1", {"job": {"gpu": 2}}, "no value named 'gpus'", "'gpu'"),
        ("job.gpus > 1", {}, "no value named 'job'", None),
        ("accuracy > 1", {"accuracy": "high"}, "accuracy", None),
        ("accuracy > 1", {"accuracy": None}, "accuracy", None),
        ("job.gpus > 1", {"job": {"gpus": None}}, "No matching overloads", None),
        ("job.gpus", {"job": {"gpus": 1}}, "neither true nor false", None),
        ("!(accuracy > 1)", {"accuracy": math.nan}, "accuracy is not a number", None),
        ("accuracy > 1", {"accuracy": 10**400}, "too large a number", None),
        ("!(job.gpus > 1)", {"job": {"gpus": math.nan}}, "job.gpus is not a number", None),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_and_never_true(
    text: str, values: dict[str, object], message: str, hint: str | None
) -> None:
    expression = compile_expression(text, VARIABLES, ["job"])
    with pytest.raises(ExpressionError, match=message) as raised:
        expression.holds(values)
    assert text in raised.value.message
    assert (hint or "") in (raised.value.hint or "")


def test_a_value_the_expression_does_not_speak_of_cannot_spoil_it() -> None:
    assert compile_expression("accuracy > 0.5", VARIABLES).holds(
        {"accuracy": 0.9, "power_headroom": math.nan}
    )


def test_infinity_is_a_value_like_any_other() -> None:
    assert not compile_expression("minutes_to_throttle < 5", VARIABLES).holds(
        {"minutes_to_throttle": math.inf}
    )


def test_loops_inside_loops_end() -> None:
    row = f"[{','.join(['1'] * 90)}]"
    text = f"{row}.all(a, {row}.all(b, {row}.all(c, {row}.all(d, accuracy > 0))))"
    with pytest.raises(ExpressionError, match="budget"):
        compile_expression(text, VARIABLES).holds({"accuracy": 1.0})


def test_the_same_expression_is_compiled_once() -> None:
    first = compile_expression("accuracy > 0.123", list(VARIABLES))
    assert compile_expression("accuracy > 0.123", VARIABLES) is first


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("accuracy >= 0.92", ("accuracy",)),
        ("latency_p95_ms <= 40 && accuracy > latency_p95_ms", ("latency_p95_ms", "accuracy")),
        ("eval.accuracy > 0.9", ("eval.accuracy",)),
        ("[en, de].all(score, score > 0.5)", ("en", "de")),
        ("true && 'accuracy' in [name] && size([loss]) > 0", ("name", "loss")),
        ("title.startsWith('a')", ("title",)),
        ("1 > 2", ()),
    ],
)
def test_the_free_names_of_an_expression_are_those_it_needs_values_for(
    text: str, names: tuple[str, ...]
) -> None:
    assert spoken_names(text) == names


@given(st.text(max_size=60) | st.text("()[]{}.,'\"&|<>=!%?:+-*/ \n019akW", max_size=60))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    with suppress(SpellingError, ExpressionError):
        assert compile_expression(text, VARIABLES, ["job"]).holds({"accuracy": 1.0, "job": JOB}) in {
            True,
            False,
        }
