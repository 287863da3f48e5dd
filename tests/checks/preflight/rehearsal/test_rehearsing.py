from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

from checks.asked import ask
from wattline.checks import Check
from wattline.checks.preflight.rehearsal import staging
from wattline.checks.preflight.rehearsal.rehearsing import check_rehearsal

LOOP = """
import numpy as np
from wattline import train

run = train.start(model={"w": np.zeros(3)})
for step in run.steps(10_000_000):
    run.log(loss=1.0)
print("after the loop")
(run.out / "model.json").write_text("{}")
"""


def rehearsed(folder: Path, phases: dict[str, Any] | None = None, **more: Any) -> list[Check]:
    given = phases or {"train": {"run": "python train.py"}}
    return list(check_rehearsal(ask(folder, phases=given, rehearse=True, **more)))


def write(folder: Path, name: str, code: str) -> None:
    (folder / name).write_text(dedent(code).strip() + "\n")


def only(checks: list[Check]) -> Check:
    (check,) = checks
    return check


def test_nothing_runs_unless_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "train.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
    (check,) = check_rehearsal(ask(tmp_path, phases={"train": {"run": "python train.py"}}))
    assert check.outcome == "skip"
    assert not (tmp_path / "ran").exists()


def test_a_loop_ends_after_the_steps_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "train.py", LOOP)
    check = only(rehearsed(tmp_path, {"train": {"run": "python train.py", "rehearse": {"steps": 3}}}))
    assert check.outcome == "pass"
    assert check.message.startswith("3 steps in ")


def test_the_original_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "open('data.txt', 'w').write('spoilt'); open('train.py', 'a').write('x')")
    (tmp_path / "data.txt").write_text("data")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    check = only(rehearsed(tmp_path, data=[{"name": "data", "path": "data.txt"}]))
    assert check.outcome == "pass"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_only_what_travels_with_the_run_is_there(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "open('ignored.txt')")
    (tmp_path / "ignored.txt").write_text("")
    assert only(rehearsed(tmp_path)).outcome == "pass"
    check = only(rehearsed(tmp_path, source={"train.py"}))
    assert check.message.startswith("FileNotFoundError")


def test_phases_find_what_earlier_ones_wrote_and_wait_for_those_that_failed(tmp_path: Path) -> None:
    phases = {
        "write": {"run": "echo 1 > out/number"},
        "read": {"run": "cat out/number", "after": ["write"]},
        "fail": {"run": "exit 4", "after": ["read"]},
        "wait": {"run": "true", "after": ["fail"]},
        "other": {"run": "true", "after": ["write"]},
    }
    found = {check.subject: check for check in rehearsed(tmp_path, phases)}
    assert [found[name].outcome for name in phases] == ["pass", "pass", "fail", "skip", "pass"]
    assert found["fail"].message == "said nothing (exit code 4)"
    assert found["wait"].message == "it waits for fail, which was not rehearsed or failed"


def test_a_phase_may_be_left_out_or_have_a_rehearsal_of_its_own(tmp_path: Path) -> None:
    phases = {
        "large": {"run": "exit 1", "rehearse": "skip"},
        "after": {"run": "exit 1", "after": ["large"]},
        "own": {"run": "exit 1", "after": ["large"], "rehearse": {"run": "true"}},
    }
    assert [check.outcome for check in rehearsed(tmp_path, phases)] == ["skip", "skip", "pass"]


def test_parameters_are_changed_in_the_copy_alone(tmp_path: Path) -> None:
    (tmp_path / "params.json").write_text(json.dumps({"width": 4096, "model": {"layers": 32, "heads": 8}}))
    (tmp_path / "params.yaml").write_text("width: 4096\nmodel: {layers: 32, heads: 8}\n")
    for file, load in (("params.json", "json.load(f)"), ("params.yaml", "yaml.safe_load(f)")):
        write(
            tmp_path,
            "train.py",
            f"""
            import json, os, yaml

            with open("{file}") as f:
                assert {load} == {{"width": 4, "model": {{"layers": 2, "heads": 8}}}}
            assert os.path.samefile(os.environ["WATTLINE_PARAMS"], "{file}")
            """,
        )
        phase = {"run": "python train.py", "rehearse": {"params": {"width": 4, "model.layers": 2}}}
        check = only(rehearsed(tmp_path, {"train": phase}, params=file))
        assert check.outcome == "pass", check.message
        assert "4096" in (tmp_path / file).read_text()


