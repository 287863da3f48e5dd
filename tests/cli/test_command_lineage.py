from __future__ import annotations

import sqlite3
from pathlib import Path

from cli.looking import Wattline


def test_an_intact_lineage_reads_every_hash_again(ran: str, wattline: Wattline) -> None:
    told = wattline("lineage", ran)
    assert told.code == 0
    for part in ("manifest", "artifact weights.npy", "checkpoint", "phases", "source bundle", "commit"):
        assert part in told.out
    for part in ("data words", "policy default", "facility lab", "journal"):
        assert part in told.out
    assert "intact" in told.out


def test_json_says_how_each_link_came_out(ran: str, wattline: Wattline) -> None:
    told = wattline("lineage", ran, "--output", "json").json
    assert told["intact"]
    assert told["run_id"] == ran
    assert {link["outcome"] for link in told["links"]} == {"verified"}


def test_a_released_file_that_changed_breaks_it(ran: str, wattline: Wattline) -> None:
    done = wattline("promote", ran, "--approved-by", "ada", "--output", "json").json
    assert wattline("lineage", "small").code == 0
    artifact = Path(done["path"]) / "artifacts" / "weights.npy"
    artifact.chmod(0o644)
    artifact.write_bytes(b"something else")
    told = wattline("lineage", "small:staging")
    assert told.code == 1
    assert "altered" in told.out
    assert "not intact" in told.out


def test_a_journal_that_changed_breaks_it(ran: str, home: Path, wattline: Wattline) -> None:
    with sqlite3.connect(home / "wattline.db") as database:
        database.execute("update journal set at = at + 1 where seq = 1")
    database.close()
    told = wattline("lineage", ran, "--output", "json")
    assert told.code == 1
    (broken,) = [link for link in told.json["links"] if link["outcome"] != "verified"]
    assert broken["kind"] == "decisions"


def test_an_object_that_is_gone_breaks_it(ran: str, home: Path, wattline: Wattline) -> None:
    told = wattline("lineage", ran, "--output", "json").json
    source = next(link for link in told["links"] if link["kind"] == "source")
    (found,) = home.glob(f"objects/**/{source['digest'].removeprefix('sha256:')[2:]}*")
    found.unlink()
    again = wattline("lineage", ran)
    assert again.code == 1
    assert "missing" in again.out


def test_unknown_names_get_the_nearest(ran: str, wattline: Wattline) -> None:
    told = wattline("lineage", ran[:-1] + "x")
    assert told.code == 2
    assert f"did you mean {ran}?" in told.err
