"""What do people do during the siege: submit small runs all the time, again with the same key on any error.

Each command writes to a diary that only the bench reads: that it began, that it ended, and whether another
attempt of its job was still alive (it holds a lock for as long as its process lives).
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from bench.siege_house import AGENTS, HALL_REGION, PROJECTS
from wattline.release.index import TreeFile, encode_index

GIVE_UP_SECONDS = 120.0
_CALL_SECONDS = 15.0

_DIARY = """
import fcntl, json, os, sys, time

folder, seconds = sys.argv[1], float(sys.argv[2])
run, phase, attempt = (os.environ[f"WATTLINE_{name}"] for name in ("RUN", "PHASE", "EPOCH"))
pages = os.open(f"{folder}/diary.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
lock = os.open(f"{folder}/{run}.{phase}.lock", os.O_RDWR | os.O_CREAT)

def tell(what, **more):
    line = {"what": what, "run": run, "phase": phase, "attempt": int(attempt), "pid": os.getpid()}
    os.write(pages, (json.dumps(line | {"at": time.time()} | more) + "\\n").encode())

tell("began")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    tell("beside", other=int(os.pread(lock, 20, 0) or 0))
else:
    os.ftruncate(lock, 0)
    os.pwrite(lock, attempt.encode(), 0)
"""
_WORK = f"""{_DIARY}
time.sleep(seconds)
with open(os.path.join(os.environ["WATTLINE_OUT"], "result.txt"), "w") as file:
    file.write("done")
tell("ended")
"""
_TRAIN = f"""{_DIARY}
import numpy as np
from wattline import train

weights = np.zeros(64)
training = train.start(model={{"weights": weights}})
for step in training.steps(20):
    weights += 1.0
    time.sleep(seconds / 20)
np.save(training.out / "model.npy", weights)
tell("ended")
"""
SCRIPTS = {"work.py": _WORK.encode(), "train.py": _TRAIN.encode()}


@dataclass(slots=True)
class Load:
    """Clients, each with a thread of its own, until `stop`."""

    urls: list[str]
    diary: Path
    seed: int
    every_seconds: float
    acknowledged: dict[str, str] = field(default_factory=dict)  # key → run
    refused: list[str] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, clients: int) -> None:
        for number in range(clients):
            thread = threading.Thread(target=self._submit_all, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """What was begun is seen through: its key must get an answer."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(GIVE_UP_SECONDS + 10.0)

    def _submit_all(self, client: int) -> None:
        chance, number = random.Random(f"load-{self.seed}-{client}"), 0
        while not self._stopping.is_set():
            number += 1
            self._submit(f"{self.seed}-{client}-{number}", self._pipeline(chance), chance)
            self._stopping.wait(chance.uniform(0.5, 1.5) * self.every_seconds)

    def _submit(self, key: str, pipeline: bytes, chance: random.Random) -> None:
        files = [
            TreeFile(path=name, sha256=sha256(text).hexdigest(), size_bytes=len(text))
            for name, text in SCRIPTS.items()
        ]
        bundle = encode_index(sorted(files, key=lambda file: file.path), [])
        named = {"pipeline": sha256(pipeline).hexdigest(), "bundle": sha256(bundle).hexdigest()}
        began = time.monotonic()
        while time.monotonic() < began + GIVE_UP_SECONDS:
            url = chance.choice(self.urls)
            try:
                status, body = _hand_in(url, key, (*SCRIPTS.values(), bundle, pipeline), named)
            except (OSError, http.client.HTTPException) as error:
                self.tries[type(error).__name__] += 1
                time.sleep(0.3)
                continue
            self.tries[str(status)] += 1
            if status == 202:
                self.acknowledged[key] = json.loads(body)["run_id"]
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
                return
            if status < 500 and status != 429:
                self.refused.append(f"{key}: {status}: {body[:300]!r}")
                return
            time.sleep(0.3)
        self.refused.append(f"{key}: no answer within {GIVE_UP_SECONDS:.0f} s")

    def _pipeline(self, chance: random.Random) -> bytes:
        region = chance.choice((HALL_REGION, *AGENTS.values(), None))
        phases = {"work": self._phase("work.py", chance, region)}
        kind = chance.random()
        if kind < 0.25:
            phases["more"] = self._phase("work.py", chance, region) | {"after": ["work"]}
        elif kind < 0.45:
            saves = {"checkpoint": {"every": "1s", "keep": 2}}
            phases = {"train": self._phase("train.py", chance, region) | saves}
        head = {"pipeline": "small", "model": "small", "owner": "ada", "intended_use": "a siege"}
        return json.dumps(head | {"project": chance.choice(PROJECTS), "phases": phases}).encode()

    def _phase(self, script: str, chance: random.Random, region: str | None) -> dict[str, object]:
        constraints: dict[str, object] = {"max_duration": "10min"}
        if region is not None:
            constraints["residency"] = [region]
        return {
            "run": f"python {script} {self.diary} {chance.choice((0.5, 1.0, 2.0, 4.0))}",
            "resources": {"gpus": 1},
            "constraints": constraints,
            "restart": {"max": 3},
        }


def _hand_in(url: str, key: str, contents: tuple[bytes, ...], named: dict[str, str]) -> tuple[int, bytes]:
    """Put the objects, then submit; the first answer that is not good is the answer."""
    for content in contents:
        status, body = _call(url, "PUT", f"/api/v1/objects/{sha256(content).hexdigest()}", content, {})
        if status != 201:
            return status, body
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    return _call(url, "POST", "/api/v1/runs", json.dumps(named).encode(), headers)


def _call(url: str, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_CALL_SECONDS)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
