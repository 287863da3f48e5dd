"""`wattline run` when all goes well: what it gives, what a script is given, and what a script is not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from cli.running import Desk, assert_nothing_is_left, model_of

_SECRET = "s3cr3t-that-nobody-may-keep"
_KEYS = {
    "run_id",
    "status",
    "phases",
    "manifest",
    "checkpoints",
    "gates",
    "release",
    "cost_usd",
    "energy_kwh",
    "carbon_kg",
    "not_estimated",
}


def test_a_pipeline_goes_from_source_to_release(desk: Desk) -> None:
    desk.training(steps=5, seconds=0.01)
    ran = desk.run()
    assert ran.code == 0, ran.err
    said = ran.json
    assert said.keys() >= _KEYS
    assert said["status"] == "succeeded"
    assert [(phase["phase"], phase["state"]) for phase in said["phases"]] == [
        ("prepare", "succeeded"),
        ("train", "succeeded"),
        ("evaluate", "succeeded"),
    ]
    manifest = Path(said["manifest"]["path"]).read_bytes()
    assert hashlib.sha256(manifest).hexdigest() == said["manifest"]["sha256"]
    assert model_of(said) == desk.by_hand()
    assert [(gate["gate"], gate["outcome"]) for gate in said["gates"]] == [
        ("loss <= 1e9", "pass"),
        ("size > 0", "pass"),
    ]
    assert (said["release"]["name"], said["release"]["channel"], said["release"]["number"]) == (
        "small",
        "staging",
        1,
    )
    released = list(desk.home.glob("releases/small/staging/*/artifacts/model.npy"))
    assert {hashlib.sha256(file.read_bytes()).hexdigest() for file in released} == {model_of(said)}
    assert [(one["phase"], one["step"]) for one in said["checkpoints"]] == [("train", 5)]
    assert said["energy_kwh"] > 0
    assert said["not_estimated"] == []
    assert_nothing_is_left(desk)


def test_what_is_not_metered_is_null_and_named(desk: Desk) -> None:
    desk.pipeline({"train": "print('trained')"})
    facility = {
        "facility": "closet",
        "sites": {
            "home": {
                "region": "eu",
                "tariff": {"energy": 0.2},
                "carbon": {"zone": "CH", "intensity": 45},
                "feeds": {"a": {"rating": "10kW"}},
                "loops": {"air": {"kind": "air", "capacity": "8kW", "supply": "22C"}},
                "racks": {"r1": {"cap": "5kW", "power": ["a"], "loop": "air", "nodes": {"other": "200W"}}},
                "storage": {"throughput": "1GB/s"},
                "telemetry": {"source": "none"},
            }
        },
    }
    ran = desk.run("--facility", str(desk.write("facility.yaml", facility)))
    assert ran.code == 0, ran.err
    assert (ran.json["energy_kwh"], ran.json["carbon_kg"]) == (None, None)
    assert ran.json["not_estimated"] == ["energy_kwh", "carbon_kg"]


def test_a_script_gets_its_params_its_data_and_one_thread_and_no_secret(desk: Desk) -> None:
    looks = """
    import json, os, pathlib
    found = {
        "environment": dict(os.environ),
        "params": json.loads(pathlib.Path(os.environ["WATTLINE_PARAMS"]).read_text()),
        "data": pathlib.Path("data/words.txt").read_text(),
        "earlier": sorted(path.name for path in pathlib.Path("out").iterdir()),
    }
    pathlib.Path("out/looked.json").write_text(json.dumps(found))
    print(found)
    """
    desk.write("data/words.txt", "some words\n")
    desk.write("first.py", "import pathlib; pathlib.Path('out/first.txt').write_text('1')")
    desk.write("look.py", "\n".join(line[4:] for line in looks.splitlines()))
    desk.pipeline(
        {
            "first": {"run": "python first.py"},
            "second": {"run": "echo 2 > out/second.txt"},
            "look": {"after": ["first", "second"], "run": "python look.py"},
        },
        params="params.json",
        data=[{"name": "words", "path": "data/words.txt"}],
    )
    desk.write("params.json", {"rate": 0.5})
    secrets = {"FOO_TOKEN": _SECRET, "AWS_SECRET_ACCESS_KEY": _SECRET, "WATTLINE_TOKEN": _SECRET}
    ran = desk.run(environment=secrets)
    assert ran.code == 0, ran.err
    (path,) = desk.home.glob("runs/*/look/1/work/out/looked.json")
    found = json.loads(path.read_text())
    assert found["params"] == {"rate": 0.5}
    assert found["data"] == "some words\n"
    assert found["earlier"] == ["first.txt", "second.txt"]
    environment = found["environment"]
    assert {environment[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} == {
        "1"
    }
    assert environment["PYTHONHASHSEED"] == "0"
    assert not environment.keys() & secrets.keys()
    kept = [file for file in desk.home.rglob("*") if file.is_file()]
    assert len(kept) > 10
    assert [file for file in kept if _SECRET.encode() in file.read_bytes()] == []


def test_unpinned_data_is_told_and_run(desk: Desk) -> None:
    desk.write("words.txt", "some words\n")
    desk.pipeline({"train": "print('trained')"}, data=[{"name": "words", "path": "words.txt"}])
    ran = desk.run()
    assert ran.code == 0, ran.err
    assert "words.txt is not pinned; `wattline data pin words.txt` writes its hash" in ran.err


def test_a_release_that_needs_approval_waits_for_it(desk: Desk) -> None:
    desk.pipeline(
        {"train": "open('out/model.npy', 'w').write('m')"},
        release={"name": "small", "to": "production", "approval": "required"},
    )
    ran = desk.run()
    assert ran.code == 0, ran.err
    assert (ran.json["status"], ran.json["release"]) == ("awaiting approval", None)
    assert "wattline promote" in ran.json["say"]
    assert not desk.found("releases/small/production/*/artifacts")


def test_a_run_that_is_not_known_cannot_be_resumed(desk: Desk) -> None:
    desk.pipeline({"train": "print('trained')"})
    ran = desk.run("--resume", "--run", "nowhere")
    assert ran.code == 2
    assert "run 'nowhere' is not in" in ran.err
