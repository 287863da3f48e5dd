"""A real Slurm of our own for tests: munged, slurmctld, some slurmds on this machine, accounting, slurmrestd.

    with SlurmCluster(folder, nodes=4, gpus=8, accounting=True) as cluster:
        cluster.run("sbatch", "--wrap", "hostname")

Needs root and Debian's packages (`ci/install-engines`). Ports lie where the kernel gives none away by itself,
and are held by locks against other clusters on this machine; every file lies in `folder`. Leaving the block
ends every process that was started, whatever happened. GPUs are devices that lead to /dev/null; licenses
stand for a power budget. The fixture `slurm` is one cluster for all tests.
"""

from __future__ import annotations

import fcntl
import os
import random
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest

from wattline.facility import Slurmrestd

PATIENCE_SECONDS = 60.0
CALL_SECONDS = 30.0
ON_SLURM = [
    pytest.mark.needs("slurmctld", "slurmd", "munged", "slurmdbd", "mariadbd", "slurmrestd", "root"),
    pytest.mark.xdist_group("slurm"),  # one cluster, in one of the processes that run tests
]
"""For `pytestmark = ON_SLURM`, or `pytest.param(…, marks=ON_SLURM)`."""

_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_MARK = "WATTLINE_TEST_NODE"
_PORTS = range(20_000, 32_000)  # below those that the kernel gives to whoever connects somewhere
# slurmrestd takes tokens where it has one itself, whatever that is; it would rather not be root's.
_SETTINGS = {
    "slurmrestd-url": {"SLURM_JWT": "daemon"},
    "slurmrestd-socket": {"SLURMRESTD_SECURITY": "disable_user_check"},
}

_SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/jwt.key
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
ReturnToService=2
MpiDefault=none
SlurmdTimeout=5
SlurmctldTimeout=5
KillWait=3
MessageTimeout=10
MinJobAge=300
MaxJobCount=100000
GresTypes=gpu
AccountingStorageTRES=gres/gpu
Licenses={licenses}
{accounting}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
_DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=root
StorageLoc=slurm
"""


class SlurmCluster:
    """Nodes are called n1, n2, … and so are their daemons, beside `slurmctld`, `slurmdbd`, `mariadbd` and
    `slurmrestd`, which is started by who first asks for it."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 4,
        gpus: int = 8,
        cpus: int = 16,
        accounting: bool = True,
        licenses: str = "kilowatts:100",
    ) -> None:
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.gpus, self.cpus, self.accounting = gpus, cpus, accounting
        self.environment = {
            "PATH": _PATH,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "LANG": "C.UTF-8",
        }
        self._licenses = licenses
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        daemons = ("slurmctld", "slurmdbd", "mariadbd", "slurmrestd", *self.nodes)
        self._locks = _hold_ports(len(daemons))
        self._ports = dict(zip(daemons, self._locks, strict=True))

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._write_files()
            self.start("munged")
            self._until(lambda: (self.folder / "munge.socket").exists(), "munged")
            if self.accounting:
                self._start_accounting()
            self.start("slurmctld")
            for node in self.nodes:
                self.start(node)
            self.wait_until_idle()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, *command: str, check: bool = True) -> str:
        """One client command; what it printed."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout.strip()

    def start(self, daemon: str) -> None:
        """Start a daemon, again where it was killed."""
        log = self.folder / f"{daemon}.out"
        with log.open("ab") as output:
            self._processes[daemon] = subprocess.Popen(
                self._command(daemon),
                env=self.environment | {_MARK: f"{self.folder}/{daemon}"} | _SETTINGS.get(daemon, {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
            )

    def rest(self, way: str = "url") -> Slurmrestd:
        """How its slurmrestd is asked: by a URL with a token of root, or by a socket that root may use."""
        daemon = f"slurmrestd-{way}"
        if daemon not in self._processes:
            self.start(daemon)
        if way == "socket":
            path = self.folder / "rest.socket"
            self._until(path.exists, daemon)
            return Slurmrestd(socket=str(path), timeout_seconds=5.0)
        port, token = self._ports["slurmrestd"], self.folder / "token"
        self._until(lambda: _answers(port), daemon)
        if not token.exists():
            _write(token, self.run("scontrol", "token", "username=root", "lifespan=86400"))
        return Slurmrestd(url=f"http://127.0.0.1:{port}", token_file=str(token), timeout_seconds=5.0)

    def kill(self, daemon: str) -> None:
        """As a power cut would: the daemon, and for a node also all that runs there."""
        self.kill_daemon(daemon)
        if daemon in self.nodes:
            self._kill_marked(f"{_MARK}={self.folder}/{daemon}", f"SLURMD_NODENAME={daemon}")

    def kill_daemon(self, daemon: str) -> None:
        """The daemon alone: what runs under a slurmd goes on without it."""
        process = self._processes.pop(daemon, None)
        if process is not None:
            process.kill()
            process.wait()

    def halt(self, daemon: str) -> None:
        """In order. A slurmctld that is killed instead forgets what it has not saved, such as who began."""
        process = self._processes.pop(daemon)
        process.terminate()
        process.wait(PATIENCE_SECONDS)

    def lose(self, node: str) -> None:
        """A machine that is gone, and a controller that has noticed: by itself that takes half a minute."""
        self.kill(node)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def bring_back(self, node: str) -> None:
        self.start(node)
        self.resume_all()

    def resume_all(self) -> None:
        """Slurm drains a node whose slurmd was killed at a bad moment, until somebody vouches for it.

        On a busy machine it may find one silent right after that, so who is not well is vouched for again.
        """
        self._until(self._resumes_all, "idle nodes")

    def wait_until_idle(self) -> None:
        """Every node up and nobody on it."""
        self._until(self._is_idle, "idle nodes")

    def _is_idle(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split()
        return states == ["idle"] * len(self.nodes)

    def _resumes_all(self) -> bool:
        if self._is_idle():
            return True
        for node in self.nodes:
            self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
        time.sleep(0.5)
        return False

    def cancel_all(self) -> None:
        """Between tests: nothing is left of what they started."""
        self.run("scancel", "--signal=KILL", "--full", "--user=root", check=False)
        self.run("scancel", *self.run("squeue", "-h", "-o", "%A").split(), check=False)
        self._until(lambda: self.run("squeue", "-h", check=False) == "", "an empty queue")
        self.resume_all()  # what one test did to a node is no business of the next

    def stop(self) -> None:
        """End every process; what slurmstepd holds is not a child of ours, so it is found by its mark."""
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()
        while self._kill_marked(str(self.folder)):
            time.sleep(0.02)
        for lock in self._locks.values():
            lock.close()

    def _command(self, daemon: str) -> list[str]:
        folder = self.folder
        if daemon == "munged":
            return [
                *("munged", "--foreground", "--force", f"--key-file={folder}/munge.key"),
                *(f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid"),
                *(f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"),
            ]
        if daemon == "mariadbd":
            return [
                *("mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/database"),
                *("--bind-address=127.0.0.1", f"--port={self._ports['mariadbd']}", "--skip-grant-tables"),
                *(f"--socket={folder}/database.socket", f"--pid-file={folder}/mariadbd.pid"),
                *("--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--skip-log-bin"),
                # Nothing here outlives the test: no system tables, and no waiting for the disk.
                *("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-fast-shutdown=2"),
                "--innodb-flush-method=nosync",
            ]
        if daemon == "slurmrestd-url":
            where = f"127.0.0.1:{self._ports['slurmrestd']}"
            return ["slurmrestd", "-u", "nobody", "-s", "v0.0.38", "-a", "rest_auth/jwt", where]
        if daemon == "slurmrestd-socket":
            where = f"unix:{folder}/rest.socket"
            return ["slurmrestd", "-s", "v0.0.38", "-a", "rest_auth/local", where]
        if daemon == "slurmdbd":
            return ["slurmdbd", "-D"]
        return ["slurmctld", "-D"] if daemon == "slurmctld" else ["slurmd", "-D", "-N", daemon]

    def _write_files(self) -> None:
        folder = self.folder
        _write(folder / "munge.key", secrets.token_hex(64))
        _write(folder / "jwt.key", secrets.token_hex(32))
        for name in ("state", "database", *(f"spool-{node}" for node in self.nodes)):
            (folder / name).mkdir(exist_ok=True)
        gres = []
        for node in self.nodes:
            for number in range(self.gpus):
                device = folder / f"gpu-{node}-{number}"
                if not device.exists():
                    os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
            last = self.gpus - 1
            files = f"{folder}/gpu-{node}-[0-{last}]" if last else f"{folder}/gpu-{node}-0"
            gres += [f"NodeName={node} Name=gpu File={files}"] if self.gpus else []
        _write(folder / "gres.conf", "\n".join(gres) + "\n")
        host = socket.gethostname().partition(".")[0]
        of_gpus = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        accounting = "AccountingStorageType=accounting_storage/none"
        if self.accounting:
            accounting = (
                "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
                f"AccountingStoragePort={self._ports['slurmdbd']}\nAccountingStoragePass={self.folder}/munge.socket"
            )
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={self._ports[node]}"
            f" CPUs={self.cpus} RealMemory=4000{of_gpus}"
            for node in self.nodes
        )
        settings = {
            "host": host,
            "folder": str(folder),
            "controller_port": self._ports["slurmctld"],
            "licenses": self._licenses,
            "accounting": accounting,
            "nodes": nodes,
        }
        _write(folder / "slurm.conf", _SLURM_CONF.format(**settings), 0o644)
        ports = {"dbd_port": self._ports["slurmdbd"], "database_port": self._ports["mariadbd"]}
        _write(folder / "slurmdbd.conf", _DBD_CONF.format(folder=folder, **ports))

    def _start_accounting(self) -> None:
        self.start("mariadbd")
        self._until(lambda: _answers(self._ports["mariadbd"]), "mariadbd")
        self.start("slurmdbd")
        self._until(lambda: _answers(self._ports["slurmdbd"]), "slurmdbd")
        self.run("sacctmgr", "-i", "add", "cluster", "test")
        self.run("sacctmgr", "-i", "add", "account", "lab")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=lab")

    def _until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, f"waited in vain for {what}: see {self.folder}"
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} ended: see {self.folder}/{name}.out"
            time.sleep(0.02)

    def _kill_marked(self, *marks: str) -> int:
        """Kill whoever has this cluster and one of these marks in its environment; how many there were."""
        found = 0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(self.folder) in environment and any(mark in environment for mark in marks):
                found += 1
                try:
                    os.kill(int(entry.name), signal.SIGKILL)
                except ProcessLookupError:
                    continue
        return found


def shared_cluster() -> Iterator[SlurmCluster]:
    """One cluster in a folder with a short name: the names of sockets are bounded."""
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        with SlurmCluster(Path(name)) as cluster:
            yield cluster


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def _hold_ports(count: int) -> dict[int, IO[bytes]]:
    """Free ports with their locks: also while its daemon is down, a port is nobody else's."""
    folder = Path(tempfile.gettempdir()) / "wattline-ports"
    folder.mkdir(exist_ok=True)
    found: dict[int, IO[bytes]] = {}
    for port in random.sample(_PORTS, len(_PORTS)):
        lock = (folder / str(port)).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as one:
                one.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        found[port] = lock
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} ports are free and {count} are needed")
