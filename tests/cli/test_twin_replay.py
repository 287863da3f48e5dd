from __future__ import annotations

import gzip
import os
import pty
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from cli.looking import COMMAND, Wattline
from cli.replayed import FACILITY, row, write_jobs, write_trace
from cli.running import end, wait_until
from shared_data import shared_data
from wattline.twin.report import Report

PATIENCE_SECONDS = 120
PICTURES = ["carbon.png", "heat.png", "power.png", "queue.png", "utilisation.png"]


@pytest.fixture
def facility(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(FACILITY)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three hundred jobs that keep sixteen GPUs busy."""
    return write_jobs(tmp_path / "jobs.csv", 300, gap_seconds=400.0)


def replay_alone(*arguments: object, **environment: str) -> Report:
    """In a process of its own."""
    done = subprocess.run(
        [*COMMAND, "twin", "replay", *map(str, arguments), "--output", "json"],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Report)


def test_a_replay_accounts_for_every_job_and_every_kilowatt_hour(
    trace: Path, facility: Path, wattline: Wattline
) -> None:
    done = wattline("twin", "replay", trace, "--facility", facility, "--output", "json")
    assert done.code == 0, done.err
    report = msgspec.json.decode(done.out, type=Report)
    # What sleeping came to is told only where the policy scales.
    assert list(done.json) == [name for name in Report.__struct_fields__ if name != "scaling"]
    assert (report.trace, report.facility, report.policy, report.gpus) == ("jobs", "small", "default", 16)
    jobs = report.jobs
    assert jobs.submitted == 300 == jobs.completed + jobs.refused + jobs.unfinished
    assert jobs.completed == 300
    # Two idle boxes draw 2 kW at least, and sixteen A100 with them 10 kW at most.
    assert 2.0 * report.simulated_hours < report.energy_kwh < 1.5 * 10.0 * report.simulated_hours
    assert report.energy_kwh == pytest.approx(sum(site.energy_kwh for site in report.sites.values()))
    assert report.emulated
    assert report.not_estimated == ()


def test_the_same_seed_gives_the_same_digest_in_another_process_and_another_seed_does_not(
    trace: Path, facility: Path
) -> None:
    first = replay_alone(trace, "--facility", facility, "--seed", 3, PYTHONHASHSEED="1")
    again = replay_alone(trace, "--facility", facility, "--seed", 3, PYTHONHASHSEED="2")
    other = replay_alone(trace, "--facility", facility, "--seed", 4)
    assert first.digest == again.digest
    assert first.energy_kwh == again.energy_kwh
    assert first.digest != other.digest
    assert (first.seed, other.seed) == (3, 4)


def test_pictures_and_the_page_are_written_and_change_nothing(
    trace: Path, facility: Path, tmp_path: Path, wattline: Wattline
) -> None:
    asked = ("twin", "replay", trace, "--facility", facility, "--most-jobs", 40, "--output", "json")
    folder, page = tmp_path / "deep" / "pictures", tmp_path / "other" / "report.html"
    unseen = wattline(*asked)
    seen = wattline(*asked, "--plots", folder, "--html", page)
    assert seen.code == 0, seen.err
    assert sorted(path.name for path in folder.iterdir()) == PICTURES
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.iterdir())
    assert page.read_text().startswith("<!doctype html>")
    assert f"wrote {page}" in seen.err
    assert seen.json["digest"] == unseen.json["digest"]
    assert seen.json["energy_kwh"] == unseen.json["energy_kwh"]


def test_slos_are_counted_on_what_happens_and_shown_with_what_is_left_of_their_budgets(
    trace: Path, facility: Path, tmp_path: Path, wattline: Wattline
) -> None:
    slos = tmp_path / "slos.yaml"
    slos.write_text("slos: [{name: soon, indicator: start_wait_seconds, objective: 99%, within: 1min}]\n")
    asked = ("twin", "replay", trace, "--facility", facility, "--arrival-scale", 4, "--slo", slos)
    page = tmp_path / "report.html"
    told = wattline(*asked, "--html", page, "--output", "json").json
    soon = told["slos"]["soon"]
    assert soon["good"] + soon["bad"] == told["jobs"]["submitted"]
    assert soon["is_met"] is False
    assert soon["left"] == pytest.approx(soon["allowed"] - soon["bad"])
    assert [burn["window_seconds"] for burn in soon["burns"]] == [3600.0, 21600.0, 259200.0]
    assert soon["reasons"]
    assert "99 % of jobs start within 1 min" in page.read_text()
    text = wattline(*asked).out
    assert "soon" in text
    assert "missed" in text


def test_a_file_of_slos_that_is_wrong_is_told_with_its_place(
    trace: Path, facility: Path, tmp_path: Path, wattline: Wattline
) -> None:
    slos = tmp_path / "slos.yaml"
    slos.write_text("slos: [{name: soon, indicator: start_wait_seconds, objective: 99%}]\n")
    told = wattline("twin", "replay", trace, "--facility", facility, "--slo", slos)
    assert told.code == 2
    assert "slos.yaml:1:" in told.err
    assert "needs within" in told.err


def test_the_text_has_figures_with_units_and_says_that_they_are_emulated(
    trace: Path, facility: Path, wattline: Wattline
) -> None:
    done = wattline("twin", "replay", trace, "--facility", facility, "--arrival-scale", 2)
    assert done.code == 0
    assert "jobs on small under default" in done.out
    assert "300 of 300 jobs completed; emulated: a twin, not measurements" in done.out
    for said in ("useful GPU-hours", "kWh", "2 times as fast", "seed 0, digest "):
        assert said in done.out
    assert done.err == ""


def test_rows_that_are_no_jobs_are_counted_and_told_with_their_first_line(
    tmp_path: Path, facility: Path, wattline: Wattline
) -> None:
    trace = write_trace(
        tmp_path / "flawed.csv",
        [
            row(60, 600, 4),
            row(60, -5, 1),
            row(30, 600, 2),
            row(90, -7, 1),
            row(120, float("nan"), 1),
            row(150, 600, 0),
            "2017-10-01 00:10:00,600,2",
        ],
    )
    done = wattline("twin", "replay", trace, "--facility", facility, "--output", "json")
    assert done.code == 0, done.err
    assert done.json["jobs"]["submitted"] == 2
    assert done.json["lines_refused"] == 5
    assert done.err.startswith("5 rows were not read: 2 × the run time is negative (first: line 3, -5.0); ")
    for said in (
        "1 × the run time is not finite (first: line 6, nan)",
        "1 × no GPU asked for (first: line 7, 0)",
        "1 × wrong number of columns (first: line 8, 3 instead of 5)",
        "1 job stood after a later one: all are replayed in the order of arrival",
    ):
        assert said in done.err


def test_a_job_that_stands_there_twice_runs_once(tmp_path: Path, facility: Path, wattline: Wattline) -> None:
    jobs = [f"{job}|2024-05-01T10:00:00|00:10:00|gres/gpu=2" for job in ("7", "8", "7")]
    (tmp_path / "sacct.txt").write_text("\n".join(["JobID|Submit|Elapsed|AllocTRES", *jobs]))
    done = wattline("twin", "replay", tmp_path / "sacct.txt", "--facility", facility, "--output", "json")
    assert done.json["jobs"]["completed"] == 2
    assert done.err == "1 row was not read: 1 × the name was used before (first: row 4, 7)\n"


def test_a_job_larger_than_the_facility_is_refused_and_counted(
    tmp_path: Path, facility: Path, wattline: Wattline
) -> None:
    trace = write_trace(tmp_path / "large.csv", [row(0, 600, 4), row(60, 600, 17), row(120, 600, 8)])
    done = wattline("twin", "replay", trace, "--facility", facility, "--output", "json")
    assert done.code == 0, done.err
    assert done.json["jobs"] == {"submitted": 3, "completed": 2, "refused": 1, "unfinished": 0}
    assert sum(done.json["refused_because"].values()) == 1
    assert "refused by " in wattline("twin", "replay", trace, "--facility", facility).out


def test_ten_times_more_work_than_the_facility_can_do_waits_and_ends(
    tmp_path: Path, facility: Path, wattline: Wattline
) -> None:
    trace = write_jobs(tmp_path / "burst.csv", 400, gap_seconds=36.0)
    done = wattline("twin", "replay", trace, "--facility", facility, "--output", "json")
    assert done.json["jobs"]["completed"] == 400
    assert done.json["wait_minutes"]["mean"] > 60.0
    # Waits and utilisation are over the arrival window, and there the facility was full.
    assert done.json["utilisation"] > 0.7


@pytest.mark.parametrize("policy", ["fifo", "easy", "tiresias", "power-blind"])
def test_what_people_run_today_can_be_asked_for_by_name(
    policy: str, trace: Path, facility: Path, wattline: Wattline
) -> None:
    asked = ("--facility", facility, "--policy", policy, "--most-jobs", 60, "--output", "json")
    done = wattline("twin", "replay", trace, *asked)
    assert done.json["policy"] == policy
    assert done.json["jobs"]["completed"] == 60


def test_a_replay_can_end_before_its_jobs_do(trace: Path, facility: Path, wattline: Wattline) -> None:
    asked = ("twin", "replay", trace, "--facility", facility, "--output", "json", "--until")
    short, long = (wattline(*asked, until).json for until in ("90min", "3h"))
    assert (short["simulated_hours"], long["simulated_hours"]) == (1.5, 3.0)
    assert short["jobs"]["unfinished"] > 0
    assert short["jobs"]["submitted"] < long["jobs"]["submitted"] < 300
    assert long["energy_kwh"] > 1.5 * short["energy_kwh"] > 0


def test_a_facility_may_be_what_its_document_says(trace: Path, facility: Path, wattline: Wattline) -> None:
    asked = ("twin", "replay", trace, "--facility", facility, "--most-jobs", 60, "--output", "json")
    perturbed, exact = wattline(*asked).json, wattline(*asked, "--truth", "exact").json
    assert (perturbed["truth"], exact["truth"]) == ("perturbed", "exact")
    assert perturbed["digest"] != exact["digest"]
    assert perturbed["energy_kwh"] != exact["energy_kwh"]


def test_prices_by_the_hour_are_read_beside_the_facility_and_gaps_in_them_are_told(
    tmp_path: Path, wattline: Wattline
) -> None:
    trace = write_trace(tmp_path / "one.csv", [row(0, 7200, 8)])
    document = FACILITY.replace("tariff: {energy: 0.2}", "tariff: {energy: 0.2, series: price.csv}")
    (tmp_path / "priced.yaml").write_text(document)
    asked = ("twin", "replay", trace, "--facility", tmp_path / "priced.yaml", "--output", "json")
    missing = wattline(*asked)
    assert missing.code == 3
    assert "price.csv" in missing.err

    paid = 2.0  # dollars per kWh
    (tmp_path / "price.csv").write_text(f"datetime,usd_per_kwh\n2024-01-01T00:00:00Z,{paid}\n")
    done = wattline(*asked)
    site = done.json["sites"]["here"]
    assert site["cost_usd"] == pytest.approx(paid * site["energy_kwh"])
    assert "lacks 8,759 hours of the year: each has the last price before it" in done.err


def test_philly_begins_as_it_was_recorded(wattline: Wattline) -> None:
    philly = shared_data("jobs/philly.csv.gz")
    asked = ("--facility", "philly-800", "--skip-days", 20, "--most-jobs", 500, "--output", "json")
    done = wattline("twin", "replay", philly, *asked)
    assert done.code == 0, done.err
    assert done.json["jobs"] == {"submitted": 500, "completed": 500, "refused": 0, "unfinished": 0}
    assert done.json["gpus"] == 800
    assert done.json["cap_violation_seconds"] == 0


def test_a_pollux_trace_goes_as_fast_as_its_applications_were_measured(wattline: Wattline) -> None:
    trace = shared_data("jobs/pollux-workload-1.csv.gz")
    shared_data("jobs/pollux-throughput-profiles")
    asked = ("--facility", "philly-800", "--most-jobs", 20, "--output", "json")
    done = wattline("twin", "replay", trace, *asked)
    assert done.code == 0, done.err
    assert done.json["jobs"]["completed"] == 20


MISSING_COLUMN = "timestamp,duration,gpu_time,cluster\n2017-10-01 00:00:00,60,60,vc\n"
NO_GOOD_ROW = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,-60,1,60,vc\n"
NO_LOOP = "".join(line for line in FACILITY.splitlines(keepends=True) if "loops:" not in line)


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("t.csv", MISSING_COLUMN, 2, "t.csv:1:1: num_gpus: this column is missing"),
        ("t.csv", NO_GOOD_ROW, 2, "t.csv:2:1: the run time is negative, got -60.0"),
        ("t.csv", "", 2, "t.csv: the file is empty"),
        ("t.csv", "a,b\n1,2\n", 2, "t.csv:1:1: this is no trace of a known format"),
        ("t.csv", None, 3, "t.csv: there is no such file"),
        (
            "t.csv.gz",
            gzip.compress(NO_GOOD_ROW.encode(), mtime=0)[:-9],
            3,
            "this gzip file is cut off or damaged",
        ),
        ("small.yaml", NO_LOOP, 2, "small.yaml:"),
        ("small.yaml", None, 3, "small.yaml"),
        ("policy.yaml", "policy: mine\nthreshold: {}\n", 2, "did you mean 'thresholds'?"),
        ("policy.yaml", None, 3, "policy.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(
    name: str, content: str | bytes | None, code: int, said: str, tmp_path: Path, wattline: Wattline
) -> None:
    good = write_trace(tmp_path / "good.csv", [row(0, 60, 1)])
    (tmp_path / "small.yaml").write_text(FACILITY)
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    trace = path if name.startswith("t.") else good
    policy = path if name.startswith("policy") else "default"
    done = wattline(
        "twin", "replay", trace, "--facility", tmp_path / "small.yaml", "--policy", policy, "--output", "json"
    )
    assert (done.code, done.out) == (code, ""), done.err
    assert said in done.err
    assert done.err.startswith("wattline: ")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--facility", "tree-sites"], 3, "did you mean 'three-sites'?"),
        (["--policy", "tiresas"], 3, "did you mean 'tiresias'?"),
        (
            ["--policy", "nobody-has-this"],
            3,
            "one of capped-fleet, default, sleeping-nodes, fifo, easy, tiresias",
        ),
        (["--arrival-scale", "0"], 2, "arrival scale: a finite number above 0"),
        (["--arrival-scale", "nan"], 2, "arrival scale: a finite number above 0"),
        (["--skip-days", "-1"], 2, "days to skip: a finite number from 0 on"),
        (["--skip-days", "3"], 2, "no job arrives after the first 3 days"),
        (["--most-jobs", "0"], 2, "--most-jobs"),
        (["--until", "5"], 2, "a duration needs a unit"),
        (["--until", "0h"], 2, "nothing happens in no time"),
        (["--truth", "false"], 2, "--truth"),
        (["--html", "."], 3, "this is a folder"),
        (["--plots", "jobs.csv"], 3, "cannot be made"),
    ],
)
def test_what_cannot_be_asked_is_told_before_anything_runs(
    options: list[str],
    code: int,
    said: str,
    trace: Path,
    wattline: Wattline,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(trace.parent)
    done = wattline("twin", "replay", "jobs.csv", *options)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_ctrl_c_ends_it_with_a_sentence(tmp_path: Path, facility: Path) -> None:
    trace = write_jobs(tmp_path / "long.csv", 20_000)
    process = subprocess.Popen(
        [*COMMAND, "twin", "replay", trace, "--facility", facility, "--plots", tmp_path / "begun"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "begun").exists, process)
    done = end(process, signal.SIGINT)
    assert (done.code, done.out) == (130, "")
    assert "wattline: interrupted" in done.err


def test_a_terminal_sees_how_far_it_has_come_and_data_stays_clean(tmp_path: Path, facility: Path) -> None:
    trace = write_jobs(tmp_path / "jobs.csv", 2_000)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "twin", "replay", trace, "--facility", facility, "--policy", "fifo", "--output", "json"],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # how a terminal says that nobody is left on the other side
        pass
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    os.close(ours)
    assert process.returncode == 0, seen
    assert msgspec.json.decode(out, type=Report).jobs.submitted == 2_000
    assert b" of 2,000 jobs, day " in seen
    assert b" waiting, " in seen
    assert b"\x1b[3" not in seen, "NO_COLOR was asked for"


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_help_shows_an_example(command: str, wattline: Wattline) -> None:
    helped = wattline("twin", command, "--help")
    assert helped.code == 0
    assert f"Example: wattline twin {command} " in helped.out
    assert "--output" in helped.out
