from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.checks.preflight.asking import Asking, Check
from wattline.checks.preflight.data.tokenizer import check_tokenizer
from wattline.spec import Pipeline, Policy

SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
VOCABULARY = {token: at for at, token in enumerate([*SPECIAL, "water", "pump", "rack", "feed"])}
CONFIG = {"vocab_size": 8, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}


def tokenizer(vocab: Any = VOCABULARY, **more: Any) -> dict[str, Any]:
    added = [{"id": at, "content": token, "special": True} for at, token in enumerate(SPECIAL)]
    return {"added_tokens": added, "model": {"type": "BPE", "vocab": vocab, "merges": []}} | more


def checks(folder: Path, file: object, config: object, beside: object = None) -> list[Check]:
    for name, content in {"t.json": file, "config.json": config, "tokenizer_config.json": beside}.items():
        if content is not None:
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            (folder / name).write_bytes(raw)
    return asked(folder)


def asked(folder: Path, file: str = "t.json") -> list[Check]:
    head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q", "phases": {"train": {"run": "true"}}}
    pipeline = Pipeline.model_validate(head | {"tokenizer": {"file": file, "config": "config.json"}})
    return list(check_tokenizer(Asking(pipeline=pipeline, policy=Policy.model_validate({}), folder=folder)))


def outcomes(found: list[Check]) -> dict[str, str]:
    return {check.check.removeprefix("tokenizer."): check.outcome for check in found}


def the_flaw(found: list[Check]) -> Check:
    (flaw,) = [check for check in found if check.outcome != "pass"]
    return flaw


@pytest.mark.parametrize(
    ("file", "config", "beside"),
    [
        (tokenizer(), CONFIG, None),
        (tokenizer([[token, -1.0] for token in VOCABULARY]), CONFIG, None),
        (tokenizer(), CONFIG | {"vocab_size": 64}, None),
        (tokenizer(), {"text_config": CONFIG}, None),
        (tokenizer(), CONFIG | {"eos_token_id": [2], "pad_token_id": -1}, None),
        (tokenizer(), CONFIG, {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None}),
        (tokenizer(added_tokens=[]), CONFIG, None),
    ],
)
def test_a_tokenizer_and_a_model_of_one_mind_pass(
    tmp_path: Path, file: object, config: object, beside: object
) -> None:
    found = outcomes(checks(tmp_path, file, config, beside))
    assert found == {"file": "pass", "vocabulary": "pass", "special": "pass"}


@pytest.mark.parametrize(
    ("file", "config", "message"),
    [
        (
            tokenizer(),
            CONFIG | {"vocab_size": 6},
            "2 of 8 tokens have ids beyond the model's vocab_size of 6",
        ),
        (tokenizer(VOCABULARY | {"fan": -4}), CONFIG, "'fan' (-4)"),
        (tokenizer(VOCABULARY | {"fan": 5}), CONFIG, "id 5 is 'pump' and 'fan'"),
        (tokenizer(VOCABULARY | {"<pad>": 7}), CONFIG, "'<pad>' is id 7 and id 3"),
    ],
)
def test_a_vocabulary_that_does_not_fit_fails(
    tmp_path: Path, file: object, config: object, message: str
) -> None:
    found = [check for check in checks(tmp_path, file, config) if check.outcome == "fail"]
    assert {check.check for check in found} == {"tokenizer.vocabulary"}
    assert message in "\n".join(check.message for check in found)
    assert all(check.fix for check in found)


def test_a_vocabulary_much_larger_than_the_tokenizers_is_worth_a_look(tmp_path: Path) -> None:
    warned = the_flaw(checks(tmp_path, tokenizer(), CONFIG | {"vocab_size": 32_000}))
    assert (warned.check, warned.outcome) == ("tokenizer.vocabulary", "warn")


@pytest.mark.parametrize(
    ("change", "beside", "message"),
    [
        ({"eos_token_id": 99}, None, "eos_token_id is 99, which no token has"),
        ({"bos_token_id": 4}, None, "bos_token_id is 4, which is 'water': an ordinary token"),
        ({"eos_token_id": 1}, None, "eos_token_id is 1, which is '<s>': that ends nothing"),
        ({}, {"eos_token": "<|end|>"}, "eos_token is '<|end|>', which the vocabulary lacks"),
        (
            {"pad_token_id": 2},
            {"pad_token": "<pad>"},
            "'<pad>' has id 3 in the tokenizer, and pad_token_id is 2",
        ),
    ],
)
def test_special_tokens_that_differ_fail(
    tmp_path: Path, change: dict[str, int], beside: object, message: str
) -> None:
    failed = the_flaw(checks(tmp_path, tokenizer(), CONFIG | change, beside))
    assert (failed.check, failed.outcome) == ("tokenizer.special", "fail")
    assert message in failed.message
    assert failed.fix


@pytest.mark.parametrize(
    ("file", "config", "where"),
    [
        (b'{"model": {"vocab": {', CONFIG, "t.json"),
        (b"version https://git-lfs.github.com/spec/v1\n", CONFIG, "t.json"),
        ({"model": {"vocab": {"a": "one"}}}, CONFIG, "t.json"),
        ({"version": "1.0"}, CONFIG, "t.json"),
        ({"model": {}}, CONFIG, "t.json"),
        (b"[" * 100_000, CONFIG, "t.json"),
        (None, CONFIG, "t.json"),
        (tokenizer(), b"{}}", "config.json"),
        (tokenizer(), {"vocab_size": "8"}, "config.json"),
        (tokenizer(), None, "config.json"),
        (tokenizer(), b" " * ((4 << 20) + 1), "config.json"),
    ],
)
def test_a_file_that_is_missing_or_malformed_fails(
    tmp_path: Path, file: object, config: object, where: str
) -> None:
    (failed,) = checks(tmp_path, file, config)
    assert (failed.check, failed.outcome, failed.file) == ("tokenizer.file", "fail", where)
    assert where in failed.message
    assert failed.fix


def test_what_cannot_be_compared_is_skipped(tmp_path: Path) -> None:
    assert outcomes(checks(tmp_path, tokenizer(), {}))["vocabulary"] == "skip"
    assert outcomes(asked(tmp_path, "spiece.model")) == {"file": "skip"}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["model", "vocab", "added_tokens", "id", "content"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_file_is_judged(tmp_path: Path, raw: bytes) -> None:
    assert checks(tmp_path, raw, CONFIG)
    assert checks(tmp_path, tokenizer(), raw)
