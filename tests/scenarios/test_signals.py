"""A script that may not be changed: it saves on a signal, leaves on another, and is moved all the same."""

from __future__ import annotations

from typing import Any

from cli.running import Desk, assert_nothing_is_left
from scenarios.halls import a_scenario

_PLAIN = """
import os, pathlib, signal, sys, time

saved = pathlib.Path("out/state/count.txt")
count = int(saved.read_text()) if saved.exists() else 0
began_at = count

def save(*_):
    saved.parent.mkdir(exist_ok=True)
    saved.write_text(str(count))

signal.signal(signal.SIGUSR1, save)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
told = began_at
while count < (10**9 if os.environ["WATTLINE_EPOCH"] == "1" else began_at + 5):
    time.sleep(0.05)
    count += 1
    if told == 0:  # only so that what breaks here does so once signals are caught and something is counted
        told = count
        with open(os.environ["WATTLINE_ATTEMPT"] + "/reports.jsonl", "a") as file:
            file.write('{"kind": "step", "step": 5}\\n')
pathlib.Path("out/model.npy").write_text(f"{began_at} to {count}")
"""


def test_a_script_that_knows_only_signals_is_paused_moved_and_carried_on(desk: Desk) -> None:
    fault: dict[str, Any] = {"loop": "north/crah", "flow": "0.5%"}
    options = a_scenario(desk, fault, [])
    desk.write("plain.py", _PLAIN)
    train = {
        "run": "exec python plain.py",
        "resources": {"gpus": 2},
        "checkpoint": {},
        "signals": {"checkpoint": "SIGUSR1", "finish": "SIGTERM", "saved_to": "out/state"},
        "under_pressure": [{"migrate": "any"}],
    }
    desk.pipeline({"train": train})
    ran = desk.run(*options)
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (phase,) = ran.json["phases"]
    assert [(one["site"], one["ending"]) for one in phase["attempts"]] == [
        ("north", "paused"),
        ("south", "succeeded"),
    ]
    assert desk.actions("train") == ["start", "pause", "migrate"]
    (model,) = desk.home.glob("runs/*/train/2/work/out/model.npy")
    began_at, count = map(int, model.read_text().split(" to "))
    assert began_at > 0
    assert count == began_at + 5
    assert_nothing_is_left(desk)
