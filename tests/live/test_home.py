from __future__ import annotations

from pathlib import Path

import pytest

from wattline.errors import UnavailableError
from wattline.live import Home


def test_the_environment_says_where_state_is_kept() -> None:
    assert Home.find({"WATTLINE_HOME": "/srv/w", "XDG_STATE_HOME": "/x"}).root == Path("/srv/w")
    assert Home.find({"XDG_STATE_HOME": "/x"}).root == Path("/x/wattline")
    assert Home.find({}).root == Path.home() / ".local" / "state" / "wattline"


def test_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b").ensure()
    assert home.root.stat().st_mode & 0o777 == 0o700


def test_a_home_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match="cannot be made") as raised:
        Home(tmp_path / "file" / "home").ensure()
    assert raised.value.hint == "set WATTLINE_HOME to a folder you may write to"


def test_attempts_and_checkpoints_of_one_phase_have_places_of_their_own(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.attempt("r1", "train", 2) == tmp_path / "runs" / "r1" / "train" / "2"
    assert home.checkpoints("zurich", "r1", "train") == tmp_path / "sites/zurich/checkpoints/r1/train"