def test_parameters_need_a_file_that_can_be_changed(tmp_path: Path) -> None:
    phases = {"train": {"run": "true", "rehearse": {"params": {"width": 4}}}}
    check = only(rehearsed(tmp_path, phases))
    assert check.outcome == "fail"
    assert "has no params file" in check.message
    (tmp_path / "params.toml").write_text("width = 4096\n")
    check = only(rehearsed(tmp_path, phases, params="params.toml"))
    assert check.message == "rehearse.params cannot be written into params.toml"


def test_secrets_are_given_by_name_and_never_shown(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "import os\nraise ValueError(os.environ['TOKEN'], os.environ.get('OTHER'))")
    environment = {"TOKEN": "a-secret-value", "OTHER": "not-for-it"}
    check = only(rehearsed(tmp_path, secrets=["TOKEN"], environment=environment))
    assert check.message == "ValueError: ('•••', None) (exit code 1), at train.py:2"


def test_a_fault_in_a_library_is_placed_where_the_project_called_it(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "import json\n\njson.loads('{')")
    check = only(rehearsed(tmp_path))
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 3)
    assert "JSONDecodeError" in check.message


def test_a_loss_that_is_printed_counts(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "print('step 1 loss: nan')")
    check = only(rehearsed(tmp_path))
    assert (check.outcome, check.message) == ("fail", "loss is not finite")


def test_a_number_that_only_looks_like_it_does_not(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "print('loss 0.5, lossless nano')")
    assert only(rehearsed(tmp_path)).outcome == "pass"


def test_a_script_without_steps_that_is_still_at_work_passes(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "while True:\n    pass")
    phases = {"train": {"run": "python train.py", "rehearse": {"within": "3s"}}}
    check = only(rehearsed(tmp_path, phases))
    assert (check.outcome, check.message) == ("pass", "ran for 3 s and was still at work")


def test_whoever_does_without_the_network_passes(tmp_path: Path) -> None:
    write(
        tmp_path,
        "train.py",
        """
        import urllib.request

        try:
            urllib.request.urlopen("https://telemetry.example.org")
        except OSError:
            print("then without")
        """,
    )
    assert only(rehearsed(tmp_path)).outcome == "pass"


def test_waiting_for_the_network_names_the_host(tmp_path: Path) -> None:
    write(
        tmp_path,
        "train.py",
        """
        import socket, time

        while True:
            try:
                socket.create_connection(("hub.example.org", 443))
            except OSError:
                time.sleep(0.5)
        """,
    )
    phases = {"train": {"run": "python train.py", "rehearse": {"within": "5s"}}}
    check = only(rehearsed(tmp_path, phases))
    assert check.message.startswith("needs the network: it reached for hub.example.org, at train.py:")


def test_a_source_that_is_too_large_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(staging, "_MOST_BYTES", 10)
    write(tmp_path, "train.py", "print('more than ten bytes')")
    check = only(rehearsed(tmp_path))
    assert check.outcome == "skip"
    assert check.message.startswith("the source is larger than")


def test_data_that_is_too_large_to_copy_is_linked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(staging, "_MOST_BYTES", 1000)
    (tmp_path / "large.bin").write_bytes(bytes(2000))
    write(
        tmp_path,
        "train.py",
        "import os\nassert os.path.islink('large.bin') and len(open('large.bin').read()) == 2000",
    )
    assert only(rehearsed(tmp_path, data=[{"name": "large", "path": "large.bin"}])).outcome == "pass"
