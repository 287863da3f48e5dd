"""What does the control plane want of this attempt, and what does it hear back?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wattline.train import ScriptError
from wattline.train.mailbox import Desired, Mailbox


def replace(attempt: Path, text: str) -> None:
    (attempt / "new.json").write_text(text)
    (attempt / "new.json").replace(attempt / "desired.json")


def test_alone_nothing_is_wanted_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mailbox = Mailbox(None)
    mailbox.report("step", step=1)
    assert mailbox.poll() == Desired(serial=0, in_flight=1.0, checkpoint=0, pause=False)
    assert list(tmp_path.iterdir()) == []


def test_each_replacement_is_seen_and_nothing_is_read_twice(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    assert mailbox.poll() == Desired()
    replace(tmp_path, '{"serial": 1, "in_flight": 0.5, "checkpoint": 2, "pause": false}')
    first = mailbox.poll()
    assert first == Desired(serial=1, in_flight=0.5, checkpoint=2)
    assert mailbox.poll() is first
    replace(tmp_path, '{"serial": 2, "in_flight": 1, "checkpoint": 2, "pause": true}')
    assert mailbox.poll() == Desired(serial=2, in_flight=1, checkpoint=2, pause=True)
    mailbox.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"in_flight": 0}',
        '{"in_flight": 1.5}',
        '{"in_flight": NaN}',
        '{"in_flight": true}',
        '{"serial": "1"}',
        '{"checkpoint": 1.5}',
        '{"pause": 1}',
        "[" * 60_000,
    ],
)
def test_orders_that_make_no_sense_change_nothing(tmp_path: Path, text: str) -> None:
    mailbox = Mailbox(tmp_path)
    replace(tmp_path, '{"serial": 1, "in_flight": 0.5}')
    before = mailbox.poll()
    replace(tmp_path, text)
    with pytest.warns(RuntimeWarning, match="ignored"):
        after = mailbox.poll()
    assert after == before
    mailbox.close()


REPORT_A_LOT = """
import sys
from pathlib import Path
from wattline.train.mailbox import Mailbox
mailbox = Mailbox(Path(sys.argv[1]))
for number in range(500):
    mailbox.report("step", step=number, who=sys.argv[2], padding="x" * (number % 97))
"""


def test_reports_of_two_writers_never_mix_within_a_line(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", REPORT_A_LOT, str(tmp_path), who]) for who in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    lines = [json.loads(line) for line in (tmp_path / "reports.jsonl").read_text().splitlines()]
    for who in "ab":
        assert [line["step"] for line in lines if line["who"] == who] == list(range(500))


def test_an_attempt_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="WATTLINE_ATTEMPT"):
        Mailbox(tmp_path / "missing")
