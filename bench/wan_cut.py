"""Cut the way between two sites and their server for longer than the lease: who goes on, where, from what?

    python -m bench.wan_cut --timings 50        needs root and ip(8)

A server and two agents, each in a network namespace of its own, real training processes with real checkpoints
that are copied to the other site over HTTP. The site that trains is cut off at a random moment, then joined.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fleet_server import QUICK
from wattline.engines import LocalEngine
from wattline.live import Home
from wattline.plane.session import Session
from wattline.release import bundle_source, describe_source
from wattline.spec import read_pipeline
from wattline.state import Job, JobState, RunSubmitted, State, requests_of

SITES = ("zurich", "oslo")
PORT, RECEIVER_PORT = 8471, 8470
PATIENCE_SECONDS = 60.0
SAVE_SECONDS = 8.0  # well above the grace: what a cut costs is to stay within it
STEP_SECONDS = 0.05
INTERVAL_STEPS = SAVE_SECONDS / STEP_SECONDS
TOKEN = "all-sites-share-this-one"
ADDRESSES = {"hub": "10.77.0.1", "zurich": "10.77.0.2", "oslo": "10.77.0.3"}

TRAIN = """
import time
import numpy as np
from wattline import train

settings = train.params()
weights = np.zeros(64)
rng = np.random.default_rng(7)
run = train.start(model={"weights": weights}, rng=rng)
for step in run.steps(settings["steps"]):
    weights += rng.normal(size=weights.size)
    weights *= 0.99
    time.sleep(settings["seconds"])
