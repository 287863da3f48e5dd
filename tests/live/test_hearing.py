from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.control import StepRecord, decode_step, encode_step
from wattline.live.hearing import read_digest, read_number, read_whole, read_words
from wattline.state import CheckpointSaved, Decision, Noticed

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(_ANYTHING)
def test_whatever_a_training_says_the_journal_stays_readable(said: object) -> None:
    saved = CheckpointSaved(
        at=1.0,
        job="r1/train",
        attempt=1,
        step=read_whole(said) or 0,
        site="zurich",
        digest=read_digest(said),
        seconds=read_number(said) or 0.0,
    )
    noticed = Noticed(at=1.0, subject="r1/train/1", say=read_words(said, 300))
    record = StepRecord(events=(saved, noticed), digest="", decision=Decision(at=1.0))
    assert decode_step(encode_step(record)) == record


@pytest.mark.parametrize("said", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "true", '"3"', "null"])
def test_what_is_no_finite_number_is_none(said: str) -> None:
    assert read_number(json.loads(said)) is None


@pytest.mark.parametrize("said", [-1, 2**63, True, 1.0, "1", None])
def test_what_is_no_count_is_none(said: object) -> None:
    assert read_whole(said) is None


def test_numbers_counts_and_digests_come_through() -> None:
    assert (read_number(3), read_number(-0.5)) == (3.0, -0.5)
    assert (read_whole(0), read_whole(2**63 - 1)) == (0, 2**63 - 1)
    assert read_digest("0a" * 32) == "0a" * 32


@pytest.mark.parametrize("said", ["0A" * 32, "0a" * 31, "0a" * 32 + "\n", 7, None, ["0a" * 32]])
def test_what_is_no_digest_is_nothing(said: object) -> None:
    assert read_digest(said) == ""


def test_words_are_short_and_hold_nothing_that_a_terminal_would_obey() -> None:
    assert read_words("a\x1b[2J\x07\ud800b", 100) == "a\ufffd[2J\ufffd\ufffdb"
    assert len(read_words("x" * 1000, 300)) == 300
