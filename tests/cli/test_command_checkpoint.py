"""What is saved, is it whole, and where else does it lie?"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from checkpoint.damage import alter, packs, reseal
from cli.looking import COMMAND, Wattline
from wattline.checkpoint import LocalStore, Series

STEPS = 3


@pytest.fixture
def store(in_folder: Path, home: Path) -> LocalStore:
    """Three checkpoints of one run, in a folder `saved`."""
    store = LocalStore(in_folder / "saved")
    series = Series(store, epoch=1, keep=None, lineage={"run": "r-1"})
    weights = np.random.default_rng(0).standard_normal(200_000, dtype=np.float32)
    for step in range(1, STEPS + 1):
        weights += np.float32(1e-3)
        series.begin({"model": {"w": weights, "frozen": np.arange(10)}, "step": step}, step)
        series.end()
    return store


def test_a_listing_says_what_each_takes_in_memory_and_added_to_the_store(
    store: LocalStore, wattline: Wattline
) -> None:
    shown = wattline("checkpoint", "list", "saved")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["NAME", "AGE", "IN", "MEMORY", "ADDED", "RATIO", "BLAKE3"]
    assert [line.split()[0] for line in lines[1:4]] == [f"step-0000000{step}.e1" for step in (3, 2, 1)]
    assert "800 kB" in lines[1]
    told = json.loads(wattline("checkpoint", "list", "saved", "--output", "json").out)
    assert told["stored_bytes"] == sum(each.size_bytes for each in store.list())
    newest = told["checkpoints"][0]
    assert newest["raw_bytes"] == 800_080
    assert newest["lineage"] == {"run": "r-1"}
    assert newest["parent"] == told["checkpoints"][1]["digest"]
    assert 0 < newest["ratio"] <= 1.01


def test_a_damaged_one_is_listed_as_such_and_found_by_verifying(
    store: LocalStore, wattline: Wattline
) -> None:
    assert wattline("checkpoint", "verify", "saved").out.count("whole") == STEPS
    last = [path for path in packs(store, "step-00000003.e1") if "step-00000003" in path.name]
    alter(last[0], 100)
    found = wattline("checkpoint", "verify", "saved", "--output", "json")
    assert found.code == 1
    told = json.loads(found.out)
    assert not told["whole"]
    assert [one["name"] for one in told["checkpoints"] if one["why"]] == ["step-00000003.e1"]
    (Path(store.address) / "checkpoints" / "step-00000002.e1").write_bytes(b"{}")
    assert "damaged: " in wattline("checkpoint", "list", "saved").out


def test_a_newer_format_is_said_to_be_newer(store: LocalStore, wattline: Wattline) -> None:
    reseal(Path(store.address) / "checkpoints" / "step-00000003.e1", schema=9)
    shown = wattline("checkpoint", "list", "saved")
    assert shown.code == 3
    assert "schema 9" in shown.err
    assert "Traceback" not in shown.err


def test_it_is_restored_for_people_without_wattline(
    store: LocalStore, wattline: Wattline, in_folder: Path
) -> None:
    written = wattline("checkpoint", "restore", "saved", "--to", "safetensors", "--file", "m.safetensors")
    assert written.code == 0, written.err
    raw = (in_folder / "m.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header["model.w"]["shape"] == [200_000]
    assert header["model.w"]["dtype"] == "F32"
    older = wattline(
        "checkpoint", "restore", "saved", "--name", "step-00000001.e1",
        "--to", "safetensors", "--file", "old.safetensors", "--output", "json",
    )  # fmt: skip
    assert json.loads(older.out)["step"] == 1


def test_another_folder_comes_to_have_it_all(store: LocalStore, wattline: Wattline, in_folder: Path) -> None:
    lacking = wattline("checkpoint", "replicate", "saved", "--to", "copy", "--check")
    assert lacking.code == 1
    assert "lacks 3 of 3 checkpoints" in lacking.err
    sent = json.loads(
        wattline("checkpoint", "replicate", "saved", "--to", "copy", "--newest", "--output", "json").out
    )
    assert [one["name"] for one in sent["copied"]] == ["step-00000003.e1"]
    assert wattline("checkpoint", "replicate", "saved", "--to", "copy", "--rate", "800Mbps").code == 0
    assert wattline("checkpoint", "replicate", "saved", "--to", "copy", "--check").code == 0
    assert "has it all" in wattline("checkpoint", "replicate", "saved", "--to", "copy").out
    assert wattline("checkpoint", "verify", "copy").code == 0


def test_pruning_says_first_what_would_go(store: LocalStore, wattline: Wattline) -> None:
    would = wattline("checkpoint", "prune", "saved", "--keep-last", "1", "--dry-run")
    assert "step-00000001.e1 would go" in would.out
    assert len(store.list("checkpoints/")) == STEPS
    went = json.loads(wattline("checkpoint", "prune", "saved", "--keep-last", "1", "-o", "json").out)
    assert went["removed"] == ["step-00000002.e1", "step-00000001.e1"]
    assert [each.name for each in store.list("checkpoints/")] == ["checkpoints/step-00000003.e1"]
    assert wattline("checkpoint", "verify", "saved").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("list", "nowhere"), 3, "nothing was ever run"),
        (("list", "ftp://host/x"), 3, "is no store"),
        (("list", "http://127.0.0.1:9"), 3, "WATTLINE_TOKEN is not set"),
        (("verify", "saved", "--name", "step-00000009.e1"), 1, ""),
        (("restore", "empty", "--to", "torch", "--file", "x"), 3, "holds no checkpoint"),
        (("replicate", "saved", "--to", "copy", "--rate", "fast"), 2, "fast"),
        (("prune", "saved", "--keep-last", "0"), 2, "keep-last"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    store: LocalStore,
    wattline: Wattline,
    in_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    monkeypatch.delenv("WATTLINE_TOKEN", raising=False)
    (in_folder / "empty").mkdir()
    shown = wattline("checkpoint", *arguments)
    assert shown.code == code, shown
    assert says in shown.err + shown.out
    assert "Traceback" not in shown.err


def test_another_machine_receives_them_with_the_right_token_only(
    store: LocalStore, wattline: Wattline, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTLINE_TOKEN", "a-token-that-is-long-enough")
    command = [*COMMAND, "checkpoint", "receive", "there", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as receiving:
        assert receiving.stderr is not None
        url = receiving.stderr.readline().split(" receives at ")[1].split(";")[0]
        sent = wattline("checkpoint", "replicate", "saved", "--to", url)
        assert sent.code == 0, sent.err
        assert wattline("checkpoint", "replicate", "saved", "--to", url, "--check").code == 0
        assert wattline("checkpoint", "verify", "there").out.count("whole") == STEPS
        assert wattline("checkpoint", "list", url).out.count("step-") == STEPS
        monkeypatch.setenv("WATTLINE_TOKEN", "another-token-that-is-long")
        refused = wattline("checkpoint", "list", url)
        assert refused.code == 3
        assert "another-token" not in refused.err
        receiving.send_signal(signal.SIGINT)
        assert receiving.wait(30) == 0
