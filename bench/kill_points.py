"""Kill Wattline at random moments and resume: does every run end the same, with nothing left behind?

    python bench/kill_points.py --points 200

Each point starts a short pipeline in a state folder of its own, kills the whole control process with SIGKILL
after a random time, and resumes it (some points are killed while resuming, too). The run must end with the
same model, byte for byte, as one that nobody disturbed; no process may be left, and no claim.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "tiny-lm"
PARAMS = {"steps": 150, "hidden": 128, "micro_batches": 4, "micro_batch_size": 128}
MODEL = "model.npz"
_LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One disturbed run and what came of it."""

    seed: int
    kills: tuple[float, ...]
    status: str
    model_sha256: str
    orphans: int
    claims: int
    seconds: float

    def ok(self, expected: str) -> bool:
        return (self.status, self.model_sha256, self.orphans, self.claims) == ("succeeded", expected, 0, 0)


def write_pipeline(folder: Path) -> None:
    """The example, made short: about three seconds from start to release."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out", "checkpoints", "__pycache__"))
    params = json.loads((folder / "params.json").read_text()) | PARAMS
    (folder / "params.json").write_text(json.dumps(params))
    text = (folder / "wattline.yaml").read_text()
    text = text.replace("every: 5s", "every: 1s").replace(
        "bits_per_byte_gain >= 1.0", "bits_per_byte_gain >= -9"
    )
    (folder / "wattline.yaml").write_text(text.replace("fairness_gap <= 0.1", "fairness_gap <= 1"))


def command(folder: Path, *more: str) -> list[str]:
    wattline = Path(sys.executable).with_name("wattline")
    policy = str(folder / "policy.yaml")
    return [
        str(wattline),
        "run",
        str(folder / "wattline.yaml"),
        "--policy",
        policy,
        "--output",
        "json",
        *more,
    ]


def run(folder: Path, home: Path, *more: str, kill_after: float | None = None) -> dict[str, object] | None:
    """Run to the end and return its JSON, or kill it; None when it was killed."""
    environment = {**os.environ, "WATTLINE_HOME": str(home)}
    process = subprocess.Popen(
        command(folder, *more), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate(timeout=kill_after if kill_after is not None else _LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return None
    if not out.strip():
        raise RuntimeError(f"exit {process.returncode}: {err[-2000:]}")
    result: dict[str, object] = json.loads(out)
    return result


def disturb(folder: Path, work: Path, seed: int, longest: float) -> Point:
    """Start, kill once or more at random, resume until it ends, and look at what is left."""
    chance = random.Random(seed)
    home = work / f"home-{seed}"
    began, kills, result = time.monotonic(), [], None
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        kills.append(round(chance.uniform(0.0, longest), 3))
        result = run(folder, home, *(["--resume"] if len(kills) > 1 else []), kill_after=kills[-1])
        if result is not None:
            break
    if result is None:
        result = run(folder, home, "--resume")
    assert result is not None
    point = Point(
        seed=seed,
        kills=tuple(kills),
        status=str(result["status"]),
        model_sha256=model_of(result),
        orphans=count_orphans(home),
        claims=count_claims(home),
        seconds=time.monotonic() - began,
    )
    shutil.rmtree(home, ignore_errors=True)
    return point


def model_of(result: dict[str, object]) -> str:
    """The hash of the model in a run's manifest."""
    manifest = json.loads(Path(result["manifest"]["path"]).read_text())  # type: ignore[index]
    found = [one["digest"]["sha256"] for one in manifest["subject"] if Path(one["name"]).name == MODEL]
    return str(found[0]) if found else ""


def count_orphans(home: Path, patience_seconds: float = 10.0) -> int:
    """Processes that still carry this home in their environment; supervisors may need a moment to go."""
    mark, deadline = os.fsencode(str(home)), time.monotonic() + patience_seconds
    while True:
        left = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    left += mark in (entry / "environ").read_bytes()
                except OSError:
                    continue
        if left == 0 or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def count_claims(home: Path) -> int:
    """What the state that the journal leads to still holds: claims, promises, actions in flight."""
    from wattline.live import Home
    from wattline.plane.session import Session
    from wattline.state.account import Promised

    session = Session(Home(home))
    try:
        state = session.state
        assert state is not None
        session.store.journal.verify()
        promised = sum(account.promised != Promised() for account in state.accounts.values())
        return len(state.ledger.claims) + len(state.flights) + promised + sum(state.ledger.claimed)
    finally:
        session.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-points-") as name:
        work = Path(name)
        folder = work / "pipeline"
        write_pipeline(folder)
        began = time.monotonic()
        undisturbed = run(folder, work / "home-undisturbed")
        longest = time.monotonic() - began
        assert undisturbed is not None
        expected = model_of(undisturbed)
        print(f"undisturbed: {undisturbed['status']}, {longest:.1f} s, model {expected[:12]}", flush=True)
        bad = kills = orphans = claims = 0
        with ThreadPoolExecutor(options.parallel) as pool:
            seeds = range(options.seed, options.seed + options.points)
            points = pool.map(lambda seed: disturb(folder, work, seed, longest), seeds)
            for number, point in enumerate(points, 1):
                kills, orphans, claims = (
                    kills + len(point.kills),
                    orphans + point.orphans,
                    claims + point.claims,
                )
                if not point.ok(expected):
                    bad += 1
                    print(f"BAD {point}", flush=True)
                elif number % 10 == 0:
                    print(f"{number} of {options.points} points, {bad} bad", flush=True)
        print(
            f"{options.points} points, {kills} kills, {bad} bad, {orphans} processes left, "
            f"{claims} claims left, {time.monotonic() - began:.0f} s"
        )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
