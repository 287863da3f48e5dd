"""A real PostgreSQL of our own: a cluster in a temporary folder, on a free loopback port, with fsync on.

It runs as the user `postgres` where the tests run as root, which PostgreSQL refuses to be, and it goes away
with the tests, however they end.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from sqlalchemy import URL

from wattline.store import open_store

PASSWORD = "never-to-be-printed"
USER = "wattline"
_PATH = f"{os.environ.get('PATH', '')}:/usr/lib/postgresql/15/bin"
_START_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1
_FORGET = """
SET session_replication_role = replica;
DELETE FROM inbox; DELETE FROM snapshots; DELETE FROM journal; DELETE FROM tokens; DELETE FROM audit;
UPDATE journal_head SET seq = 0, hash = decode(repeat('00', 32), 'hex');
UPDATE writer_lease SET epoch = 0, held = false;
"""


class PostgresServer:
    """One server; `kill` is what a power cut does to its processes, and `start` brings it back."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wattline-postgres-"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._store: str | None = None
        try:
            self._init()
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        url = URL.create(
            "postgresql+psycopg", USER, password, host="127.0.0.1", port=self.port, database=database
        )
        return url.render_as_string(hide_password=False)

    def new_database(self, options: str = "") -> str:
        self._databases += 1
        name = f"d{self._databases}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        return name

    def empty_store(self) -> str:
        """The URL of a store in which nothing is; the same one each time, because making one takes longer."""
        if self._store is None:
            self._store = self.new_database()
            open_store(self.url(self._store)).close()
        self.run(_FORGET, self._store)
        return self.url(self._store)

    def run(self, command: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
        ) as connection:
            cursor = connection.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [_program("postgres"), "-D", str(self.folder / "data")],
            stdout=log,
            stderr=log,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=_die_with_parent,
            **_as_postgres(),
        )
        log.close()
        give_up_at = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.run("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()[-2000:]) from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """kill -9 of the server and of every process it has started."""
        assert self._process is not None
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        """To the server and every process it has started."""
        assert self._process is not None
        os.kill(self._process.pid, number)
        for pid in _processes_in(self.folder / "data"):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _init(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        owner = _as_postgres()
        if owner:
            for path in (self.folder, secret):
                os.chown(path, owner["user"], owner["group"])
        command = [_program("initdb"), "-D", "data", "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"]
        command += ["--locale=C", "--pwfile=password", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=self.folder, **owner)
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nfsync = on\n")
            file.write("unix_socket_directories = ''\nmax_connections = 60\nshared_buffers = 32MB\n")


def _as_postgres() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _processes_in(data: Path) -> list[int]:
    """Processes of a server lead sessions of their own, and know their folder."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if stat.readlink() == data:
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return found


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None, f"{name} is not installed (ci/install-engines)"
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
