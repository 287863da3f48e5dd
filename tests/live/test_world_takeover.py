"""Whoever takes over finds attempts that an earlier process began, and is asked for their beginning again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from building import Hall, a_facility, a_policy, a_site, adopted
from wattline.actuators import EmulatedActuator
from wattline.engines import Launch, LocalEngine, Result
from wattline.live import Home, LiveWorld, Meters
from wattline.release import KeptGoods, bundle_source, describe_source
from wattline.spec import read_pipeline
from wattline.state import RunSubmitted, requests_of
from wattline.store import ObjectStore
from wattline.telemetry import EmulatedFacility


class Outlived(LocalEngine):
    """An engine whose attempts go on without who started them, as Slurm's do."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[str] = []

    def start(self, launch: Launch) -> None:
        self.started.append(launch.attempt)

    def recover(self, directories: Iterable[Path], timeout_seconds: float = 10.0) -> dict[Path, Result]:
        return {}


def test_a_beginning_that_is_asked_again_leaves_an_adopted_attempt_and_its_files_alone(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home").ensure()
    objects, folder, facility = ObjectStore(home.objects), tmp_path / "p", a_facility(a_site())
    folder.mkdir()
    head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q"}
    document = folder / "wattline.yaml"
    document.write_text(json.dumps(head | {"phases": {"train": {"run": "true", "resources": {"gpus": 8}}}}))
    hall = Hall(facility, a_policy(), 1000.0)
    sources = describe_source(
        str(objects.put_file(document)), str(bundle_source(folder, objects).digest), folder, {}
    )
    jobs = requests_of(read_pipeline(document), "r1")
    submitted = RunSubmitted(at=1000.0, run="r1", pipeline="p", project="q", jobs=jobs, documents=sources)
    hall.fold(adopted(1000.0), submitted)
    (begin,) = hall.decide().actions
    emulated, engine = EmulatedFacility(facility, (), 0, 1000.0), Outlived()
    world = LiveWorld(
        home=home,
        state=hall.state,
        engine=engine,
        actuator=EmulatedActuator(emulated),
        meters=Meters(emulated, engine),
        goods=KeptGoods(objects),
        requests=list,
    )
    assert world.recover() == []
    world.apply(begin)
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        world.events()
        time.sleep(0.05)
    assert engine.started == []
    assert not (home.attempt("r1", "train", 1) / "work").exists()
    world.close()
