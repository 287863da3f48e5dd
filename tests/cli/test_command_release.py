from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline
from wattline.live import Home
from wattline.plane.session import Session


def test_a_release_that_needs_approval_is_refused_without(ran: str, wattline: Wattline) -> None:
    refused = wattline("promote", ran)
    assert refused.code == 1
    assert "needs approval" in refused.err


def test_an_approved_run_becomes_current_and_is_journaled(ran: str, home: Path, wattline: Wattline) -> None:
    done = wattline("promote", ran, "--approved-by", "ada", "--note", "looks good", "--output", "json")
    assert done.code == 0
    assert done.json["journaled"]
    assert (done.json["name"], done.json["channel"], done.json["number"]) == ("small", "staging", 1)
    assert (Path(done.json["path"]) / "artifacts" / "weights.npy").is_file()
    assert "released" in wattline("status").out
    assert "small:staging number 1" in wattline("explain", ran).out


def test_to_promote_again_changes_nothing(ran: str, wattline: Wattline) -> None:
    for _ in range(2):
        done = wattline("promote", ran, "--approved-by", "ada", "--output", "json").json
        assert done["number"] == 1


def test_there_is_no_way_back_from_the_first_release(ran: str, wattline: Wattline) -> None:
    wattline("promote", ran, "--approved-by", "ada")
    refused = wattline("rollback", "small")
    assert refused.code == 1
    assert "no release before 1" in refused.err


def test_a_rollback_names_the_run_it_went_back_to(ran: str, wattline: Wattline) -> None:
    wattline("promote", ran, "--approved-by", "ada")
    back = wattline("rollback", "small", "--to", "1", "--output", "json")
    assert back.code == 0
    assert back.json["run_id"] == ran
    assert back.json["rolled_back"]


def test_a_channel_is_asked_for_where_there_are_two(ran: str, wattline: Wattline) -> None:
    for channel in ("staging", "production"):
        assert wattline("promote", ran, "--approved-by", "ada", "--to", channel).code == 0
    unclear = wattline("rollback", "small")
    assert unclear.code == 2
    assert "small:production or small:staging" in unclear.err
    assert "did you mean staging?" in wattline("rollback", "small", "--channel", "stagin").err


def test_unknown_names_get_the_nearest(ran: str, wattline: Wattline) -> None:
    wattline("promote", ran, "--approved-by", "ada")
    assert f"did you mean {ran}?" in wattline("promote", ran + "x").err
    assert "did you mean small?" in wattline("rollback", "smal").err


@pytest.mark.parametrize("name", ["..", "../..", "small/..", "."])
def test_a_name_cannot_lead_out_of_the_shelf(name: str, ran: str, wattline: Wattline) -> None:
    assert wattline("rollback", name).code == 2
    assert wattline("promote", ran, "--approved-by", "ada", "--to", name).code == 2


def test_while_another_process_writes_the_release_waits_for_it(
    ran: str, home: Path, wattline: Wattline
) -> None:
    other = Session(Home(home))
    assert other.become_writer()
    done = wattline("promote", ran, "--approved-by", "ada", "--output", "json")
    assert done.code == 0
    assert not done.json["journaled"]
    (event,) = other.requests()
    assert getattr(event, "run", None) == ran
    other.close()
