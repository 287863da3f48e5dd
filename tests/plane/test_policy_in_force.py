"""Which policy goes: the one that is named, else the one that is promoted, else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import submit, write_policy
from cli.looking import Writing
from wattline.plane.policy_in_force import Following, choose_policy, promoted_policy
from wattline.release.policy_shelf import PolicyShelf
from wattline.state import Adopted, Noticed


def promote(writing: Writing, file: Path) -> str:
    digest = writing.session.keep_policy(file)
    PolicyShelf(writing.session.home).promote(
        file.stem, digest, by="bob", at=1.0, approved_by="ada", because="why not"
    )
    return digest


@pytest.fixture
def default(writing: Writing) -> str:
    submit(writing, "first")
    return writing.session.keep_policy("default")


def test_the_named_one_goes_before_the_promoted_and_that_before_all_else(
    writing: Writing, default: str, tmp_path: Path
) -> None:
    session, named = writing.session, write_policy(tmp_path, "named")
    assert choose_policy(session, None) == default
    assert choose_policy(session, None, otherwise="sha256:before") == "sha256:before"
    assert promoted_policy(session.home) is None
    digest = promote(writing, write_policy(tmp_path, "promoted"))
    assert choose_policy(session, None, otherwise="sha256:before") == digest
    assert choose_policy(session, str(named)) == session.keep_policy(named)
    found = promoted_policy(session.home)
    assert found is not None
    assert found.policy == "promoted"


def test_who_conducts_hears_of_a_promotion_once_and_of_its_rollback(
    writing: Writing, default: str, tmp_path: Path
) -> None:
    state = writing.session.state
    assert state is not None
    following = Following(writing.session, default)
    assert following.look(state, 5.0) == []
    digest = promote(writing, write_policy(tmp_path, "new"))
    adopted, noticed = following.look(state, 5.0)
    assert isinstance(adopted, Adopted)
    assert (adopted.policy, adopted.policy_sha256, adopted.actor) == ("new", digest, "bob")
    assert isinstance(noticed, Noticed)
    assert "approved by ada: why not" in noticed.say
    assert following.look(state, 6.0) == []
    PolicyShelf(writing.session.home).rollback(by="bob", at=7.0)
    back = following.look(state, 7.0)[0]
    assert isinstance(back, Adopted)
    assert back.policy_sha256 == default


def test_a_rollback_to_nothing_leaves_what_was_never_promoted(
    writing: Writing, default: str, tmp_path: Path
) -> None:
    state = writing.session.state
    assert state is not None
    promote(writing, write_policy(tmp_path, "new"))
    PolicyShelf(writing.session.home).rollback(by="bob", at=7.0)
    own = writing.session.keep_policy(write_policy(tmp_path, "own"))
    assert own != default
    assert Following(writing.session, own).look(state, 8.0) == []


def test_a_promotion_that_cannot_be_read_is_noticed_and_changes_nothing(
    writing: Writing, default: str, tmp_path: Path
) -> None:
    state = writing.session.state
    assert state is not None
    following = Following(writing.session, default)
    promote(writing, write_policy(tmp_path, "new"))
    (writing.session.home.root / "policies" / "history.jsonl").write_text("?\n")
    (noticed,) = following.look(state, 5.0)
    assert isinstance(noticed, Noticed)
    assert "cannot be taken up" in noticed.say
    assert following.look(state, 6.0) == [], "told once"
