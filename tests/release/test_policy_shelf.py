"""What was put in force, by whom and why, and what it takes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live import Home
from wattline.release.policy_shelf import Placing, PolicyShelf


@pytest.fixture
def shelf(tmp_path: Path) -> PolicyShelf:
    return PolicyShelf(Home(tmp_path))


def promote(shelf: PolicyShelf, name: str, **changes: str) -> Placing:
    words = {"approved_by": "ada", "because": "reviewed"} | changes
    return shelf.promote(name, f"sha256:{name}", by="bob", at=1.0, **words)


def test_nothing_is_promoted_at_first(shelf: PolicyShelf) -> None:
    assert (shelf.current(), shelf.history(), shelf.stamp()) == (None, (), None)
    with pytest.raises(RefusedError, match="none to take back"):
        shelf.rollback(by="bob", at=1.0)


def test_a_rollback_goes_to_what_was_in_force_before_not_to_the_number_before(shelf: PolicyShelf) -> None:
    for name in ("one", "two"):
        promote(shelf, name)
    assert shelf.rollback(by="bob", at=2.0).policy == "one"
    promote(shelf, "three")
    back = shelf.rollback(by="bob", at=3.0)
    assert (back.policy, back.number, back.rolled_back) == ("one", 1, True), "two was taken back already"
    none = shelf.rollback(by="bob", at=4.0)
    assert (none.number, none.sha256, shelf.current()) == (0, "", None)
    assert [each.number for each in shelf.history()] == [1, 2, 1, 3, 1, 0]


def test_promoting_what_is_in_force_changes_nothing(shelf: PolicyShelf) -> None:
    first = promote(shelf, "one")
    stamp = shelf.stamp()
    assert promote(shelf, "one", because="again") == first
    assert (len(shelf.history()), shelf.stamp()) == (1, stamp)
    promote(shelf, "two")
    assert shelf.stamp() != stamp, "who conducts sees that there is news"


@pytest.mark.parametrize("words", [{"approved_by": ""}, {"because": "  "}, {"because": "a\nb"}])
def test_nobody_promotes_without_a_name_and_a_reason(shelf: PolicyShelf, words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        promote(shelf, "one", **words)
    assert shelf.history() == ()


def test_a_history_that_cannot_be_read_says_so(shelf: PolicyShelf, tmp_path: Path) -> None:
    promote(shelf, "one")
    (tmp_path / "policies" / "history.jsonl").write_text("{]\n")
    with pytest.raises(UnavailableError, match="no history of policies"):
        shelf.current()
