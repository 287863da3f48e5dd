from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wattline.checks.preflight.rehearsal import confining
from wattline.checks.preflight.rehearsal.confining import GUARD, Confined, run_confined


@pytest.fixture(params=["namespaces", "none"], autouse=True)
def spaces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the kernel allows here, and as where it allows nothing."""
    if request.param == "none":
        monkeypatch.setattr(confining, "_allowed_spaces", lambda: ())
    return str(request.param)


def confined(
    command: str, folder: Path, environment: dict[str, str] | None = None, *, within_seconds: float = 30.0
) -> Confined:
    given = {"PATH": os.environ["PATH"], "PYTHONFAULTHANDLER": "1"} | (environment or {})
    return run_confined(command, folder=folder, environment=given, within_seconds=within_seconds)


def python(code: str, folder: Path, *, within_seconds: float = 30.0) -> Confined:
    (folder / "code.py").write_text(code)
    return confined(
        f"{sys.executable} code.py",
        folder,
        {"PYTHONPATH": str(GUARD), "WATTLINE_REHEARSAL_NOTES": str(folder / "hosts")},
        within_seconds=within_seconds,
    )


def processes_with(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


def until_gone(mark: str) -> bool:
    deadline = time.monotonic() + 15
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_with(mark)


def test_a_command_runs_in_its_folder_with_its_environment_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOT_GIVEN", "secret")
    found = confined("pwd; echo [$GIVEN] [$NOT_GIVEN]; exit 3", tmp_path, {"GIVEN": "yes"})
    assert (found.why, found.exit_code) == ("ended", 3)
    assert found.output == f"{tmp_path}\n[yes] []\n"


def test_what_is_still_running_at_the_end_is_ended_wherever_it_hid(tmp_path: Path) -> None:
    mark = f"MARK_{os.urandom(8).hex()}"
    found = confined(
        "(setsid sleep 600 &) ; (setsid sh -c 'sleep 600 & sleep 600' &); sleep 0.2", tmp_path, {mark: "1"}
    )
    assert found.why == "ended"
    assert until_gone(mark)


def test_time_ends_it_and_python_says_where_it_was(tmp_path: Path) -> None:
    found = python("import time\n\n\ntime.sleep(600)\n", tmp_path, within_seconds=4)
    assert found.why == "time"
    assert found.idle_seconds > 1
    assert 'code.py", line 4 in <module>' in found.output


def test_who_works_is_not_idle(tmp_path: Path) -> None:
    found = python("while True: pass\n", tmp_path, within_seconds=3)
    assert found.why == "time"
    assert found.idle_seconds < 2.5


def test_processes_without_end_are_ended(tmp_path: Path) -> None:
    mark = f"MARK_{os.urandom(8).hex()}"
    (tmp_path / "bomb.py").write_text("import os, time\nwhile True:\n    os.fork()\n    time.sleep(0.01)\n")
    found = confined(f"{sys.executable} -S bomb.py", tmp_path, {mark: "1"})
    assert found.why == "processes"
    assert until_gone(mark)


def test_output_is_kept_at_both_ends_and_bounded(tmp_path: Path) -> None:
    found = confined("echo first; seq 1 200000; echo last", tmp_path)
    assert found.output.startswith("first\n1\n")
    assert found.output.endswith("200000\nlast\n")
    assert len(found.output) < 100_000


def test_a_file_cannot_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confining, "_MOST_FILE_BYTES", 4096)
    found = confined("head -c 100000 /dev/zero > large", tmp_path)
    assert found.exit_code != 0
    assert (tmp_path / "large").stat().st_size <= 4096


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request\nurllib.request.urlopen('http://data.example.org/x')\n",
        "import socket\nsocket.gethostbyname('data.example.org')\n",
        "import socket\nsocket.create_connection(('data.example.org', 80), 5)\n",
    ],
)
def test_the_network_is_not_there_and_the_host_is_noted(tmp_path: Path, code: str) -> None:
    found = python(code, tmp_path)
    assert found.exit_code == 1
    assert "a rehearsal has no network, and this needs data.example.org" in found.output
    assert (tmp_path / "hosts").read_text() == "data.example.org\n"


def test_a_bare_address_is_refused_too(tmp_path: Path) -> None:
    code = "import socket\nsocket.socket().connect(('192.0.2.1', 80))\n"
    assert "this needs 192.0.2.1" in python(code, tmp_path).output


def test_a_program_that_is_not_python_has_no_network_either(tmp_path: Path, spaces: str) -> None:
    if spaces == "none" or "--net" not in confining._allowed_spaces():
        pytest.skip("without a network namespace only Python is held back")
    links = confined("cat /proc/net/dev", tmp_path).output.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in links] == ["lo"]


def test_it_may_talk_to_itself(tmp_path: Path) -> None:
    code = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(('localhost', server.getsockname()[1]))\n"
        "server.accept()[0].sendall(b'hello')\n"
        "print(client.recv(5).decode())\n"
    )
    assert python(code, tmp_path).output == "hello\n"


def test_nothing_outlives_the_one_who_asked(tmp_path: Path, spaces: str) -> None:
    mark = f"MARK_{os.urandom(8).hex()}"
    code = (
        "from pathlib import Path\n"
        "from wattline.checks.preflight.rehearsal import confining\n"
        f"if {spaces == 'none'}: confining._allowed_spaces = lambda: ()\n"
        f"environment = {{'PATH': {os.environ['PATH']!r}, {mark!r}: '1'}}\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "command = 'touch begun; sleep 600 & sleep 600'\n"
        "confining.run_confined(command, folder=folder, environment=environment, within_seconds=600)\n"
    )
    asker = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 20
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(mark)
    asker.kill()
    asker.wait()
    assert until_gone(mark)
