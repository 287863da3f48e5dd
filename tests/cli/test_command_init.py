from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.looking import COMMAND, Wattline
from wattline.cli.starting import facility_text, imports_train, slug
from wattline.spec import FacilityDocument, build_facility, parse_document, read_pipeline
from wattline.telemetry.nvml import NvmlDevice

_SCRIPT = """
import json, pathlib
total = sum(len(line) for line in open("data/words.txt"))
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/metrics.json").write_text(json.dumps({"total": total}))
"""


def test_a_plain_script_runs_at_once(in_folder: Path, tmp_path: Path) -> None:
    (in_folder / "train.py").write_text(_SCRIPT)
    (in_folder / "data").mkdir()
    (in_folder / "data" / "words.txt").write_text("one\n")
    environment = {**os.environ, "WATTLINE_HOME": str(tmp_path / "home")}
    for arguments in (["init"], ["run", "--facility", "facility.yaml"]):
        done = subprocess.run(
            [*COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "succeeded" in done.stdout
    assert read_pipeline(in_folder / "wattline.yaml").data[0].sha256 is not None


def test_nothing_is_written_over_unless_forced(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "main.py").touch()
    assert wattline("init").code == 0
    (in_folder / "wattline.yaml").write_text("mine")
    refused = wattline("init")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (in_folder / "wattline.yaml").read_text() == "mine"
    assert wattline("init", "--force").code == 0
    assert read_pipeline(in_folder / "wattline.yaml").phases["train"].run == "python main.py"


def test_a_script_that_imports_the_training_runtime_gets_checkpoints(
    in_folder: Path, wattline: Wattline
) -> None:
    (in_folder / "train.py").write_text("from wattline import train\n")
    done = wattline("init", "--output", "json").json
    assert done["asked_through"] == "wattline.train"
    phase = read_pipeline(in_folder / "wattline.yaml").phases["train"]
    assert phase.checkpoint is not None
    assert phase.signals is None


def test_a_script_that_saves_on_a_signal_is_asked_by_it(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "train.py").write_text("import signal\nsignal.signal(signal.SIGUSR1, print)\n")
    assert wattline("init").code == 0
    signals = read_pipeline(in_folder / "wattline.yaml").phases["train"].signals
    assert signals is not None
    assert (signals.checkpoint, signals.saved_to) == ("SIGUSR1", "out/")


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["train.py", "main.py", "other.py"], "train.py"),
        (["main.py", "other.py"], "main.py"),
        (["finetune.py", "test_it.py", "conftest.py", "setup.py"], "finetune.py"),
        (["one.py", "two.py"], None),
        (["setup.py"], None),
        ([], None),
    ],
)
def test_the_likely_script_is_found(
    files: list[str], chosen: str | None, in_folder: Path, wattline: Wattline
) -> None:
    for name in files:
        (in_folder / name).touch()
    done = wattline("init", "--output", "json")
    if chosen is None:
        assert done.code == 2
        assert "--script" in done.err
        assert not (in_folder / "wattline.yaml").exists()
    else:
        assert done.json["script"] == chosen


def test_a_script_can_be_named_and_a_wrong_name_gets_the_nearest(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "my train: #1.py").touch()
    (in_folder / "two.py").touch()
    assert "did you mean two.py?" in wattline("init", "--script", "tow.py").err
    assert wattline("init", "--script", "/etc/passwd").code == 2
    assert wattline("init", "--script", "my train: #1.py").code == 0
    assert read_pipeline(in_folder / "wattline.yaml").phases["train"].run == "python 'my train: #1.py'"


def test_much_data_is_one_entry(in_folder: Path, wattline: Wattline) -> None:
    (in_folder / "train.py").touch()
    (in_folder / "data").mkdir()
    for number in range(20):
        (in_folder / "data" / f"part-{number}.csv").touch()
    assert wattline("init").code == 0
    assert [data.path for data in read_pipeline(in_folder / "wattline.yaml").data] == ["data"]


@pytest.mark.parametrize(
    ("source", "imports"),
    [
        ("import wattline.train", True),
        ("import wattline.train as t", True),
        ("from wattline.train import start", True),
        ("from wattline import train", True),
        ("def f():\n    from wattline import train", True),
        ("from wattline import errors", False),
        ("# from wattline import train", False),
        ("this is not Python", False),
        ("\0", False),
    ],
)
def test_a_script_is_read_and_never_run_to_see_what_it_imports(source: str, imports: bool) -> None:
    assert imports_train(source.encode()) is imports


def test_real_gpus_become_a_facility_that_is_not_emulated() -> None:
    devices = [
        NvmlDevice(index=0, name="NVIDIA H100 80GB HBM3", limit_watts=700.0, least_limit_watts=200.0),
        NvmlDevice(index=1, name="NVIDIA H100 80GB HBM3", limit_watts=700.0),
        NvmlDevice(index=2, name="NVIDIA T4", limit_watts=70.0),
        NvmlDevice(index=3, fault="fell off the bus"),
    ]
    document = parse_document(facility_text(devices).encode(), FacilityDocument, file="facility.yaml")
    facility = build_facility(document)
    (node,) = facility.sites[0].racks[0].nodes
    assert not facility.emulated
    assert node.gpus == 2
    assert node.device is not None
    assert (node.device.name, node.device.limit_watts) == ("nvidia-h100-80gb-hbm3", 700.0)


def test_a_name_is_made_of_whatever_people_call_something() -> None:
    assert slug("My Model (v2)", "model") == "my-model-v2"
    assert slug("…", "model") == "model"
    assert slug(None, "model") == "model"