np.save(run.out / "model.npy", weights)
"""
SITE = """
  {name}:
    region: eu
    tariff: {{energy: 0.20}}
    carbon: {{zone: XX, intensity: 100}}
    feeds: {{feed: {{rating: 10kW}}}}
    loops: {{room: {{kind: air, capacity: 10kW, supply: 24C}}}}
    racks:
      r1: {{cap: 8kW, power: [feed], loop: room, nodes: {{gpu: A100, gpus: 1, cpus: 2, other: 200W}}}}
    storage: {{throughput: 500MB/s}}
    telemetry: {{source: emulated}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one cut."""

    on_isolation: str
    attempts: int
    ended_at: str
    ran_twice_seconds: float
    lost_steps: int
    is_right: bool


class Wan:
    """Three namespaces on one bridge, which stands in that of the hub."""

    def __init__(self) -> None:
        mark = f"{os.getpid() % 100000}"
        self.names = {who: f"wl{who[0]}{mark}" for who in ADDRESSES}
        for name in self.names.values():
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        hub = self.names["hub"]
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", hub, "addr", "add", f"{ADDRESSES['hub']}/24", "dev", "br0")
        _ip("-n", hub, "link", "set", "br0", "up")
        for site in SITES:
            far = self.names[site]
            _ip("-n", hub, "link", "add", site, "type", "veth", "peer", "name", "eth0", "netns", far)
            _ip("-n", hub, "link", "set", site, "master", "br0", "up")
            _ip("-n", far, "addr", "add", f"{ADDRESSES[site]}/24", "dev", "eth0")
            _ip("-n", far, "link", "set", "eth0", "up")

    def cut(self, site: str) -> None:
        _ip("-n", self.names["hub"], "link", "set", site, "down")

    def join(self, site: str) -> None:
        _ip("-n", self.names["hub"], "link", "set", site, "up")

    def close(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, timeout=30)


class Fleet:
    """A server and two agents, and what lies in their homes."""

    def __init__(self, root: Path, wan: Wan | None = None, timing: str = "quick") -> None:
        """Without a WAN all of them are on this machine's loopback."""
        self.root, self._wan, self._timing = root, wan, timing
        self.addresses = {who: (ADDRESSES[who], PORT if who == "hub" else RECEIVER_PORT) for who in ADDRESSES}
        if wan is None:
            self.addresses = {who: ("127.0.0.1", _free_port()) for who in ADDRESSES}
        self.home = root / "hub"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        sites = "".join(SITE.format(name=name) for name in SITES)
        link = "links: [{name: wan, between: [zurich, oslo], bandwidth: 1Gbps, latency: 10ms}]\n"
        (root / "facility.yaml").write_text(f"facility: two-halls\nsites:{sites}{link}")
        thresholds = {"restart_backoff": "0s", "settle": "1s", "clear_for": "1s", "reading_max_age": "60s"}
        (root / "policy.yaml").write_text(json.dumps({"policy": "quick", "thresholds": thresholds}))
        self.start("hub")
        for site in SITES:
            self.start(site)

    def start(self, who: str) -> None:
        inside = [] if self._wan is None else ["ip", "netns", "exec", self._wan.names[who]]
        (host, port), (hub, hub_port) = self.addresses[who], self.addresses["hub"]
        if who == "hub":
            documents = [str(self.root / "facility.yaml"), str(self.root / "policy.yaml")]
            command = [sys.executable, "-m", "bench.fleet_server", str(self.home), *documents]
            command += [host, str(port), self._timing]
        else:
            command = [str(Path(sys.executable).with_name("wattline")), "agent", "--site", who]
            command += ["--server", f"http://{hub}:{hub_port}", "--receive", f"{host}:{port}"]
        environment = {
            **os.environ,
            "WATTLINE_HOME": str(self.root / who),
            "WATTLINE_RECEIVER_TOKEN": TOKEN,
            "PYTHONUNBUFFERED": "1",
        }
        with (self.root / f"{who}.log").open("ab") as log:
            self.processes[who] = subprocess.Popen(
                [*inside, *command], env=environment, stdout=log, stderr=log, cwd=Path(__file__).parents[1]
            )

    def kill(self, who: str) -> None:
        """`ip netns exec` becomes what it runs: this is the process itself."""
        self.processes[who].kill()
        self.processes[who].wait()

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        for site in SITES:  # what they left running would fence itself, in time
            engine = LocalEngine()
            engine.recover(path.parent for path in (self.root / site / "runs").glob("*/*/*/lock"))
            engine.close()

    def submit(self, steps: int, on_isolation: str) -> str:
        folder = self.root / "pipeline"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(TRAIN)
        (folder / "params.json").write_text(json.dumps({"steps": steps, "seconds": STEP_SECONDS}))
        phase = {
            "run": "python train.py",
            "resources": {"gpus": 1},
            "constraints": {"on_isolation": on_isolation, "residency": ["eu"]},
            "checkpoint": {"every": f"{SAVE_SECONDS}s", "keep": 2, "replicate_to": list(SITES)},
        }
        head = {"pipeline": "small", "model": "small", "owner": "ada", "project": "lab"}
        document = folder / "wattline.yaml"
        document.write_text(json.dumps(head | {"params": "params.json", "phases": {"train": phase}}))
        with self.session() as session:
            pipeline = read_pipeline(document)
            bundle = bundle_source(folder, session.objects)
            run = f"small-{time.time_ns()}"
            session.tell(
                RunSubmitted(
                    at=time.time(),
                    project="lab",
                    run=run,
                    pipeline="small",
                    jobs=requests_of(pipeline, run),
                    documents=describe_source(
                        str(session.objects.put_file(document)), str(bundle.digest), folder, {}
                    ),
                )
            )
        return f"{run}/train"

    @contextmanager
    def session(self) -> Iterator[Session]:
        session = Session(Home(self.home))
        try:
            yield session
        finally:
            session.close()

    def state(self) -> State | None:
        with self.session() as session:
            return session.state

    def job(self, name: str) -> Job | None:
        state = self.state()
        return None if state is None else state.jobs.get(name)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if time.monotonic() > deadline:
                logs = "".join((self.root / f"{who}.log").read_text()[-1500:] for who in ADDRESSES)
                raise AssertionError(f"waited in vain for {what}\n{logs}")
            time.sleep(0.1)

    def until_joined(self) -> None:
        self.until(
            lambda: (state := self.state()) is not None and len(state.sites) == len(SITES), "both agents"
        )

    def reports(self, job: str) -> dict[tuple[str, int], list[dict[str, object]]]:
        """What training itself said, by site and attempt: whatever anybody heard of it."""
        found = {}
        for site in SITES:
            for path in (self.root / site / "runs").glob(f"{job}/*/reports.jsonl"):
                lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
                found[site, int(path.parent.name)] = lines
        return found

    def living(self, job: str) -> list[str]:
        """Attempts of which a training process runs now."""
        found = []
        for site in SITES:
            for path in (self.root / site / "runs").glob(f"{job}/*/started.json"):
                pid = json.loads(path.read_text())["pid"]
                if Path(f"/proc/{pid}").exists() and not (path.parent / "result.json").exists():
                    found.append(f"{site}/{path.parent.name}")
        return found


def cut_once(on_isolation: str, after_seconds: float, steps: int = 700) -> Outcome:
    """Train, cut the site off for longer than its lease, join it again, and see how it ends."""
    root = Path(tempfile.mkdtemp(prefix="wan-"))
    wan = Wan()
    try:
        fleet = Fleet(root, wan)
        try:
            return _cut(fleet, wan, on_isolation, after_seconds, steps)
        finally:
            fleet.close()
    finally:
        wan.close()
        shutil.rmtree(root, ignore_errors=True)


def _cut(fleet: Fleet, wan: Wan, on_isolation: str, after_seconds: float, steps: int) -> Outcome:
    fleet.until_joined()
    job = fleet.submit(steps, on_isolation)
    fleet.until(lambda: bool((known := fleet.job(job)) and known.copies), "a first copy at the other site")
    known = fleet.job(job)
    assert known is not None
    assert known.place is not None
    site = known.place.site
    time.sleep(after_seconds)
    wan.cut(site)
    cut_at, twice_seconds = time.monotonic(), 0.0
    while time.monotonic() - cut_at < QUICK.surely_over_seconds + 4.0:
        if len(fleet.living(job)) > 1:
            twice_seconds += 0.05
        time.sleep(0.05)
    during = fleet.job(job)
    assert during is not None
    moved = during.place.site if during.place is not None else ""
    expected = site if on_isolation == "continue" else next(other for other in SITES if other != site)
    wan.join(site)
    fleet.until(
        lambda: (now := fleet.job(job)) is not None and now.state is JobState.SUCCEEDED, f"the end of {job}"
    )
    last = fleet.job(job)
    assert last is not None
    return Outcome(
        on_isolation=on_isolation,
        attempts=last.attempt,
        ended_at=last.place.site if last.place is not None else "",
        ran_twice_seconds=twice_seconds,
        lost_steps=_lost_steps(fleet.reports(job)),
        is_right=moved == expected and model_of(fleet, job, last) == by_hand(steps),
    )


def _lost_steps(reports: dict[tuple[str, int], list[dict[str, object]]]) -> int:
    """Done by one attempt, and again by the next."""
    reached = {
        number: max((int(str(one["step"])) for one in lines if one["kind"] == "step"), default=0)
        for (_, number), lines in reports.items()
    }
    began = {
        number: next((int(str(one["step"])) for one in lines if one["kind"] == "resumed"), 0)
        for (_, number), lines in reports.items()
    }
    return max((reached[one] - began[one + 1] for one in reached if one + 1 in began), default=0)


def model_of(fleet: Fleet, job: str, last: Job) -> str:
    assert last.place is not None
    path = fleet.root / last.place.site / "runs" / job / str(last.attempt) / "work" / "out" / "model.npy"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def by_hand(steps: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAIN)
        (Path(folder) / "params.json").write_text(json.dumps({"steps": steps, "seconds": 0.0}))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "WATTLINE_PARAMS": f"{folder}/params.json"}
        subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment, check=True, timeout=60)
        return hashlib.sha256((Path(folder) / "out" / "model.npy").read_bytes()).hexdigest()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30, capture_output=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--timings", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    bad, most_lost = 0, 0
    for number in range(given.timings):
        chance = random.Random(f"{given.seed}-{number}")
        on_isolation = chance.choice(("stop", "stop", "continue"))
        outcome = cut_once(on_isolation, chance.uniform(0.0, SAVE_SECONDS))
        most_lost = max(most_lost, outcome.lost_steps)
        within = outcome.lost_steps <= INTERVAL_STEPS
        is_good = outcome.is_right and outcome.ran_twice_seconds == 0.0 and within
        bad += not is_good
        print(f"{number}: {'good' if is_good else 'BAD'} {outcome}", flush=True)
    print(f"{given.timings} cuts, {bad} bad; most lost {most_lost} steps of {INTERVAL_STEPS:.0f} an interval")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
