"""Shared by all tests: slow on a busy machine is not wrong, so properties have no deadline.

`@pytest.mark.needs("slurmctld", "munged")` names programs a test cannot do without; they are looked for also
where Debian keeps those that no person types. `ci/install-engines` installs them. Without one the test is
skipped; in CI that is a failure, so that nothing is left out unseen.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from postgres import PostgresServer
from slurm_cluster import SlurmCluster, shared_cluster

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# A shell's background jobs ignore Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_LONGEST_NAME = 200
_ELSEWHERE = "/usr/sbin:/sbin:/usr/lib/postgresql/15/bin"


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is no name: it would fill the report, and the environment of whatever a test starts."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        return f"{type(val).__name__} of {len(val)}"
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    path = f"{os.environ.get('PATH', '')}:{_ELSEWHERE}"
    needed = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in needed if name != "root" and shutil.which(name, path=path) is None]
    if "root" in needed and os.geteuid() != 0:
        missing.append("root")
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"not here: {', '.join(missing)}; ci/install-engines installs what can be installed")
    if missing:
        pytest.skip(f"not here: {', '.join(missing)} (ci/install-engines)")


@pytest.fixture(scope="session")
def postgres() -> "Iterator[PostgresServer]":
    """A PostgreSQL of this session's own; who asks for it is marked `needs("initdb")`."""
    from postgres import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def slurm_of_session() -> Iterator[SlurmCluster]:
    yield from shared_cluster()


@pytest.fixture
def slurm(slurm_of_session: SlurmCluster) -> Iterator[SlurmCluster]:
    """A real Slurm with four nodes of eight GPUs each; mark the test with `slurm_cluster.on_slurm`."""
    yield slurm_of_session
    slurm_of_session.cancel_all()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a shared library of our own, which NVML's client loads as it would load the real one."""
    compiler = shutil.which("gcc")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("gcc is needed to build the test driver")
        pytest.skip("gcc is needed to build the test driver")
    folder = tmp_path_factory.mktemp("driver")
    library, source = folder / "libnvidia-ml.so.1", Path(__file__).with_name("fake_nvml.c")
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True, timeout=120)
    return folder
