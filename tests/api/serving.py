"""A server in this process: the real listener, door, intake, reader and shift, on a port that is free."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from wattline.api.agents import agents_sync
from wattline.api.app import make_app
from wattline.api.call import Limits, Served
from wattline.api.door import Door
from wattline.api.listening import Listener, open_socket
from wattline.cli.words import words_of
from wattline.live import Home
from wattline.plane.intake import Intake
from wattline.plane.reader import Reader
from wattline.plane.serving import Serving, Shift
from wattline.plane.session import Session
from wattline.plane.submitting import Receiving
from wattline.release.index import TreeFile, encode_index
from wattline.store import ObjectStore
from wattline.store.tokens import Role

PIPELINE = """\
pipeline: {name}
model: small
owner: me
project: {project}
intended_use: a test
phases:
  train: {{run: "{run}", resources: {{gpus: 1}}, constraints: {{max_duration: 1h}}}}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Running:
    url: str
    home: Path
    shift: Shift
    token: str | None = None

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, method=method, headers=headers or {})
        if data is not None and not request.has_header("Content-type"):
            kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
            request.add_header("Content-Type", kind)
        if token or self.token:
            request.add_header("Authorization", f"Bearer {token or self.token}")
        try:
            with urlopen(request, timeout=30) as response:
                return Answer(response.status, response.read(), dict(response.headers))
        except HTTPError as error:
            return Answer(error.code, error.read(), dict(error.headers))

    def get(self, path: str, **more: Any) -> Any:
        answer = self.call("GET", path, **more)
        assert answer.status == 200, answer
        return answer.json

    def put(self, content: bytes, token: str | None = None) -> str:
        name = sha256(content).hexdigest()
        assert self.call("PUT", f"/api/v1/objects/{name}", content, token=token).status == 201
        return name

    def submission(
        self, run: str = "true", *, name: str = "small", project: str = "nlp"
    ) -> dict[str, object]:
        """What to post for a pipeline of one phase; everything it names is put before."""
        script = self.put(b"print('hello')\n")
        file = TreeFile(path="train.py", sha256=script, size_bytes=15)
        bundle = self.put(encode_index([file], []))
        document = PIPELINE.format(name=name, run=run, project=project).encode()
        return {"pipeline": self.put(document), "bundle": bundle}

    def submit(self, run: str = "true", **more: Any) -> str:
        answer = self.call("POST", "/api/v1/runs", self.submission(run, **more))
        assert answer.status == 202, answer
        return str(answer.json["run_id"])

    def wait(self, run: str, *states: str, seconds: float = 60.0) -> Any:
        """The run once it stands so."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            answer = self.call("GET", f"/api/v1/runs/{run}")
            if answer.status == 200 and answer.json["state"] in states:
                return answer.json
            time.sleep(0.1)
        raise AssertionError(f"{run} never was {states}: {answer}")

    def make_token(self, name: str, role: Role, project: str | None = None, **more: Any) -> str:
        session = Session(Home(self.home))
        try:
            return session.store.tokens.create(
                name, role=role, project=project, now=time.time(), **{"ttl_seconds": 3600.0, **more}
            )
        finally:
            session.close()


@contextmanager
def serving(
    home: Path, *, conducts: bool = True, rate: float = 10_000.0, policy: str | None = None, **limits: int
) -> Iterator[Running]:
    place, where = Home(home).ensure(), str(home)
    shift = Shift(place, None, Serving(facility="lab", policy=policy), lambda _say: None)
    door = Door(where, calls_per_second=rate)
    sock = open_socket("127.0.0.1:0", has_tokens=False)
    objects = ObjectStore(place.objects)
    served = Served(
        home=place,
        objects=objects,
        reader=Reader(place, None),
        intake=Intake(where),
        receiving=Receiving(place, objects, ["ALLOWED_SECRET"]),
        door=door,
        words=words_of(place),
        is_conducting=lambda: shift.is_conducting,
        limits=Limits(**limits),
    )
    listener = Listener(make_app(served, sync=agents_sync(lambda: shift.fleet)), sock)
    leave = threading.Event()
    thread = threading.Thread(target=lambda: shift.work(lambda: int(leave.is_set())))
    listener.start()
    if conducts:
        thread.start()
    try:
        yield Running(f"http://127.0.0.1:{sock.getsockname()[1]}", home, shift)
    finally:
        leave.set()
        served.leaving.set()
        if conducts:
            thread.join()
        listener.stop()
        served.intake.close()
        served.reader.close()
        door.close()
