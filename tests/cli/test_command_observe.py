"""Against a real Slurm with accounting and a real Prometheus: losses are found, and nothing is touched."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from cluster_history import History, a_history
from metering import a_prometheus, wait_until
from slurm_cluster import ON_SLURM, SlurmCluster

WATTLINE = Path(sys.executable).with_name("wattline")
CLIENTS = ("scontrol", "sacct", "squeue", "sinfo", "sacctmgr", "sbatch", "srun", "scancel", "sreport")
# What a daemon counts on by itself while nobody does anything.
_BY_ITSELF = re.compile(
    r"CPULoad=\S+|FreeMem=\S+|LastBusyTime=\S+|RunTime=\S+|SystemTime=\S+|LastSchedEval=\S+|as of .*"
)

pytestmark = [*ON_SLURM, pytest.mark.needs("prometheus", "promtool", "mariadb")]


@dataclass(frozen=True)
class Observed:
    cluster: SlurmCluster
    url: str
    history: History
    folder: Path

    @property
    def window(self) -> tuple[str, ...]:
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.history.ends_at))
        return ("--since", "1h", "--until", until)

    def observe(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WATTLINE, "observe", *options],
            env={**self.cluster.environment, "COLUMNS": "110", "HOME": str(self.folder), **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=200,
        )


@pytest.fixture(scope="module")
def observed(slurm_of_session: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("prometheus")
    history = a_history(int(time.time()) // 60 * 60, seed=7)
    history.write_accounting(slurm_of_session)
    history.write_series(folder)
    with a_prometheus(folder) as url:
        yield Observed(slurm_of_session, url, history, tmp_path_factory.mktemp("home"))


def test_every_loss_that_was_put_in_is_found_within_a_tenth(observed: Observed) -> None:
    done = observed.observe("--slurm", "--prometheus", observed.url, *observed.window, "-o", "json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    losses = {loss["name"]: loss for loss in report["losses"]}
    found = {name: loss["gpu_hours"] for name, loss in losses.items()} | losses["throttling"]["by"]
    truth = observed.history.truth
    assert set(truth.lost) > set(losses) - {"throttling"}
    for what, seconds in truth.lost.items():
        assert found[what] == pytest.approx(seconds / 3600, rel=0.1), what
    for reason, seconds in truth.by_reason.items():
        assert losses["queueing"]["by"][reason] == pytest.approx(seconds / 3600, rel=0.1), reason
    assert report["energy_kwh"] == pytest.approx(truth.joules / 3.6e6, rel=0.1)
    assert report["coverage"]["power"] > 0.95
    assert report["models"] == {"NVIDIA H100 80GB HBM3": 32}
    assert report["replay"]["emulated"]
    assert report["replay"]["jobs"] > 5


def test_nothing_is_changed_and_all_that_was_asked_is_told(observed: Observed, tmp_path: Path) -> None:
    """Every client is wrapped and its calls are written down; what Slurm and Prometheus hold is compared."""
    log, wrapped = tmp_path / "calls.txt", tmp_path / "bin"
    wrapped.mkdir()
    for client in CLIENTS:
        real = shutil.which(client, path=observed.cluster.environment["PATH"])
        script = wrapped / client
        script.write_text(f'#!/bin/sh\necho "{client} $*" >> {log}\nexec {real} "$@"\n')
        script.chmod(0o755)
    begin = ("--parsable", "--gres=gpu:2", "-o", "/dev/null", "--wrap", "sleep 60")
    job = observed.cluster.run("sbatch", *begin)
    observed.cluster.run("sbatch", "--hold", *begin)
    # slurmctld tells slurmdbd of a start a little later, by itself.
    wait_until(lambda: observed.cluster.run("sacct", "-nXj", job, "-o", "State") == "RUNNING")
    wait_until(lambda: _is_settled(observed.cluster))
    before = _slurm(observed.cluster), _database(observed.cluster), _prometheus(observed.url)
    path = f"{wrapped}:{observed.cluster.environment['PATH']}"
    done = observed.observe(
        *("--slurm", "--prometheus", observed.url, *observed.window, "--no-replay", "-o", "json"), PATH=path
    )
    assert done.returncode == 0, done.stderr
    after = _slurm(observed.cluster), _database(observed.cluster), _prometheus(observed.url)
    for now, then in zip(after, before, strict=True):
        assert now == then
    calls = log.read_text().splitlines()
    assert calls
    for call in calls:
        assert re.match(r"scontrol (-o )?show |sacct |squeue ", call), call
    asked = [one["what"].replace("'", "") for one in json.loads(done.stdout)["asked"]]
    assert [one for one in asked if not one.startswith("GET ")] == calls
    assert all(re.match(r"GET /api/v1/query(_range)? ", one) for one in asked if one.startswith("GET "))
    assert list(observed.folder.iterdir()) == []
    observed.cluster.cancel_all()


def test_the_proposed_facility_is_right_and_the_text_says_the_most_first(
    observed: Observed, tmp_path: Path
) -> None:
    table, facility, page = tmp_path / "racks.csv", tmp_path / "facility.yaml", tmp_path / "page.html"
    table.write_text(
        "node,rack,pdu,loop,cap\nn[1-2],r1,pdu-a+pdu-b,cdu-1,12kW\nn[3-4],r2,pdu-a+pdu-b,cdu-1,12kW\n"
    )
    done = observed.observe(
        *("--slurm", "--prometheus", observed.url, *observed.window, "--racks", str(table)),
        *("--write-facility", str(facility), "--html", str(page)),
    )
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("test: in 1 h the most was lost to queueing: ")
    assert "nothing was changed" in done.stdout
    assert "(emulated: " in done.stdout
    checked = subprocess.run(
        [WATTLINE, "facility", "check", facility, "-o", "json"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["review"]["gpus"] == 32
    text = facility.read_text()
    for part in ("power: [pdu-a, pdu-b]", "gpu: H100", "# assumed"):
        assert part in text
    html = page.read_text()
    assert html.count("<img ") == 2
    assert "<script" not in html
    meters = "telemetry:\n      series: {rack_watts: {query: hall_rack_kilowatts, label: rack, unit: kW}}\n"
    facility.write_text(text.replace("telemetry:\n", meters))
    options = ("--slurm", "--prometheus", observed.url, *observed.window, "-o", "json")
    with_caps = observed.observe(*options, "--no-replay", "--facility", str(facility))
    assert with_caps.returncode == 0, with_caps.stderr
    limits = {limit["name"]: limit for limit in json.loads(with_caps.stdout)["limits"]}
    for rack, told in observed.history.rack_watts().items():
        assert limits[f"test/{rack}"]["peak"] == pytest.approx(max(told.values()), rel=0.1)
        assert limits[f"test/{rack}"]["cap"] == 12_000
    again = observed.observe("--slurm", "--write-facility", str(facility))
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_without_slurmdbd_it_says_so_and_goes_on(observed: Observed) -> None:
    observed.cluster.kill("slurmdbd")
    try:
        done = observed.observe("--slurm", "--prometheus", observed.url, *observed.window, "-o", "json")
    finally:
        observed.cluster.start("slurmdbd")
        wait_until(lambda: observed.cluster.run("sacct", "-n", "-X", check=False) != "")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert any("slurmdbd does not answer" in remark for remark in report["remarks"])
    assert [loss["name"] for loss in report["losses"]] == ["throttling"]
    assert {"losses: queueing", "losses: failed jobs", "replay"} <= set(report["not_estimated"])


def test_without_clients_it_says_what_is_missing(observed: Observed) -> None:
    done = observed.observe("--slurm", PATH=str(observed.folder))
    assert done.returncode == 3
    assert "scontrol is not installed here" in done.stderr


def _is_settled(cluster: SlurmCluster) -> bool:
    before = _slurm(cluster), _database(cluster)
    time.sleep(3.0)
    return (_slurm(cluster), _database(cluster)) == before


def _slurm(cluster: SlurmCluster) -> list[str]:
    kinds = ("job", "node", "reservation", "config", "partition", "licenses")
    shown = [cluster.run("scontrol", "-o", "show", kind, check=False) for kind in kinds]
    return [_BY_ITSELF.sub("", text) for text in shown]


def _database(cluster: SlurmCluster) -> list[str]:
    """A checksum of every table but those that slurmdbd rolls up by itself."""
    sql = (
        "select group_concat(concat('slurm.', table_name) order by table_name) from information_schema.tables"
        " where table_schema = 'slurm' and table_name not regexp 'usage|last_ran|clus_res|table_defs'"
    )
    mariadb = ("mariadb", "--no-defaults", f"--socket={cluster.folder}/database.socket", "-N", "-e")
    tables = cluster.run(*mariadb, f"set group_concat_max_len = 100000; {sql}")
    return cluster.run(*mariadb, f"checksum table {tables}").splitlines()


def _prometheus(url: str) -> tuple[object, ...]:
    def told(path: str) -> Any:
        with urlopen(f"{url}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    stats = told("status/tsdb")["headStats"]
    series = told("query?query=count({__name__=~%22DCGM.*%22})")["result"]
    return stats["numSeries"], told("status/config"), len(series)
