"""A policy is put in force with a name and a reason, goes for runs that name none, and is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.deciding import NOBODY, submit, write_policy
from cli.looking import PIPELINE, Wattline, Writing
from cli.running import Desk, end, wait_until
from wattline.control import replay
from wattline.state import Adopted, Noticed
from wattline.store.steps import read_steps

APPROVED = ("--approved-by", "ada", "--because", "see the review")


def test_a_promotion_is_journaled_with_its_digest_and_its_reason(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    submit(writing, "first")
    writing.session.close()
    strict = write_policy(tmp_path, **NOBODY)
    told = wattline("policy", "promote", strict, *APPROVED, "--output", "json")
    assert told.code == 0
    assert (told.json["policy"], told.json["number"], told.json["journaled"]) == ("strict", 1, True)
    writing.reopen(writing.session.home.root)
    assert writing.session.policy().policy == "strict"
    (said,) = [
        event.say
        for _, record in read_steps(writing.session.store.journal)
        for event in record.events
        if isinstance(event, Noticed)
    ]
    assert "approved by ada: see the review" in said


def test_what_is_in_force_and_how_it_came_is_shown(
    writing: Writing, wattline: Wattline, tmp_path: Path
) -> None:
    writing.session.close()
    assert "no policy is promoted here" in wattline("policy", "show").out
    for name in ("one", "two"):
        assert wattline("policy", "promote", write_policy(tmp_path, name), *APPROVED).code == 0
    back = wattline("policy", "rollback", "--because", "nothing starts")
    assert (back.code, "rolled back to one (number 1)" in back.out) == (0, True)
    shown = wattline("policy", "show", "--output", "json").json
    assert (shown["promoted"]["policy"], shown["adopted"]["policy"]) == ("one", "one")
    assert [each["policy"] for each in shown["history"]] == ["one", "two", "one"]
    assert shown["history"][-1]["because"] == "nothing starts"
    assert wattline("policy", "rollback").code == 0
    shown = wattline("policy", "show", "--output", "json").json
    assert (shown["promoted"], shown["adopted"]["policy"]) == (None, "default")
    assert wattline("policy", "rollback").code == 1
    assert "approved by ada: see the review" in wattline("policy", "show").out.replace("\n", " ")


def test_a_policy_that_is_wrong_is_not_put_in_force(wattline: Wattline, home: Path, tmp_path: Path) -> None:
    wrong = write_policy(tmp_path, "wrong", ruels=[])
    assert wattline("policy", "promote", wrong, *APPROVED).code == 2
    assert wattline("policy", "promote", "default", "--approved-by", "ada").code == 2
    assert wattline("policy", "show", "--output", "json").json["history"] == []
    assert not (home / "policies").exists()


def test_check_goes_by_what_is_promoted(wattline: Wattline, home: Path, in_folder: Path) -> None:
    (in_folder / "wattline.yaml").write_text(PIPELINE)
    (in_folder / "train.py").write_text("print('trains')\n")
    (in_folder / "data").mkdir()
    (in_folder / "data" / "words.txt").write_text("one\n")
    assert wattline("check", "-o", "json").json["policy_name"] == "default"
    strict = write_policy(in_folder, **NOBODY)
    assert wattline("policy", "promote", strict, *APPROVED).code == 0
    checked = wattline("check", "-o", "json")
    assert (checked.code, checked.json["policy_name"]) == (1, "strict")
    assert wattline("check", "--policy", "default", "-o", "json").json["policy_name"] == "default"


@pytest.mark.parametrize("named", [False, True], ids=["without --policy", "with --policy"])
def test_a_run_goes_by_what_is_promoted_unless_it_names_another(
    desk: Desk, wattline: Wattline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: bool
) -> None:
    desk.pipeline({"train": {"run": "true", "resources": {"gpus": 1}}})
    monkeypatch.setenv("WATTLINE_HOME", str(desk.home))
    strict = write_policy(tmp_path, **NOBODY)
    assert wattline("policy", "promote", strict, *APPROVED).code == 0
    ran = desk.run("--policy", "default") if named else desk.run()
    assert ran.json["status"] == ("succeeded" if named else "refused")
    assert adopted(desk) == ["default" if named else "strict"]
    if not named:
        assert wattline("policy", "rollback").code == 0
        assert desk.run().json["status"] == "succeeded", "back in one step"


def test_a_queue_that_runs_takes_up_what_is_promoted_and_its_replay_does_not_drift(
    desk: Desk, wattline: Wattline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WATTLINE_HOME", str(desk.home))
    go = tmp_path / "go"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.1)\n"
    train = {"after": ["wait"], "run": "true", "resources": {"gpus": 1}}
    desk.pipeline({"wait": wait, "train": train})
    process = desk.start()
    wait_until(lambda: desk.found("runs/*/wait/1/started.json"), process)
    strict = write_policy(tmp_path, **NOBODY)
    told = wattline("policy", "promote", strict, *APPROVED, "--output", "json").json
    assert not told["journaled"], "who conducts writes"
    wait_until(lambda: adopted(desk) == ["default", "strict"], process)
    go.touch()
    ran = end(process)
    assert ran.json["status"] == "refused"
    with desk.session() as session:
        drifts = replay(read_steps(session.store.journal), session.documents)
        assert [drift for drift in drifts if drift.what == "decision"] == []


def adopted(desk: Desk) -> list[str]:
    return [event.policy for event in desk.events() if isinstance(event, Adopted)]
